"""Mechanical models reduced to few of their modes, each of which stays one oscillator."""
