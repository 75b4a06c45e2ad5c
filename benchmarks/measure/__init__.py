"""One file for each measurement; `measure(settings)` gives its tables."""
