"""Exported networks: how fast their C and their graphs are, and where rounding takes them in many steps."""
