"""What an input can be: samples with a hold, or a function; each knows its value, derivative, knots and jumps."""
