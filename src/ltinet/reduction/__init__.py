"""Model reduction with bounds on the error at all frequencies."""
