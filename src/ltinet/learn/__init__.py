"""The network in PyTorch: parameters from the exact engine's coordinates, and the algorithms that run them in time."""
