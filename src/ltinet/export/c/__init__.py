"""C99 sources: hand-written kernels with generated tables."""
