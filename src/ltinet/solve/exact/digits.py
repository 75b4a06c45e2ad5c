"""How many digits of its outputs a network keeps, to choose between two networks of one system."""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact.certify import certify
from ltinet.solve.exact.engine import ExactEngine
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.trajectory import ExactTrajectory
from ltinet.solve.modal import ModalSystem
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.propagators import phi_functions
from ltinet.tolerances import EPS

_STEPS, _STEP = 1000, 0.3  # a run in steps of so many times 1/|λ|max, the fastest time constant
_MARGIN = 100.0  # by which an estimate may be wrong


def certified_error(prepared: PreparedNetwork) -> float:
    """The largest certified error of an output over 1,000 steps of 0.3/|λ|max, relative to its size in such a run.

    From rest, for any input, and from a state in which all states of the user are one in size. Infinite where such a
    run exceeds all numbers.
    """
    try:
        return _certified_error(prepared)
    except SimulationError:
        return math.inf


def _certified_error(prepared: PreparedNetwork) -> float:
    step, largest = _probe(prepared)
    is_seen = largest > 0.0
    if not is_seen.any():
        return _from_a_state(prepared, step)
    certificate = certify(prepared, horizon=_STEPS * step, n_steps=_STEPS)
    return max(float(np.max(certificate.total[is_seen] / largest[is_seen])), _from_a_state(prepared, step))


def _from_a_state(prepared: PreparedNetwork, step: float) -> float:
    """The bound of a run from a state without input, relative to the outputs."""
    t = step * np.arange(_STEPS + 1, dtype=np.float64)
    signal = SampledSignal(t, np.zeros((len(t), prepared.system.n_inputs)), hold="linear")
    x0 = np.random.default_rng(1).choice([-1.0, 1.0], size=prepared.system.n_states)
    trajectory = ExactTrajectory(prepared, signal, x0)
    (bound,) = judge_exact(trajectory, float(t[0]), float(t[-1]))
    largest = np.max(np.abs(trajectory.sampled_outputs(threads=1)), axis=0)
    return worst_share(np.asarray(sum(bound.overall().values())), largest)


def surely_below(prepared: PreparedNetwork, error: float) -> bool:
    """Whether an estimate of the relative error of outputs is far below a given one; a certificate takes much longer.

    Neurons without connections err by eps of their own share in an output, Σ |c||b| ∫ exp(Re λ t) dt, which exceeds
    the output where shares cancel.
    """
    form = prepared.form
    if form is None or prepared.network.n_connections > 0:
        return False
    step, largest = _probe(prepared, at_plateaus=not prepared.system.blocks)
    is_seen = largest != 0.0  # or unknown, where it overflows
    if not is_seen.any():
        return True
    rate, horizon = np.concatenate(form.eigenvalues).real, _STEPS * step
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        lives = np.where(rate * horizon == 0.0, horizon, np.expm1(rate * horizon) / rate)
        shares = np.abs(prepared.blocks.C) @ (lives * np.abs(prepared.blocks.B).sum(axis=1))
    return bool(_MARGIN * EPS * np.max(shares[is_seen] / largest[is_seen]) <= error)


def _probe(prepared: PreparedNetwork, *, at_plateaus: bool = False) -> tuple[float, Array]:
    """A step of the time axis, and how large each output becomes in a run from rest with |u| = 1.

    The size is measured: a bound on it would grow as the error does where neurons cancel. `at_plateaus` looks at few
    times, for systems of scalars only, and finds no more than there is.
    """
    blocks = prepared.blocks
    values = np.concatenate([np.zeros(1), *(prepared.form.eigenvalues if prepared.form is not None else ())])
    fastest = float(np.max(np.abs(values)))
    if fastest == 0.0 or blocks.B.shape[1] == 0 or len(blocks.C) == 0:
        return 1.0, np.zeros(len(blocks.C))
    step = _STEP / fastest
    lengths = 2 ** np.arange(10, dtype=np.intp)  # plateaus of all lengths, for fast neurons and for slow ones
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(lengths), blocks.B.shape[1]))
    if at_plateaus:
        return step, _largest_at_plateaus(prepared.system, signs, lengths=np.asarray(step * lengths, dtype=np.float64))
    t = step * np.arange(_STEPS + 1, dtype=np.float64)
    signal = SampledSignal(t, np.repeat(signs, lengths, axis=0)[: len(t)], hold="linear")
    solution = ExactEngine().run(prepared, signal, t, x0=None, n_jobs=1, options={})
    return step, np.max(np.abs(solution.y), axis=0)


def _largest_at_plateaus(system: ModalSystem, u: Array, *, lengths: Array) -> Array:
    """The largest |y| amid and at the end of plateaus of the input, each in two exact steps of all scalars at once."""
    steps, inputs = np.repeat(0.5 * lengths, 2)[:, None], np.repeat(u, 2, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.exp(steps * system.rates)
        driven = steps * phi_functions(steps * system.rates)[0] * (inputs @ system.B.T)
        v, states = np.zeros_like(system.rates), np.empty_like(driven)
        for place in range(len(steps)):
            v = states[place] = growth[place] * v + driven[place]
        return np.asarray(np.max(np.abs((states @ system.C.T).real + inputs @ system.D.T), axis=0))
