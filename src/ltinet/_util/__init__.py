"""Helpers that do not depend on systems: floating point, caches, BLAS threads, text, display, atomic files."""
