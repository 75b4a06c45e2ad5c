"""View service of the explorer: computes the views of a state and caches recent subjects, networks, runs and views."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import LRUCache, cached_property
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError
from ltinet.explorer.excitation import ExcitationRun, build_run, channel_index, simulate_run
from ltinet.explorer.files import Upload
from ltinet.explorer.state import ViewState
from ltinet.explorer.subject import Subject, build_subject
from ltinet.explorer.views import (
    JSONObject,
    architecture_view,
    band_view,
    block_pattern_view,
    bode_view,
    encode_json,
    engines_view,
    facts_view,
    original_pattern_view,
    poles_view,
    reduction_view,
    response_view,
    share_view,
    tradeoff_view,
)
from ltinet.simulation.solution import Solution

_SUBJECTS, _VIEWS_CACHED, _RUNS, _WRITTEN = (
    3,
    8,
    8,
    64,
)  # a network keeps megabytes, a view as it was written some 60 kB


@final
@dataclass(frozen=True, eq=False)
class CachedView:
    """A rung of a subject, with what all views of it share."""

    subject: Subject
    place: int

    @cached_property
    def net(self) -> DynamicNetwork:
        """Its network."""
        return self.subject.network(self.place)

    @cached_property
    def answer(self) -> NDArray[np.complex128]:
        """H(jω) of the network."""
        return self.net.frequency_response(self.subject.frequencies)

    @cached_property
    def drawings(self) -> JSONObject:
        """What depends on the network alone."""
        return {
            "facts": facts_view(self.subject, self.net),
            "architecture": architecture_view(self.net),
            "poles": poles_view(self.net),
            "after": block_pattern_view(self.net),
        }


@final
class ViewService:
    """Files that were dropped, and what was last computed from them."""

    def __init__(self) -> None:
        self.files: dict[str, Upload] = {}
        self._subjects: LRUCache[Subject] = LRUCache(_SUBJECTS)
        self._seen: LRUCache[CachedView] = LRUCache(_VIEWS_CACHED)
        self._runs: LRUCache[tuple[ExcitationRun, Solution]] = LRUCache(_RUNS)
        self._written: LRUCache[bytes] = LRUCache(_WRITTEN)
        self._before: dict[tuple[Any, ...], int] = {}

    def written_view(self, state: ViewState) -> bytes:
        """The view as JSON; the last ones are kept as they were written."""
        return self._written.get(state, lambda: encode_json(self.view(state)))

    def view(self, state: ViewState) -> JSONObject:
        """Everything that is drawn at once."""
        seen = self.seen(state)
        subject, net = seen.subject, seen.net
        run, solution = self.run(state)
        input, output = self.channels(state, net)
        share, missed = self._share(state)
        return {
            "title": subject.title,
            "notes": [*subject.notes, *missed, *_counted_from(net, run)],
            "k": state.k,
            **seen.drawings,
            "before": original_pattern_view(subject),
            "trade": tradeoff_view(subject, seen.place),
            "reduction": reduction_view(subject),
            "bode": bode_view(subject, seen.answer, input=input, output=output),
            "response": response_view(run, solution, input=input, output=output),
            "share": share,
        }

    def band(self, state: ViewState) -> JSONObject:
        """The certified band, which takes longer than the curve."""
        seen = self.seen(state)
        return band_view(seen.net, self.run(state)[0], output=self.channels(state, seen.net)[1])

    def engines(self, state: ViewState) -> JSONObject:
        """The engines compared."""
        seen = self.seen(state)
        return engines_view(seen.net, self.run(state)[0], output=self.channels(state, seen.net)[1])

    def subject(self, state: ViewState) -> Subject:
        """What the state is about."""
        return self._subjects.get(state.subject, lambda: build_subject(state, self.files))

    def seen(self, state: ViewState) -> CachedView:
        """The rung that the state buys."""
        subject = self.subject(state)
        return self._at(state, subject.place(state.k))

    def run(self, state: ViewState) -> tuple[ExcitationRun, Solution]:
        """The run that the state asks for."""
        seen = self.seen(state)
        key = (state.subject, seen.place, state.u, state.T, state.input, state.output)

        def made() -> tuple[ExcitationRun, Solution]:
            run = build_run(seen.subject, state, seen.net, self.files)
            return run, simulate_run(seen.net, run)

        return self._runs.get(key, made)

    def neighbours(self, state: ViewState) -> Iterator[ViewState]:
        """States that a press of a key may ask for next; preparing one is a call of `written_view`."""
        subject = self.subject(state)
        place, before = subject.place(state.k), self._before.get(state.subject, 0)
        self._before = {state.subject: place}
        ahead = -1 if place < before else 1  # whoever goes one way goes on
        for other in (place + ahead, place + 2 * ahead, place - ahead):
            if 0 <= other < len(subject.budgets):
                wanted = replace(state, k=subject.budgets[other], pick=None)
                if wanted not in self._written:
                    yield wanted

    def channels(self, state: ViewState, net: DynamicNetwork) -> tuple[int, int]:
        """Input and output, counted from 0."""
        return (
            channel_index(state.input, net.n_inputs, "input"),
            channel_index(state.output, net.n_outputs, "output"),
        )

    def _share(self, state: ViewState) -> tuple[JSONObject | None, list[str]]:
        """What the neuron that was picked adds to the output; another budget may have no such neuron, which is told."""
        if state.pick is None:
            return None, []
        net, (run, solution) = self.seen(state).net, self.run(state)
        try:
            return share_view(net, run, solution, pick=state.pick, output=self.channels(state, net)[1]), []
        except InvalidNetworkError as error:
            return None, [str(error)]

    def _at(self, state: ViewState, place: int) -> CachedView:
        return self._seen.get((state.subject, place), lambda: CachedView(self.subject(state), place))


def _counted_from(net: DynamicNetwork, run: ExcitationRun) -> list[str]:
    if net.signal_settings.has_operating_point and not run.settings.has_operating_point:
        return ["curves over time are deviations from the operating point"]
    return []
