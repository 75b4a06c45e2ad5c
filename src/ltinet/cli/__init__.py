"""Command-line program `ltinet`: parses arguments, calls the library and prints results."""
