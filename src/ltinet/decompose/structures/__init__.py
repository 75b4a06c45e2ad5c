"""Matrices whose eigenvectors are known or cheap: found by their entries, decomposed without an array of n² numbers."""
