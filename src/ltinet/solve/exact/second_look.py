"""A second look at runs that show far less of a system than trials did: inputs that begin late, or cancel themselves.

By trials it is known how outputs come out right to 1e-12 of what is usual. Of an output in which that would show
(`least_peaks`) they say nothing: it is run both ways itself, one of them in a hurry first, and where these differ, one
to more digits decides, or their bounds.
"""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact.error_bound import largest_errors
from ltinet.solve.exact.excitation import Kinds, looked_at
from ltinet.solve.exact.hasty_outputs import hasty_outputs
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.exact.least_peaks import LeastPeaks
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import peaks
from ltinet.solve.exact.surest import MODERATE, SURE
from ltinet.solve.exact.trials import Steps, Trial
from ltinet.solve.exact.true_outputs import true_outputs
from ltinet.solve.prepared import PreparedNetwork

_KEPT = 16  # kinds of inputs that are looked at


def needs_second_look(prepared: PreparedNetwork, samples: SampledSignal, y: Array) -> bool:
    """Whether some output `(..., T, p)` is far less than inputs of such sizes usually make it."""
    if not _may_be_lost(prepared, samples) or prepared.as_given is None or not y.size:
        return False
    outputs = y.reshape(-1, *y.shape[-2:])
    little = _least(prepared, samples)
    # Some times mostly tell that all is well.
    return all(bool(_is_between(peaks(own), little).any()) for own in (looked_at(outputs), outputs))


def _may_be_lost(prepared: PreparedNetwork, samples: SampledSignal) -> bool:
    """Whether it is asked: of few states always, of more where inputs begin late."""
    if prepared.is_small:
        return True
    u = samples.u  # whose first number mostly tells
    return not (u.size and u.item(0)) and prepared.network.n_states <= MODERATE and not u[..., 0, :].any()


def shows_less(prepared: PreparedNetwork, samples: SampledSignal, seen: Array) -> NDArray[np.bool_]:
    """Which outputs of which members `(batch, p)` have peaks far below what is usual."""
    return _is_between(seen, _least(prepared, samples))


def _is_between(seen: Array, little: Array) -> NDArray[np.bool_]:
    return np.asarray((seen > 0.0) & (seen < little))


@QUIETLY
def _least(prepared: PreparedNetwork, samples: SampledSignal) -> Array:
    """Peaks of which trials with inputs of such sizes say something, `(batch, p)`; of kinds beyond many, none."""
    steps, kinds = Steps.of(samples), Kinds.of(samples)
    found = np.full((len(kinds.sizes), prepared.system.n_outputs), np.inf)
    if not steps.longest > 0.0:
        return np.zeros((len(kinds.of_members), found.shape[1]))
    for own, sizes in zip(found[:_KEPT], kinds.sizes, strict=False):
        own[:] = prepared.keep(LeastPeaks).of(Trial(*steps.whole, samples.hold, sizes))
    largest = peaks(samples.u.reshape(len(kinds.of_members), samples.u.shape[-2] * samples.u.shape[-1], 1))
    return np.asarray(largest * found[kinds.of_members])


@QUIETLY
def is_surer(other: ExactPath, one: ExactPath, outputs: Array | None) -> bool:
    """Whether outputs of another run differ from those of one, which may be known, and are surer."""
    try:
        first = np.asarray(one.sampled_outputs(threads=1)) if outputs is None else outputs
        own_peak, in_haste = peaks(first), hasty_outputs(other)
        if in_haste is not None and _agree(first, in_haste.reshape(first.shape), own_peak) and own_peak.all():
            return False
        second = np.asarray(other.sampled_outputs(threads=1))
    except SimulationError:
        return False
    if _agree(first, second, own_peak):
        return False
    peak = np.maximum(own_peak, peaks(second))
    truth = true_outputs(other)
    if truth is None:
        errors = [largest_errors(own).reshape(peak.shape) for own in (one, other)]
    else:
        errors = [peaks(own - truth.reshape(own.shape)) for own in (first, second)]
    doubts = [worst_share(error, peak) for error in errors]
    return doubts[1] < doubts[0]


def _agree(first: Array, second: Array, peak: Array) -> bool:
    return bool(np.all(peaks(first - second) <= SURE * peak))
