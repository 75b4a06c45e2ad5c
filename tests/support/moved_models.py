"""Random models with delays and operating points, their runs, and how far a run through an export may be off."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltinet
from ltinet.export.step_model import PRECISIONS, build_exported_model, validate_settings
from ltinet.export.tapped_delay_line import build_tapped_model, exported_rounding_bound

Array = NDArray[np.float64]
SHARES = {"double": 1e-9, "float": 1e-6}  # of the range of an output


@dataclass(frozen=True, eq=False)
class MovedRun:
    """A model, a step and an input."""

    net: ltinet.DynamicNetwork
    dt: float
    hold: Any
    u: Array
    x0: Array | None

    @property
    def options(self) -> dict[str, Any]:
        """What exporters are told."""
        return {"dt": self.dt, "hold": self.hold, "x0": self.x0}

    @property
    def t(self) -> Array:
        """Times of samples."""
        return self.dt * np.arange(len(self.u))

    def simulated(self) -> Any:
        """The solution that exports are compared with."""
        return self.net.simulate(self.u, self.t, hold=self.hold, x0=self.x0, coordinates="blocks")

    def in_float(self) -> "MovedRun":
        """The same run with inputs that single precision holds."""
        return MovedRun(self.net, self.dt, self.hold, self.u.astype(np.float32).astype(np.float64), self.x0)

    def allowed(self, dtype: str, *, samples_at_once: int = 1) -> Array:
        """For each output a share of its range, and the bounds of both sides."""
        sol = self.simulated()
        span = np.ptp(sol.y, axis=0)
        settings = validate_settings(self.dt, hold=self.hold, dtype=dtype, x0=self.x0, signals=self.net.signal_settings)
        tapped = build_tapped_model(build_exported_model(self.net._context, settings), settings)
        peak = np.abs(self.u - self.net.u0).max(axis=0, initial=0.0)
        bound = exported_rounding_bound(
            tapped, PRECISIONS[dtype], n_steps=float(len(self.u)), peak=peak, samples_at_once=samples_at_once
        )
        return SHARES[dtype] * span + bound.drift + sol.error_bound()


def moved_run(seed: int, *, whole: bool = False, n_steps: int = 160) -> MovedRun:
    """A stable model of one to six states, sometimes none, with delays, offsets and a hold drawn at random."""
    rng = np.random.default_rng(seed)
    n = 0 if seed % 13 == 12 else int(rng.integers(1, 7))
    m, p = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    dt = float(rng.choice([0.1, 0.125, 1.0 / 3.0]))
    A = rng.standard_normal((n, n))
    A = A - (np.max(np.linalg.eigvals(A).real, initial=0.0) + rng.choice([1e-4, 0.1, 1.0])) * np.eye(n)
    D = rng.standard_normal((p, m)) * rng.integers(0, 2)
    steps = [rng.choice([0.0, 1.0, 2.0, 6.0, 25.0], size) for size in (m, p)]
    if not whole:
        shares = [rng.choice([0.0, 1e-9, 0.25, 0.4, 0.999], size) for size in (m, p)]
        steps = [own + share for own, share in zip(steps, shares, strict=True)]
    late = (dt * own * int(rng.integers(0, 2)) for own in steps)
    input_delay, output_delay = late
    system = ltinet.StateSpace(
        A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), D,
        input_delay=input_delay, output_delay=output_delay, hold=str(rng.choice(["linear", "zero"])),
        u0=5.0 * rng.standard_normal(m) * rng.integers(0, 2), y0=300.0 * rng.standard_normal(p),
    )  # fmt: skip
    net = ltinet.construct(system)
    u = net.u0 + rng.standard_normal((n_steps, m))
    x0 = rng.standard_normal(n) if n and rng.integers(0, 2) else None
    return MovedRun(net, dt, net.hold, u, x0)
