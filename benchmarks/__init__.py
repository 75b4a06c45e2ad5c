"""Measurements against what people use instead, in one run; ratios, never bare seconds."""
