"""Bounds on rounding and approximation errors, as functions of arrays."""
