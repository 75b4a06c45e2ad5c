"""Networks of structured sparse models, whole: time, memory, and how far their responses are from sparse solves.

python -m benchmarks.structured_models
"""

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse

import ltinet

OMEGA = np.array([0.0, 1e-6, 1e-3, 1.0])


def models() -> dict[str, Any]:
    """The matrices by name."""
    rng = np.random.default_rng(0)
    n, place = 100_000, np.arange(100_000)
    ring: Any = sum(
        sparse.csr_array(sparse.coo_array((np.full(n, own), ((place + k) % n, place)), shape=(n, n)))
        for k, own in ((0, -2.0001), (1, 1.2), (-1, 0.8))
    )
    return {
        "Kronecker sum 316 × 316": _grid(_uneven(316, rng), _uneven(316, rng)),
        "circulant 100,000": sparse.csr_array(ring),
        "tridiagonal Toeplitz 100,000": _chain(n),
        "tridiagonal 5,000": _uneven(5000, rng),
    }


def measured(name: str) -> str:
    """A row of the table."""
    A = models()[name]
    n = A.shape[0]
    B, C = np.zeros((n, 2)), np.zeros((2, n))
    B[: n // 2, 0], B[n // 3, 1], C[0, n // 3 :], C[1, n // 5] = 1.0, 1.0, 1.0 / n, 1.0
    system = ltinet.StateSpace(A, B, C)
    before = _peak()
    start = time.process_time()
    net = ltinet.construct(system)
    seconds, memory = time.process_time() - start, _peak() - before
    expected = system.frequency_response(OMEGA)
    error = np.abs(net.frequency_response(OMEGA) - expected).max() / np.abs(expected).max()
    return f"| {name} | {seconds:.2f} s | {memory:.2f} GB | {error:.1e} |"


def _chain(n: int) -> Any:
    return sparse.csr_array(sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)))


def _uneven(n: int, rng: np.random.Generator) -> Any:
    beside = rng.uniform(0.5, 2.0, n - 1)
    bands: Any = [beside, -4.1 - rng.random(n), beside]
    return sparse.csr_array(sparse.diags_array(bands, offsets=[-1, 0, 1]))


def _grid(first: Any, second: Any) -> Any:
    n1, n2 = first.shape[0], second.shape[0]
    return sparse.csr_array(sparse.kron(sparse.eye_array(n2), first) + sparse.kron(second, sparse.eye_array(n1)))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    """One process a model, so that peaks of memory are its own."""
    if len(sys.argv) > 1:
        print(measured(sys.argv[1]))
        return
    print("| model | construct, CPU | more memory | response against sparse solves, of the peak |\n|---|---|---|---|")
    for name in models():
        subprocess.run([sys.executable, "-m", "benchmarks.structured_models", name], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
