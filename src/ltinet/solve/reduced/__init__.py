"""Runs of a network that stands for a larger system: what the reduction left out counts in every bound."""
