"""A case: a system of a family and all that a run needs, from a seed, the family's name and a number."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .families import FAMILIES, Sketch
from .grids import KINDS, Kind, draw_queries, draw_times, with_jumps

Array = NDArray[np.float64]
Face = Literal["y", "stepper", "states", "dense"]
FACES: dict[Face, float] = {"y": 0.4, "stepper": 0.2, "states": 0.2, "dense": 0.2}

_LONG = 10_000  # steps of every tenth run
_GROWTH = 200.0  # e^200 is far from overflow, whatever a Jordan block or a transformation adds


@dataclass(frozen=True, eq=False)
class Case:
    """E x' = A x + B u, y = C x + D u, run over samples u at times t, and which face of the library is looked at."""

    name: str
    """Seed, family and number: `draw` makes the same case of them again."""
    A: Array
    B: Array
    C: Array
    D: Array
    E: Array | None
    u: Array
    t: Array
    hold: Literal["zero", "linear"]
    x0: Array | None
    face: Face
    grid: str
    queries: Array | None

    @property
    def family(self) -> str:
        """The name of the family."""
        return self.name.split("/")[1]

    @property
    def is_even(self) -> bool:
        """True if the times are even up to rounding and without jumps, as `lsim` requires."""
        return self.grid in ("exact", "offset", "rounded", "rounded offset")

    @cached_property
    def system(self) -> tuple[Array | None, ...]:
        """The five matrices."""
        return self.A, self.B, self.C, self.D, self.E

    @cached_property
    def run(self) -> dict[str, Any]:
        """Input, times, hold and initial state, as `simulate` and the oracle take them."""
        return {"u": self.u, "t": self.t, "hold": self.hold, "x0": self.x0}

    def __str__(self) -> str:
        n, m = self.B.shape
        start = "from rest" if self.x0 is None else "from x0"
        return (
            f"{self.name}: n={n} m={m} p={len(self.C)} steps={len(self.t) - 1} batch={self.u.shape[:-2]} "
            f"{self.hold} hold, {start}, {self.grid} times, {self.face}"
        )


def draw(name: str) -> Case:
    """The case of a name such as "0/jordan/17"."""
    seed, family, index = name.split("/")
    rng = np.random.default_rng([int(seed), zlib.crc32(family.encode()), int(index)])
    is_large = family == "large"  # few steps of few lengths: the oracle costs n³ for each length
    n_steps = _LONG if int(index) % 10 == 3 else round(10.0 ** rng.uniform(2.0, 3.0))
    n_steps = int(rng.integers(10, 61)) if is_large else n_steps
    n = int(rng.integers(30, 161)) if is_large else _n_states(rng, n_steps)
    sketch = FAMILIES[family](rng, n)
    sizes = np.ones(len(sketch.A)) if sketch.sizes is None else sketch.sizes
    m, p = (int(rng.integers(1, 3 if n_steps == _LONG else 4)) for _ in range(2))
    B, C, D = _inputs_and_outputs(rng, sketch, sizes, max(m, sketch.least_inputs), p)
    rate = 2.0 ** rng.integers(-10, 11)  # the unit of time; a power of two leaves exact Jordan blocks exact
    A, B = rate * sketch.A, rate * B

    face: Face = rng.choice(get_args(Face), p=list(FACES.values()))
    kind = _kind(rng, face, n_steps, may_be_random=not is_large)
    step = _step(rng, sketch, n_steps) / rate
    t = draw_times(rng, kind, n_steps=n_steps, step=step, most_lengths=4 if is_large else 8)
    jumps = face != "stepper" and rng.random() < 0.2
    t = with_jumps(rng, t) if jumps else t
    batch: tuple[int, ...] = () if n_steps == _LONG or face == "stepper" or rng.random() < 0.85 else (2,)
    x0 = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-2.0, 2.0) * rng.standard_normal((*batch, len(A))) * sizes
    return Case(
        name=name, A=A, B=B, C=C, D=D, E=sketch.E, t=t, x0=x0, face=face,
        u=_input(rng, (*batch, len(t), B.shape[1]), may_be_zero=x0 is not None),
        hold="linear" if rng.random() < 0.5 else "zero",
        grid=kind + (" with jumps" if jumps else ""),
        queries=draw_queries(rng, t, number=12) if face == "dense" else None,
    )  # fmt: skip


def _n_states(rng: Generator, n_steps: int) -> int:
    """One to twelve mostly; the oracle's cost is that of steps × n²."""
    if n_steps == _LONG:
        return int(rng.integers(1, 6))
    return int(rng.integers(16, 33)) if n_steps < 250 and rng.random() < 0.08 else int(rng.integers(1, 13))


def _inputs_and_outputs(
    rng: Generator, sketch: Sketch, sizes: Array, m: int, p: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    """B, C and D: dense, or single states entered and read; D is zero in every second system."""
    n = len(sizes)
    B, C = rng.standard_normal((n, m)), rng.standard_normal((p, n))
    if rng.random() < 0.25:
        B = B * (rng.random((n, m)) < 0.4)
    if rng.random() < 0.25:
        C = np.eye(n)[rng.integers(0, n, p)]
    B, C = B * sizes[:, None], C / sizes
    if sketch.E is not None and rng.random() < 0.5:
        B = sketch.E @ B
    D = rng.standard_normal((p, m)) * 10.0 ** rng.uniform(-2.0, 1.0) if rng.random() < 0.5 else np.zeros((p, m))
    return B, C, D


def _kind(rng: Generator, face: Face, n_steps: int, *, may_be_random: bool) -> Kind:
    if face == "stepper":  # it counts steps of one length, so that only exact times are its times
        return "exact"
    kind: Kind = rng.choice(get_args(Kind), p=list(KINDS.values()))
    return (
        "uneven" if kind == "random" and (n_steps > 300 or not may_be_random) else kind
    )  # an exponential for every step is dear


def _step(rng: Generator, sketch: Sketch, n_steps: int) -> float:
    """A step, in units of the fastest time constant; shorter where the response would overflow."""
    A = sketch.A if sketch.E is None else np.linalg.solve(sketch.E, sketch.A)
    values = np.linalg.eigvals(A)
    fastest = float(np.max(np.abs(values)))
    if fastest <= 1e-3 * float(np.linalg.norm(A, 2)):  # nilpotent but for rounding: its own size is all there is
        fastest = float(np.linalg.norm(A, 2)) or 1.0
    step = 10.0 ** rng.uniform(*sketch.decades) / fastest
    grows = max(float(np.max(values.real)), 0.0) * step * n_steps
    allowed = 10.0 ** rng.uniform(0.0, np.log10(_GROWTH))
    return step * min(1.0, allowed / grows) if grows > 0.0 else step


def _input(rng: Generator, shape: tuple[int, ...], *, may_be_zero: bool) -> Array:
    """Noise, steps, waves and ramps, or nothing at all."""
    kind, size = rng.random(), 10.0 ** rng.uniform(-2.0, 2.0)
    if kind < 0.1 and may_be_zero:
        return np.zeros(shape)
    if kind < 0.55:
        return size * rng.standard_normal(shape)
    k = np.arange(shape[-2])[:, None] / shape[-2]
    if kind < 0.75:
        return size * np.sign(np.sin(2.0 * np.pi * rng.uniform(1.0, 20.0, (*shape[:-2], 1, shape[-1])) * k))
    if kind < 0.9:
        return size * np.sin(2.0 * np.pi * rng.uniform(1.0, 20.0, (*shape[:-2], 1, shape[-1])) * k)
    return size * (rng.standard_normal((*shape[:-2], 1, shape[-1])) + k * rng.standard_normal(shape[-1]))
