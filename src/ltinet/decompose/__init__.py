"""Algorithm 1: from any real square matrix to a block-diagonal form with a well-conditioned transformation."""
