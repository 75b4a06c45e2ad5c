"""Block diagonalization of A subject to a limit on cond(T) (Algorithm 1)."""
