"""Reproduction of the paper's four examples: one module computes and describes each, `reproduce` writes the report."""
