"""Identification of linear systems from records and from frequency responses."""
