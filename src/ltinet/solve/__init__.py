"""The forward pass: an exact engine, and the paper's Algorithms 3 and A.1 on any ODE solver."""
