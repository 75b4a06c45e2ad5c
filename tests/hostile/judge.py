"""One case: the library's run, the oracle's, and what follows: right or not, below its bound or not, how far below.

*Right*, for every output of every signal and relative to its peak: the error is at most 10 times that of the peer, or
1e-10, or 100 times what a change of the data in the last digit does to the oracle's own result. States are judged as
outputs are. What the peer and changed data give is computed only where 1e-10 does not decide. An output that is zero at
all times has no peak: the size of what it is made of, |C| max |x| + |D| max |u|, stands for it, the largest state for a
state that is zero.

*Tight* is `error_bound()` over the largest error of that output, the worst output of the run. An output that came out
exact by luck would make this infinite, and no bound can know of luck: errors count as at least half a unit in the last
place of the output's peak, which is what rounding the true output to a double may cost. Outputs that are zero at all
times have no last place and are left out.
"""

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltinet
from ball_oracle import Balls, Response, respond

from .draw import Case
from .peer import PeerResult, solve_by_peer

Array = NDArray[np.float64]

GOOD_ENOUGH = 1e-10  # of the peak
PEER_FACTOR = 10.0
DATA_FACTOR = 100.0
_HALF_A_UNIT = 2.0**-53
_CHUNK = 77  # samples of a stepper's chunk: any number that is no power of two


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    case: str
    """Name and description."""
    family: str
    face: str
    grid: str
    raised: str = ""
    """The exception, where the library gave no result."""
    wrong: tuple[str, ...] = ()
    """The faces that are not right, with their errors."""
    above: tuple[str, ...] = ()
    """Errors above their bounds."""
    unbounded: bool = False
    """True if a bound is infinite or NaN."""
    by_convolution: bool = False
    n_samples: int = 0
    tightness: float = float("nan")
    floored: bool = False
    """True if the error is less than half a unit in the last place, with which `tightness` is then computed."""
    error: float = 0.0
    """The largest error relative to its peak."""
    over_peer: float = float("nan")
    """The largest error over that of the peer, where it is above 1e-10 of its peak."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        """True if any check failed."""
        return bool(self.raised or self.wrong or self.above or self.unbounded)


def judge(case: Case, *, timed: bool = False) -> Outcome:
    """Run a case by the library and by the oracle."""
    truth = _truth(case)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = _Found.of(case, timed=timed)
    except Exception as error:  # whatever it is, the case has no result
        return Outcome(str(case), case.family, case.face, case.grid, raised=f"{type(error).__name__}: {error}")
    return _Judgement(case, truth, found).outcome()


def _truth(case: Case, **changes: Any) -> Response:
    """The oracle's result, for the data as drawn or changed."""
    given = {**dict(zip("ABCDE", case.system, strict=True)), **case.run, **changes}
    try:
        return respond(**given, at=case.queries, states=case.face == "states")
    except ArithmeticError as error:
        raise ArithmeticError(f"{case}: {error}") from error


@dataclass(frozen=True)
class _Found:
    """All that the library gave for a case."""

    y: Array
    bound: Array
    bound_at_samples: Array
    face: Array | None
    """States, outputs of the stepper, or dense output, whichever the case is for."""
    bound_at_queries: Array | None
    by_convolution: bool
    seconds: dict[str, float]

    @classmethod
    def of(cls, case: Case, *, timed: bool) -> "_Found":
        clock = time.perf_counter
        net = ltinet.construct(ltinet.StateSpace(*case.system))  # type: ignore[arg-type]
        begin = clock()
        solution = net.simulate(**case.run)
        ran = clock()
        bound = solution.error_bound()
        seconds = {"run": ran - begin, "bound": clock() - ran}
        if timed:
            begin = clock()
            net.simulate(**case.run)
            seconds["again"] = clock() - begin
        face = bound_at_queries = None
        if case.face == "states":
            face = solution.states
        elif case.face == "stepper":
            face = _stream(net, case)
        elif case.face == "dense":
            face, bound_at_queries = solution(case.queries), solution.error_bound(case.queries)
        at_samples = solution.error_bound(case.t)
        return cls(solution.y, bound, at_samples, face, bound_at_queries, _by_convolution(solution), seconds)


def _stream(net: Any, case: Case) -> Array:
    """Outputs of the stepper: sample by sample to the middle, then in chunks."""
    stepper = net.stepper(float(case.t[1] - case.t[0]), hold=case.hold, x0=case.x0)
    half = len(case.t) // 2
    singles = [stepper.step(sample)[None] for sample in case.u[:half]]
    chunks = [case.u[k : k + _CHUNK] for k in range(half, len(case.u), _CHUNK)]
    return np.concatenate([*singles, *stepper.run(chunks)])


def _by_convolution(solution: Any) -> bool:
    return "convolution" in solution.stats["algorithm"]


class _Judgement:
    """A case, its truth, and what was found; peer and changed data on request."""

    def __init__(self, case: Case, truth: Response, found: _Found) -> None:
        self.case, self.truth, self.found = case, truth, found
        self._peer: PeerResult | None = None
        self._changed: list[Response] = []
        self._over_peer = float("nan")
        self._error = 0.0

    def outcome(self) -> Outcome:
        """Put everything together."""
        case, found = self.case, self.found
        wrong = [self._judged("y", found.y)]
        if found.face is not None:
            wrong.append(self._judged(case.face, found.face))
        tightness, floored = self._tightness()
        return Outcome(
            str(case),
            case.family,
            case.face,
            case.grid,
            wrong=tuple(text for text in wrong if text),
            above=tuple(self._above()),
            unbounded=not bool(np.all(np.isfinite(found.bound)) and np.all(np.isfinite(found.bound_at_samples))),
            by_convolution=found.by_convolution,
            n_samples=len(case.t),
            tightness=tightness,
            floored=floored,
            error=self._error,
            over_peer=self._over_peer,
            seconds=found.seconds,
        )

    def _judged(self, face: str, values: Array) -> str:
        """Nothing where a face is right, else its worst error, the peer's and that of changed data."""
        truth = _face(self.truth, face)
        peak = self._peak(face)
        error = np.max(truth.distance(values), axis=-2)
        error = np.where(np.isfinite(error), error, np.inf)
        relative = _over(error, peak)
        self._error = max(self._error, float(np.max(relative)))
        open_ = relative > GOOD_ENOUGH
        if not np.any(open_):
            return ""
        peer = np.max(truth.distance(_of_peer(self.peer, face)), axis=-2)
        self._over_peer = float(np.nanmax([self._over_peer, np.max(_over(error, peer)[open_])]))
        open_ &= ~(error <= PEER_FACTOR * peer)  # a peer without a finite result is none
        open_ |= (relative > GOOD_ENOUGH) & ~np.isfinite(peer)
        if not np.any(open_):
            return ""
        moved = np.max([self._moved(face, changed) for changed in self.changed], axis=0)
        open_ &= ~(error <= DATA_FACTOR * moved)
        if not np.any(open_):
            return ""
        worst = np.unravel_index(np.argmax(np.where(open_, relative, -1.0)), relative.shape)
        return (
            f"{face} off by {relative[worst]:.1e} of its peak (peer {_over(peer, peak)[worst]:.1e}, "
            f"last digit of the data {_over(moved, peak)[worst]:.1e})"
        )

    def _peak(self, face: str) -> Array:
        """The peak of every output or state over all samples, or what stands for it where it is zero."""
        if face == "states":
            peak = _face(self.truth, face).peak
            return np.asarray(np.where(peak > 0.0, peak, np.max(peak, axis=-1, keepdims=True)))
        peak = self.truth.y.peak
        return np.asarray(np.where(peak > 0.0, peak, self.truth.terms))

    def _moved(self, face: str, changed: Response) -> Array:
        """What a change of the data does to the oracle's result, largest over time."""
        before, after = _face(self.truth, face), _face(changed, face)
        return np.asarray(np.max(np.abs((after.mid - before.mid) + (after.low - before.low)), axis=-2))

    @property
    def peer(self) -> PeerResult:
        """The peer's result."""
        if self._peer is None:
            self._peer = solve_by_peer(self.case)
        return self._peer

    @property
    def changed(self) -> list[Response]:
        """The oracle's results for three draws of data that are off in the last digit."""
        case = self.case
        if not self._changed:
            rng = np.random.default_rng(0)
            for _ in range(3):
                data = {**dict(zip("ABCDE", case.system, strict=True)), "x0": case.x0}
                changes = {name: _last_digit(rng, own) for name, own in data.items() if own is not None}
                self._changed.append(_truth(case, **changes))
        return self._changed

    def _above(self) -> list[str]:
        """Where an error is above its bound, whatever the truth is within its radius."""
        found, truth = self.found, self.truth
        pairs: list[tuple[str, Balls, Array, Array]] = [
            ("y", truth.y, found.y, found.bound[..., None, :]),
            ("y at its time", truth.y, found.y, found.bound_at_samples),
        ]
        if found.bound_at_queries is not None and found.face is not None:
            between = _face(truth, "dense")
            pairs.append(("dense at its time", between, found.face, found.bound_at_queries))
        texts = []
        for name, balls, values, bound in pairs:
            error = balls.distance(values)
            certain = error * (1.0 - 2.0**-40) - balls.radius
            if np.any(certain > bound):  # no number is not above: it counts as infinite
                worst = np.max(_over(error, bound)[certain > bound])
                texts.append(f"{name} {worst:.2e} times its bound")
        return texts

    def _tightness(self) -> tuple[float, bool]:
        """The bound over the largest error, worst output; whether that error is half a unit in the last place."""
        found, truth = self.found, self.truth
        error = np.max(truth.y.distance(found.y), axis=-2)
        floor = _HALF_A_UNIT * truth.y.peak
        counts = truth.y.peak > 0.0
        if not np.any(counts):
            return float("nan"), False
        ratio = np.where(counts, found.bound / np.where(counts, np.maximum(error, floor), 1.0), -1.0)
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        worst = np.unravel_index(np.argmax(ratio), ratio.shape)
        return float(ratio[worst]), bool(error[worst] < floor[worst])


def _face(response: Response, face: str) -> Balls:
    balls = {"states": response.x, "dense": response.between}.get(face, response.y)
    assert balls is not None
    return balls


def _of_peer(peer: PeerResult, face: str) -> Array:
    values = {"states": peer.x, "dense": peer.dense}.get(face, peer.y)
    assert values is not None
    return values


def _over(values: Array, by: Array) -> Array:
    """A quotient in which nothing over nothing is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(values == 0.0, 0.0, values / by))


def _last_digit(rng: np.random.Generator, values: Array) -> Array:
    """Every number moved to the double above or below; zeros stay, as a relative change leaves them."""
    moved = np.nextafter(values, np.where(rng.random(values.shape) < 0.5, np.inf, -np.inf))
    return np.where(values == 0.0, 0.0, moved)
