"""Shared parts of the measurements: cases, clocks, the oracle, and how results become tables, figures and quotes."""
