"""Fewer states for nearly the same response, and how far apart both surely stay."""
