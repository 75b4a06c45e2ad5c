"""Helpers without knowledge of systems: arrays, tolerances, caches, threads, text, files that appear whole."""
