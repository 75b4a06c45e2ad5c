"""`python -m benchmarks.export [--steps 100000000]`: speed of exported C and ONNX, and drift over many steps.

Needs gcc, onnxruntime, and the systems in ../shared/data/lti.
"""

import argparse
from pathlib import Path

import ltinet
from benchmarks.export.drift import drift, systems
from benchmarks.export.graphs import milliseconds
from benchmarks.export.speed import nanoseconds, ratios

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "lti"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10**8, help="of the drift; a multiple of 8")
    steps = parser.parse_args().steps
    for name in ("building", "iss", "beam"):
        net = ltinet.construct(ltinet.load_system(DATA / f"{name}.mat"))
        times = nanoseconds(net)
        faster, beside = ratios(times)
        print(f"{name}: " + ", ".join(f"{kind} {value:.0f} ns" for kind, value in times.items()))
        print(f"{name}: {faster:.1f} × faster than a dense step, {beside:.2f} × the time of modal code by hand")
        engine, graph = milliseconds(net)
        print(f"{name}: onnxruntime {graph:.1f} ms, engine {engine:.1f} ms, {graph / engine:.1f} ×")
    for name, (system, dt) in systems().items():
        for dtype in ("double", "float"):
            error, bound, size = drift(system, dt, dtype=dtype, n_steps=steps)
            print(f"{name}, {dtype}, {steps:.0e} steps: off by {error.max():.1e}, bound {bound[error.argmax()]:.1e}, "
                  f"size {size.max():.1e}, below its bound: {bool((error <= bound).all())}")  # fmt: skip


if __name__ == "__main__":
    main()
