"""Views: from a state to plain data, by calls of the library alone."""
