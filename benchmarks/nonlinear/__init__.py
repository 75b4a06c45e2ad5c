"""Measured nonlinear systems that everybody cites, each by one command with a rule that was fixed before any test."""
