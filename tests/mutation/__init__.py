"""Strength of the tests: small faults are put into the source, and the tests that cover the line must notice."""
