"""View service of the explorer: computes the views of a state and caches recent subjects, networks, runs and views."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import LRUCache, cached_property
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError
from ltinet.explorer import views
from ltinet.explorer.files import Upload
from ltinet.explorer.state import ViewState
from ltinet.explorer.subject import ExcitationRun, Subject, build_run, build_subject, channel_index, simulate_run
from ltinet.explorer.views import JSONObject
from ltinet.simulation.solution import Solution

# Sizes of caches: a subject or network takes megabytes, a view as JSON some 60 kB.
_N_SUBJECTS, _N_VIEWS, _N_RUNS, _N_JSON = 3, 8, 8, 64


@final
@dataclass(frozen=True, eq=False)
class CachedView:
    """A point of a subject's trade-off curve, with results that all its views share."""

    subject: Subject
    index: int

    @cached_property
    def net(self) -> DynamicNetwork:
        """Network of the point."""
        return self.subject.network(self.index)

    @cached_property
    def response(self) -> NDArray[np.complex128]:
        """H(jω) of the network."""
        return self.net.frequency_response(self.subject.frequencies)

    @cached_property
    def drawings(self) -> JSONObject:
        """Parts of a view that depend on the network alone."""
        return {
            "facts": views.facts_view(self.subject, self.net),
            "architecture": views.architecture_view(self.net),
            "products": views.products_view(self.subject, self.net),
            "poles": views.poles_view(self.net),
            "after": views.block_pattern_view(self.net),
        }


@final
class ViewService:
    """Uploaded files, and caches of the results computed from them."""

    def __init__(self) -> None:
        self.files: dict[str, Upload] = {}
        self._subjects: LRUCache[Subject] = LRUCache(_N_SUBJECTS)
        self._views: LRUCache[CachedView] = LRUCache(_N_VIEWS)
        self._runs: LRUCache[tuple[ExcitationRun, Solution]] = LRUCache(_N_RUNS)
        self._json: LRUCache[bytes] = LRUCache(_N_JSON)
        self._previous_points: dict[tuple[Any, ...], int] = {}

    def prepare(self, state: ViewState) -> JSONObject:
        """Compute what all limits on cond(T) have in common."""
        self.subject(state).curve  # noqa: B018 - a cached property
        return {}

    def view_json(self, state: ViewState) -> bytes:
        """Return the view as JSON, from the cache if possible."""
        return self._json.get(state, lambda: views.encode_json(self.view(state)))

    def view(self, state: ViewState) -> JSONObject:
        """Return all parts of a view."""
        cached = self.cached_view(state)
        subject, net = cached.subject, cached.net
        run, solution = self.run(state)
        input, output = self.channels(state, net)
        share, missed = self._share(state)
        return {
            "title": subject.title,
            "notes": [*subject.notes, *missed, *_counted_from(net, run)],
            "k": state.k,
            **cached.drawings,
            "before": views.original_pattern_view(subject),
            "trade": views.tradeoff_view(subject, cached.index),
            "reduction": views.reduction_view(subject),
            "bode": views.bode_view(subject, cached.response, input=input, output=output),
            "response": views.response_view(run, solution, input=input, output=output),
            "share": share,
        }

    def band(self, state: ViewState) -> JSONObject:
        """Return the certified band, which takes longer than the curve."""
        cached = self.cached_view(state)
        return views.band_view(cached.net, self.run(state)[0], output=self.channels(state, cached.net)[1])

    def engines(self, state: ViewState) -> JSONObject:
        """Return the comparison of engines."""
        cached = self.cached_view(state)
        return views.engines_view(cached.net, self.run(state)[0], output=self.channels(state, cached.net)[1])

    def subject(self, state: ViewState) -> Subject:
        """Return the subject of a state."""
        return self._subjects.get(state.subject, lambda: build_subject(state, self.files))

    def cached_view(self, state: ViewState) -> CachedView:
        """Return the point of the trade-off curve that the state selects."""
        subject = self.subject(state)
        index = subject.point_index(state.k)
        return self._views.get((state.subject, index), lambda: CachedView(subject, index))

    def run(self, state: ViewState) -> tuple[ExcitationRun, Solution]:
        """Return the run of a state and its solution."""
        cached = self.cached_view(state)
        key = (state.subject, cached.index, state.u, state.T, state.input, state.output)

        def compute() -> tuple[ExcitationRun, Solution]:
            run = build_run(cached.subject, state, cached.net, self.files)
            return run, simulate_run(cached.net, run)

        return self._runs.get(key, compute)

    def neighbors(self, state: ViewState) -> Iterator[ViewState]:
        """Yield states that the next key press may request; `view_json` prepares them."""
        subject = self.subject(state)
        index, previous = subject.point_index(state.k), self._previous_points.get(state.subject, 0)
        self._previous_points = {state.subject: index}
        step = -1 if index < previous else 1  # the slider mostly continues in the same direction
        for other in (index + step, index + 2 * step, index - step):
            if 0 <= other < len(subject.budgets):
                neighbor = replace(state, k=subject.budgets[other], pick=None)
                if neighbor not in self._json:
                    yield neighbor

    def channels(self, state: ViewState, net: DynamicNetwork) -> tuple[int, int]:
        """Return the indices of input and output."""
        input = channel_index(state.input, net.n_inputs, "input")
        return input, channel_index(state.output, net.n_outputs, "output")

    def _share(self, state: ViewState) -> tuple[JSONObject | None, list[str]]:
        """Return the contribution of the picked neuron, or a note if the network has no such neuron."""
        if state.pick is None:
            return None, []
        net, (run, solution) = self.cached_view(state).net, self.run(state)
        output = self.channels(state, net)[1]
        try:
            return views.share_view(net, run, solution, neuron_indices=state.pick, output=output), []
        except InvalidNetworkError as error:
            return None, [str(error)]


def _counted_from(net: DynamicNetwork, run: ExcitationRun) -> list[str]:
    if net.signal_settings.has_operating_point and not run.settings.has_operating_point:
        return ["curves over time are deviations from the operating point"]
    return []
