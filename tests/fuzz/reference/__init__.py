"""Strict readers of every format, written apart from the library's and sharing no code with it.

Each gives all variables by name, as arrays of real numbers or None for anything else, and raises on whatever its format
does not allow.
"""
