"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

__version__ = "0.1.0"
