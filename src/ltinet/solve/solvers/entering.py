"""What enters the neurons of a layer, e u + v u̇ less the couplings to later neurons, evaluated for all together.

Evaluating many dense outputs one by one inside a right-hand side is what would make Algorithm 3 slow. Each dense output
is evaluated once, at the Chebyshev nodes between knots, and what enters a neuron becomes one polynomial there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.network.layer import HorizontalLayer
from ltinet.network.neuron import Neuron
from ltinet.signals.signal import Signal
from ltinet.solve.solvers.neuron_path import Forcing, piece_forcing, polynomial_forcing
from ltinet.solve.solvers.options import NeuronOptions
from ltinet.solve.solvers.polynomials import PiecewisePolynomial, from_node_values, node_times
from ltinet.tolerances import EPS

# Between knots the solution is analytic: one polynomial of this degree replaces the pieces of a solver's dense output,
# whose seams would cost the next solver many small steps.
_SMOOTH_DEGREE = 16


@dataclass(frozen=True, eq=False)
class Entering:
    """What enters each neuron of a layer, at the nodes of pieces between knots; `feed` adds what was solved."""

    layer: HorizontalLayer
    signal: Signal
    drive: Signal | None
    """What a polynomial input gives to the neurons, (E u, V u)."""
    feeds: NDArray[np.bool_]
    """Where the output of neuron j enters neuron i."""
    pieces: Array
    nodes: Array
    values: Array
    """`(pieces, nodes, neurons)`."""
    paths: dict[int, PiecewisePolynomial] = field(default_factory=dict)

    def between(self, left: float, right: float) -> "Entering":
        """The same between two of the breaks only, with no neuron solved yet."""
        first, last = np.searchsorted(self.pieces, [left, right]).tolist()
        own = slice(first, last)
        return replace(
            self, pieces=self.pieces[first : last + 1], nodes=self.nodes[own], values=self.values[own], paths={}
        )

    def feed(self, index: int, path: PiecewisePolynomial) -> None:
        """Let the dense output of a neuron enter those before it."""
        self.paths[index] = path
        if self.feeds[:, index].any():
            taken = self._from_neuron(index, self.nodes.ravel())
            np.subtract(self.values, taken.reshape(self.values.shape), out=self.values)

    def polynomial(self, neuron: Neuron, options: NeuronOptions) -> PiecewisePolynomial:
        """What enters a neuron, less a function u: a polynomial between knots, or between seams if that is too rough.

        Across the seams of the dense outputs that feed it the sum is not smooth: where one polynomial between knots
        does not resolve it, integration has to restart at the seams, lest a solver mistake them for dynamics.
        """
        whole = from_node_values(self.pieces, self.values[:, :, neuron.index : neuron.index + 1])
        feeding = np.flatnonzero(self.feeds[neuron.index]).tolist()
        if not feeding:
            return whole
        rough = ~_is_resolved(whole, options)
        if not np.any(rough):
            return whole
        seams = np.unique(np.concatenate([self.paths[j].breaks for j in feeding]))
        inside = np.clip(np.searchsorted(self.pieces, seams, side="right") - 1, 0, len(rough) - 1)
        pieces = np.unique(np.concatenate([self.pieces, seams[rough[inside]]]))
        nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE)
        values = _from_input(self.drive, nodes.ravel(), self.layer.n_neurons)[:, neuron.index]
        for j in feeding:
            values = values - self._from_neuron(j, nodes.ravel())[:, neuron.index]
        return from_node_values(pieces, values.reshape(*nodes.shape, 1))

    def forcing_of(self, neuron: Neuron, path: PiecewisePolynomial, breaks: Array) -> Callable[[int], Forcing]:
        """The right-hand side of a neuron on each interval between breaks, from its polynomial and a function u."""
        ends, series = breaks.tolist(), path.coefficients[:, :, 0]
        across = None if len(path.breaks) == len(breaks) else polynomial_forcing(path)

        def known(k: int) -> Forcing:
            return across or piece_forcing(ends[k], ends[k + 1], series[k])

        signal = self.signal
        if self.drive is not None:
            return known
        return lambda k: _with_function(signal, neuron, known(k), float(np.nextafter(breaks[k + 1], breaks[k])))

    def _from_neuron(self, index: int, times: Array) -> Array:
        """What the output of a neuron takes from those before it, `(len(times), n_neurons)`."""
        before = self.feeds[:, index]
        output = self.paths[index](times)
        taken = np.multiply.outer(output[:, 0], np.where(before, self.layer.K[:, index], 0.0))
        if self.layer.is_second_order[index]:
            taken += np.multiply.outer(output[:, 1], np.where(before, self.layer.C[:, index], 0.0))
        return np.asarray(taken)


def entering(layer: HorizontalLayer, signal: Signal, breaks: Array) -> Entering:
    """What the input alone gives to the neurons of a layer, between breaks and the knots of the input."""
    inner = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    pieces = np.unique(np.concatenate([breaks, inner]))
    feeds = np.triu((layer.K != 0.0) | (layer.C != 0.0), 1)
    known = signal.degree if signal.degree is not None and signal.degree <= _SMOOTH_DEGREE else None
    nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE if feeds.any() else max(known or 1, 1))
    # As few channels as the layer needs, however many inputs there are.
    drive = None if known is None else signal.through(np.vstack([layer.E, layer.V]))
    values = _from_input(drive, nodes.ravel(), layer.n_neurons).reshape(*nodes.shape, layer.n_neurons)
    return Entering(layer, signal, drive, feeds, pieces, nodes, values)


def _from_input(drive: Signal | None, times: Array, n_neurons: int) -> Array:
    """E u + V u̇ of a polynomial, nothing for a function: that is asked for by the solver, wherever it steps."""
    if drive is None:
        return np.zeros((len(times), n_neurons))
    return np.asarray(drive.value(times)[:, :n_neurons] + drive.derivative(times)[:, n_neurons:])


def _is_resolved(path: PiecewisePolynomial, options: NeuronOptions) -> NDArray[np.bool_]:
    """For each piece, whether its last coefficients are lost in the error that the dense outputs have anyhow.

    Where a longest step is given it decides about that error, not the tolerances; then only rounding is lost.
    """
    series = np.abs(path.coefficients[:, :, 0])
    rtol, atol = (options.rtol, options.atol) if np.isinf(options.max_step) else (EPS, 0.0)
    return np.asarray(series[:, -2:].max(axis=1) <= 30.0 * (rtol * series.max() + atol))


def _with_function(signal: Signal, neuron: Neuron, coupling: Forcing, last: float) -> Forcing:
    """A function u and the couplings; asked up to just before the end, where a jump belongs to the next interval."""
    needs_derivative = bool(np.any(neuron.v))

    def forcing(t: float) -> float:
        at = np.array([min(t, last)])
        value = coupling(t) + float(signal.value(at)[0] @ neuron.e)
        return value + float(signal.derivative(at)[0] @ neuron.v) if needs_derivative else value

    return forcing
