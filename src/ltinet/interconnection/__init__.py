"""Connections of systems: operators, series, parallel, feedback, linear fractional transformations, named signals."""
