"""Dynamic neural networks: neurons in horizontal layers, and the maps of Theorem 1 that compute their parameters."""
