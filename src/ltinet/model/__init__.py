"""What comes in: the type that holds a system, and the doors through which systems arrive."""
