"""Algorithm 1: block diagonalisation of A subject to a limit on cond(T)."""
