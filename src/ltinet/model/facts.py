"""What a system says of itself, as plain data."""

from typing import TypedDict

import numpy as np

from ltinet.model.system_matrices import SystemMatrices


class SystemFacts(TypedDict):
    """A system; every value passes as JSON."""

    kind: str
    n_states: int
    n_inputs: int
    n_outputs: int
    nonzeros_of_A: int
    has_feedthrough: bool
    n_real_eigenvalues: int
    n_complex_pairs: int
    real_parts: list[float] | None


def system_facts(system: SystemMatrices) -> SystemFacts:
    """Sizes, and where the eigenvalues lie: the smallest and the largest real part, None without states."""
    eigenvalues = np.linalg.eigvals(system.A)
    n_real = int(np.count_nonzero(eigenvalues.imag == 0.0))
    return {
        "kind": "system",
        "n_states": system.n_states,
        "n_inputs": system.n_inputs,
        "n_outputs": system.n_outputs,
        "nonzeros_of_A": int(np.count_nonzero(system.A)),
        "has_feedthrough": bool(np.any(system.D)),
        "n_real_eigenvalues": n_real,
        "n_complex_pairs": (system.n_states - n_real) // 2,
        "real_parts": [float(eigenvalues.real.min()), float(eigenvalues.real.max())] if system.n_states else None,
    }
