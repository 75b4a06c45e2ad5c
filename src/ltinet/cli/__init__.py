"""The program `ltinet`: parse, call, print; the mathematics is in the rooms below."""
