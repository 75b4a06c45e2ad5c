"""From measured records to models: arrays in, models in modal coordinates out."""
