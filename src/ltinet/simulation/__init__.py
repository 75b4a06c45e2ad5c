"""Simulation of networks and systems: exact steps, ODE solvers for neurons, implicit solver for sparse models."""
