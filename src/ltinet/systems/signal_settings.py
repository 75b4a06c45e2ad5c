"""Delays, operating point, hold and sample time of a model.

A model with these settings stands for

    x' = A x + B v,    v_j(t) = u_j(t − τ_j) − u0_j,
    w  = C x + D v,    y_i(t) = w_i(t − σ_i) + y0_i,

with an input delay τ_j ≥ 0 for each input and an output delay σ_i ≥ 0 for each output, both in the unit of time of the
system, and the operating point (u0, y0): y − y0 responds to u − u0. Before a run begins, inputs are at u0 and outputs
at y0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import format_count, sanitize, suggest_names
from ltinet.errors import InvalidSystemError

# MERGED ltinet.systems.signal_settings
# What a prediction needs beside (A, B, C, D): delays, operating point, hold and sample time.
#
# A model with these settings stands for
#
#     x' = A x + B v,    v_j(t) = u_j(t − τ_j) − u0_j,
#     w  = C x + D v,    y_i(t) = w_i(t − σ_i) + y0_i,
#
# with an input delay τ_j ≥ 0 for each input and an output delay σ_i ≥ 0 for each output, both in the unit of time of the
# system, and the operating point (u0, y0): y − y0 responds to u − u0. Before a run begins, inputs are at u0 and outputs
# at y0.

Hold = Literal["linear", "zero"]
Numbers = tuple[float, ...]
_HOLDS: dict[str, Hold] = {"linear": "linear", "foh": "linear", "zero": "zero", "zoh": "zero"}
_WHOLE_SAMPLE_TOLERANCE = (
    1e-9  # samples: how far the delay of a system in discrete time may be from a whole number of them
)
_MAX_LISTED = 5
_MAX_NOTE_LENGTH = 2000


@final
@dataclass(frozen=True)
class SignalSettings:
    """Delays, operating point, hold and sample time of a model; the default has none of them.

    Delays and operating points that are zero in every channel are stored as None, so that equal models compare equal.

    Attributes
    ----------
    input_delay : tuple of float or None
        Delay of each input, in units of time; None for no delay.
    output_delay : tuple of float or None
        Delay of each output.
    u0, y0 : tuple of float or None
        Operating point: y − y0 responds to u − u0.
    hold : {"linear", "zero"} or None
        What inputs do between samples; None if the model does not say.
    sample_time : float or None
        Time between the samples of the data that the model was found in; None if there were none.
    notes : tuple of str
        Notes that `print` shows; not part of equality.
    """

    input_delay: Numbers | None = None
    output_delay: Numbers | None = None
    u0: Numbers | None = None
    y0: Numbers | None = None
    hold: Hold | None = None
    sample_time: float | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for name in ("input_delay", "output_delay", "u0", "y0"):
            object.__setattr__(self, name, _validate_numbers(getattr(self, name), name))
        object.__setattr__(self, "hold", _validate_hold(self.hold))
        object.__setattr__(self, "sample_time", _validate_sample_time(self.sample_time))
        object.__setattr__(self, "notes", _validate_notes(self.notes))

    @classmethod
    def of(cls, *, n_inputs: int, n_outputs: int, **given: Any) -> "SignalSettings":
        """Return settings for a system of this size; a single number stands for all channels.

        Raises
        ------
        InvalidSystemError
            A delay is negative, a number is not finite, or there is not one number for each channel.
        """
        counts = {"input_delay": n_inputs, "u0": n_inputs, "output_delay": n_outputs, "y0": n_outputs}
        for name, count in counts.items():
            value = given.get(name)
            if value is not None and np.ndim(value) == 0:
                given[name] = [value] * count
        return cls(**given).validate_for(n_inputs=n_inputs, n_outputs=n_outputs)

    def validate_for(self, *, n_inputs: int, n_outputs: int, dt: float | None = None) -> "SignalSettings":
        """Return these settings, checked against the size of a system, and its time step if it is discrete in time.

        Raises
        ------
        InvalidSystemError
            There is not one number for each channel, or a delay is not a whole number of time steps.
        """
        for name, count, what in (
            ("input_delay", n_inputs, "input"),
            ("output_delay", n_outputs, "output"),
            ("u0", n_inputs, "input"),
            ("y0", n_outputs, "output"),
        ):
            own = getattr(self, name)
            if own is not None and len(own) != count:
                raise InvalidSystemError(
                    f"{name} has {format_count(len(own), 'number')}, but the system has {format_count(count, what)}; give one "
                    "number for each, or a single number for all"
                )
            if own is not None and dt is not None and name.endswith("delay"):
                steps = np.array(own) / dt
                if np.any(np.abs(steps - np.round(steps)) > _WHOLE_SAMPLE_TOLERANCE):
                    raise InvalidSystemError(
                        f"{name} is {_format_values(own)}, but delays of a system in discrete time must be whole multiples of "
                        f"its time step {dt:g}; convert the system without its delays, or choose another step"
                    )
        return self

    def with_changes(self, changes: Mapping[str, Any], *, n_inputs: int, n_outputs: int) -> "SignalSettings":
        """Return these settings with some of them replaced; a single number stands for all channels.

        Raises
        ------
        InvalidSystemError
            There is no such setting, or a value is not valid.
        """
        known = [own.name for own in fields(self)]
        for name in changes:
            if name not in known:
                raise InvalidSystemError(f"there is no setting {sanitize(repr(name))}; {suggest_names(name, known)}")
        own = {name: getattr(self, name) for name in known}
        return SignalSettings.of(n_inputs=n_inputs, n_outputs=n_outputs, **{**own, **changes})

    @property
    def repr_suffix(self) -> str:
        """What `repr` of a model shows: delays and the hold in full, an operating point by name."""
        parts = [
            f"{name}={list(own)}" if len(own) <= _MAX_LISTED else f"{name}=[… {len(own)} numbers]"
            for name, own in (("input_delay", self.input_delay), ("output_delay", self.output_delay))
            if own is not None
        ]
        parts += [f"{name}=…" for name in ("u0", "y0") if getattr(self, name) is not None]
        parts += [] if self.hold is None else [f"hold={self.hold!r}"]
        parts += [] if self.sample_time is None else [f"sample_time={self.sample_time:g}"]
        return "".join(f", {own}" for own in parts)

    @property
    def is_default(self) -> bool:
        """Whether nothing is set."""
        return self == NO_SETTINGS

    @property
    def has_delays(self) -> bool:
        """Whether an input or an output is delayed."""
        return self.input_delay is not None or self.output_delay is not None

    @property
    def has_operating_point(self) -> bool:
        """Whether u0 or y0 is not zero."""
        return self.u0 is not None or self.y0 is not None

    @property
    def shifts_signals(self) -> bool:
        """Whether inputs or outputs differ from those of (A, B, C, D)."""
        return self.has_delays or self.has_operating_point

    @property
    def delays_only(self) -> "SignalSettings":
        """Return the delays alone, as responses of deviations need them."""
        return SignalSettings(self.input_delay, self.output_delay)

    def array(self, name: str, count: int) -> NDArray[np.float64]:
        """Return one of the settings as an array of `count` numbers, zeros where it is not set."""
        own = getattr(self, name)
        return np.zeros(count) if own is None else np.array(own, dtype=np.float64)

    def total_delay(self, n_outputs: int, n_inputs: int) -> NDArray[np.float64]:
        """Return the delay from each input to each output, `(p, m)`."""
        return self.array("output_delay", n_outputs)[:, None] + self.array("input_delay", n_inputs)

    def with_output(self, index: int) -> "SignalSettings":
        """Return the settings of a system that has one of the outputs."""

        def one(own: Numbers | None) -> Numbers | None:
            return None if own is None else (own[index],)

        return replace(self, output_delay=one(self.output_delay), y0=one(self.y0))

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Lines of a summary: what is set, and notes."""
        found = [
            (label, _format_values(own))
            for label, own in (
                ("input delay", self.input_delay),
                ("output delay", self.output_delay),
                ("u0", self.u0),
                ("y0", self.y0),
            )
            if own is not None
        ]
        if self.hold is not None:
            found.append(("hold", self.hold))
        if self.sample_time is not None:
            found.append(("sample time", f"{self.sample_time:g}"))
        return [*found, *(("note", note) for note in self.notes)]

    @property
    def facts(self) -> dict[str, Any]:
        """Return what is set as plain data, for JSON."""
        names = ("input_delay", "output_delay", "u0", "y0", "hold", "sample_time")
        values = {name: getattr(self, name) for name in names}
        values["remarks"] = self.notes  # the key of notes in network files
        return {name: list(own) if isinstance(own, tuple) else own for name, own in values.items() if own}

    def refuse_unsupported(self, call: str) -> None:
        """Refuse a model with delays or an operating point where a function does not support them.

        Raises
        ------
        InvalidSystemError
            The model has delays or an operating point.
        """
        if not self.shifts_signals:
            return
        what = " and ".join(
            name
            for name, there in (("delays", self.has_delays), ("an operating point", self.has_operating_point))
            if there
        )
        raise InvalidSystemError(
            f"the model has {what}, which {call} does not support; remove what is not supported with "
            "model.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0), and apply it to the signals"
        )

    def __str__(self) -> str:
        if not self.rows:
            return "no delay, no operating point, hold not known"
        return "\n".join(f"{label}: {value}" for label, value in self.rows)


def arguments_from_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `SignalSettings` for stored `SignalSettings.facts`, where notes have the key "remarks"."""
    return {"notes" if name == "remarks" else name: value for name, value in facts.items()}


def _validate_numbers(given: Any, name: str) -> Numbers | None:
    """Return finite numbers, delays not negative; None where all are zero."""
    if given is None:
        return None
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "iuf" or values.ndim != 1:
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidSystemError(
            f"{name} is {sanitize(repr(given))}; give a list with one number for each channel"
        ) from None
    is_delay = name.endswith("delay")
    if not np.all(np.isfinite(values)) or (is_delay and np.any(values < 0.0)):
        wanted = "finite numbers from 0 on, in units of time" if is_delay else "finite numbers"
        raise InvalidSystemError(f"{name} is {_format_values(values.tolist())}; give {wanted}")
    return tuple((values + 0.0).tolist()) if np.any(values) else None


def _validate_hold(hold: Any) -> Hold | None:
    if hold is None:
        return None
    if not isinstance(hold, str) or hold not in _HOLDS:
        raise InvalidSystemError(
            f'hold is {sanitize(repr(hold))}; give "linear" or "foh" (straight lines), "zero" or "zoh" (steps), or None'
        )
    return _HOLDS[hold]


def _validate_sample_time(value: Any) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < np.inf:
        raise InvalidSystemError(f"sample_time is {sanitize(repr(value))}; give a positive number, or None")
    return float(value)


def _validate_notes(given: Any) -> tuple[str, ...]:
    notes = () if given is None else tuple(given)
    if isinstance(given, str) or not all(isinstance(own, str) and own.isprintable() for own in notes):
        raise InvalidSystemError("notes must be a list of texts without control characters")
    if any(len(own) > _MAX_NOTE_LENGTH for own in notes):
        raise InvalidSystemError(f"a note has more than {_MAX_NOTE_LENGTH} characters")
    return notes


def _format_values(values: Sequence[float]) -> str:
    first = ", ".join(f"{value:.6g}" for value in values[:_MAX_LISTED])
    return first if len(values) <= _MAX_LISTED else f"{first}, … ({len(values)} in all)"


NO_SETTINGS = SignalSettings()
"""Settings of a model without delay and operating point, of unknown hold."""
