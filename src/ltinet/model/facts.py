"""What a system says of itself, as plain data."""

from typing import NamedTuple, TypedDict

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
    is_sparse: bool
    n_real_eigenvalues: int | None
    n_complex_pairs: int | None
    real_parts: list[float] | None


def system_facts(system: SystemMatrices) -> SystemFacts:
    """Sizes, and where the eigenvalues lie: the smallest and the largest real part, None without states.

    Of a large sparse model nobody knows all eigenvalues, and None stands for what they would tell.
    """
    pencil = system.sparse
    spectrum = _UNKNOWN if pencil is not None and pencil.is_large else _spectrum(system)
    return {
        "kind": "system",
        "n_states": system.n_states,
        "n_inputs": system.n_inputs,
        "n_outputs": system.n_outputs,
        "nonzeros_of_A": int(np.count_nonzero(system.A)) if pencil is None else pencil.n_nonzeros,
        "has_feedthrough": bool(np.any(system.D)),
        "is_sparse": pencil is not None,
        "n_real_eigenvalues": spectrum.n_real,
        "n_complex_pairs": spectrum.n_pairs,
        "real_parts": spectrum.real_parts,
    }


class _Spectrum(NamedTuple):
    n_real: int | None
    n_pairs: int | None
    real_parts: list[float] | None


_UNKNOWN = _Spectrum(None, None, None)


def _spectrum(system: SystemMatrices) -> _Spectrum:
    eigenvalues = np.linalg.eigvals(system.A)
    n_real = int(np.count_nonzero(eigenvalues.imag == 0.0))
    ends = [float(eigenvalues.real.min()), float(eigenvalues.real.max())] if system.n_states else None
    return _Spectrum(n_real, (system.n_states - n_real) // 2, ends)
