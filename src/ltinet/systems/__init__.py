"""Matrices of LTI systems: validation, conversion from other libraries, named benchmark systems."""
