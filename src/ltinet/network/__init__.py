"""The paper's central object: neurons in horizontal layers, and the maps of Theorem 1 that compute their parameters."""
