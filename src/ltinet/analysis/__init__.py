"""What a system is like, without running it: poles, zeros, damping, gains, frequency response."""
