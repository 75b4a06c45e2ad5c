"""The exact engine: the closed form between samples, its dense output, its bound."""
