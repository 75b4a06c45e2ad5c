"""Delays, operating point, hold and sample time of a model.

A model with these settings stands for

    x' = A x + B v,    v_j(t) = u_j(t − τ_j) − u0_j,
    w  = C x + D v,    y_i(t) = w_i(t − σ_i) + y0_i,

with an input delay τ_j ≥ 0 for each input and an output delay σ_i ≥ 0 for each output, both in the unit of time of the
system, and the operating point (u0, y0): y − y0 responds to u − u0. Before a run begins, inputs are at u0 and outputs
at y0.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import format_count, sanitize, suggest_names
from ltinet.errors import InvalidSystemError

Hold = Literal["linear", "zero"]
Numbers = tuple[float, ...]
_HOLDS: dict[str, Hold] = {"linear": "linear", "foh": "linear", "zero": "zero", "zoh": "zero"}
_DELAY_TOLERANCE = 1e-9  # time steps: deviation of a delay in discrete time from a multiple of the time step
_MAX_LISTED = 5  # numbers in messages and summaries
_MAX_NOTE_LENGTH = 2000  # characters


@final
@dataclass(frozen=True)
class SignalSettings:
    """Delays, operating point, hold and sample time of a model; the default has none of them.

    Delays and operating points that are zero in every channel are stored as None, so that equal models compare equal.

    Parameters
    ----------
    input_delay : sequence of float, optional
        Delay of each input, in units of time; None for no delay.
    output_delay : sequence of float, optional
        Delay of each output.
    u0, y0 : sequence of float, optional
        Operating point: y − y0 responds to u − u0.
    hold : {"linear", "zero"}, optional
        Interpolation of inputs between samples; None if the model does not specify it.
    sample_time : float, optional
        Time between samples of the data that the model was identified from.
    notes : sequence of str, optional
        Notes that `print` shows; not compared.

    Raises
    ------
    InvalidSystemError
        If a value is not valid, such as a negative delay.
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
    def of(cls, *, n_inputs: int, n_outputs: int, **settings: Any) -> "SignalSettings":
        """Create settings for a system; a single number applies to all channels.

        Parameters
        ----------
        n_inputs, n_outputs : int
            Size of the system.
        **settings
            Settings by name, as for the class.

        Returns
        -------
        SignalSettings
            Settings that fit the system.

        Raises
        ------
        InvalidSystemError
            If a delay is negative, a number is not finite, or there is not one number for each channel.
        """
        counts = {"input_delay": n_inputs, "u0": n_inputs, "output_delay": n_outputs, "y0": n_outputs}
        for name, count in counts.items():
            value = settings.get(name)
            if value is not None and np.ndim(value) == 0:
                settings[name] = [value] * count
        return cls(**settings).validate_for(n_inputs=n_inputs, n_outputs=n_outputs)

    def validate_for(self, *, n_inputs: int, n_outputs: int, dt: float | None = None) -> "SignalSettings":
        """Check these settings against a system and return them.

        Parameters
        ----------
        n_inputs, n_outputs : int
            Size of the system.
        dt : float, optional
            Time step of a system in discrete time.

        Returns
        -------
        SignalSettings
            These settings.

        Raises
        ------
        InvalidSystemError
            If there is not one number for each channel, or a delay is not a multiple of the time step.
        """
        for name, count, channel in (
            ("input_delay", n_inputs, "input"),
            ("output_delay", n_outputs, "output"),
            ("u0", n_inputs, "input"),
            ("y0", n_outputs, "output"),
        ):
            values = getattr(self, name)
            if values is not None and len(values) != count:
                raise InvalidSystemError(
                    f"{name} has {format_count(len(values), 'number')}, but the system has "
                    f"{format_count(count, channel)}; give one number for each, or a single number for all"
                )
            if values is not None and dt is not None and name.endswith("delay"):
                steps = np.array(values) / dt
                if np.any(np.abs(steps - np.round(steps)) > _DELAY_TOLERANCE):
                    raise InvalidSystemError(
                        f"{name} must be multiples of the time step {dt:g}, got {_format_values(values)}; convert the system "
                        "without its delays, or choose another time step"
                    )
        return self

    def with_changes(self, changes: Mapping[str, Any], *, n_inputs: int, n_outputs: int) -> "SignalSettings":
        """Return these settings with some of them replaced.

        Parameters
        ----------
        changes : mapping of str to object
            New values by name; a single number applies to all channels.
        n_inputs, n_outputs : int
            Size of the system.

        Returns
        -------
        SignalSettings
            New settings.

        Raises
        ------
        InvalidSystemError
            If a setting is unknown or a value is not valid.
        """
        known = [setting.name for setting in fields(self)]
        for name in changes:
            if name not in known:
                raise InvalidSystemError(f"there is no setting {sanitize(repr(name))}; {suggest_names(name, known)}")
        current = {name: getattr(self, name) for name in known}
        return SignalSettings.of(n_inputs=n_inputs, n_outputs=n_outputs, **{**current, **changes})

    @property
    def repr_suffix(self) -> str:
        """Settings for the end of the `repr` of a model: delays and hold in full, an operating point by name."""
        parts = [
            f"{name}={list(delays)}" if len(delays) <= _MAX_LISTED else f"{name}=[… {len(delays)} numbers]"
            for name, delays in (("input_delay", self.input_delay), ("output_delay", self.output_delay))
            if delays is not None
        ]
        parts += [f"{name}=…" for name in ("u0", "y0") if getattr(self, name) is not None]
        parts += [] if self.hold is None else [f"hold={self.hold!r}"]
        parts += [] if self.sample_time is None else [f"sample_time={self.sample_time:g}"]
        return "".join(f", {part}" for part in parts)

    @property
    def is_default(self) -> bool:
        """True if nothing is set; notes are ignored."""
        return self == NO_SETTINGS

    @property
    def has_delays(self) -> bool:
        """True if an input or an output is delayed."""
        return self.input_delay is not None or self.output_delay is not None

    @property
    def has_operating_point(self) -> bool:
        """True if u0 or y0 is not zero."""
        return self.u0 is not None or self.y0 is not None

    @property
    def shifts_signals(self) -> bool:
        """True if there are delays or an operating point: inputs or outputs differ from those of (A, B, C, D)."""
        return self.has_delays or self.has_operating_point

    @property
    def delays_only(self) -> "SignalSettings":
        """Settings with the delays only, as responses of deviations need them."""
        return SignalSettings(self.input_delay, self.output_delay)

    def array(self, name: str, count: int) -> NDArray[np.float64]:
        """Return a setting as an array.

        Parameters
        ----------
        name : {"input_delay", "output_delay", "u0", "y0"}
            Setting.
        count : int
            Number of channels.

        Returns
        -------
        ndarray, shape (count,)
            Values; zeros if the setting is None.
        """
        values = getattr(self, name)
        return np.zeros(count) if values is None else np.array(values, dtype=np.float64)

    def total_delay(self, n_outputs: int, n_inputs: int) -> NDArray[np.float64]:
        """Return the delay from each input to each output.

        Parameters
        ----------
        n_outputs, n_inputs : int
            Size of the system.

        Returns
        -------
        ndarray, shape (n_outputs, n_inputs)
            Sums of output and input delays.
        """
        return self.array("output_delay", n_outputs)[:, None] + self.array("input_delay", n_inputs)

    def with_output(self, index: int) -> "SignalSettings":
        """Return the settings of the system with one of the outputs.

        Parameters
        ----------
        index : int
            Index of the output.

        Returns
        -------
        SignalSettings
            Settings with the delay and the operating point of that output.
        """
        delay, y0 = (None if values is None else (values[index],) for values in (self.output_delay, self.y0))
        return replace(self, output_delay=delay, y0=y0)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Rows of a summary: settings that are not default, and notes."""
        names = ("input_delay", "output_delay", "u0", "y0")
        values = {name.replace("_", " "): getattr(self, name) for name in names}
        rows = [(label, _format_values(value)) for label, value in values.items() if value is not None]
        if self.hold is not None:
            rows.append(("hold", self.hold))
        if self.sample_time is not None:
            rows.append(("sample time", f"{self.sample_time:g}"))
        return [*rows, *(("note", note) for note in self.notes)]

    @property
    def facts(self) -> dict[str, Any]:
        """Settings that are not default as plain data, for JSON; notes have the key "remarks" of network files."""
        values = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        values["remarks"] = values.pop("notes")
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}

    def refuse_unsupported(self, call: str) -> None:
        """Raise InvalidSystemError if the model has delays or an operating point, which a function does not support.

        Parameters
        ----------
        call : str
            Function, for the message.

        Raises
        ------
        InvalidSystemError
            If the model has delays or an operating point.
        """
        if not self.shifts_signals:
            return
        flags = {"delays": self.has_delays, "an operating point": self.has_operating_point}
        what = " and ".join(name for name, is_set in flags.items() if is_set)
        raise InvalidSystemError(
            f"{call} does not support models with {what}; remove them with "
            "model.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0), and apply them to the signals"
        )

    def __str__(self) -> str:
        lines = [f"{label}: {value}" for label, value in self.rows]
        return "\n".join(lines) or "no delay, no operating point, hold unknown"


def arguments_from_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `SignalSettings` for stored `SignalSettings.facts`, where notes have the key "remarks"."""
    return {"notes" if name == "remarks" else name: value for name, value in facts.items()}


def _validate_numbers(value: Any, name: str) -> Numbers | None:
    """Return finite numbers, delays not negative; None if all are zero."""
    if value is None:
        return None
    try:
        values = np.asarray(value)
        if values.dtype.kind not in "iuf" or values.ndim != 1:
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidSystemError(
            f"{name} must be a list with one number for each channel, got {sanitize(repr(value))}"
        ) from None
    is_delay = name.endswith("delay")
    if not np.all(np.isfinite(values)) or (is_delay and np.any(values < 0.0)):
        expected = "finite numbers ≥ 0 in units of time" if is_delay else "finite numbers"
        raise InvalidSystemError(f"{name} must contain {expected}, got {_format_values(values.tolist())}")
    return tuple((values + 0.0).tolist()) if np.any(values) else None


def _validate_hold(hold: Any) -> Hold | None:
    if hold is None:
        return None
    if not isinstance(hold, str) or hold not in _HOLDS:
        raise InvalidSystemError(
            f'hold must be "linear" or "foh" (straight lines), "zero" or "zoh" (steps), or None, got {sanitize(repr(hold))}'
        )
    return _HOLDS[hold]


def _validate_sample_time(value: Any) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < np.inf:
        raise InvalidSystemError(f"sample_time must be a positive number or None, got {sanitize(repr(value))}")
    return float(value)


def _validate_notes(value: Any) -> tuple[str, ...]:
    notes = () if value is None else tuple(value)
    if isinstance(value, str) or not all(isinstance(note, str) and note.isprintable() for note in notes):
        raise InvalidSystemError("notes must be a list of texts without control characters")
    if any(len(note) > _MAX_NOTE_LENGTH for note in notes):
        raise InvalidSystemError(f"a note has more than {_MAX_NOTE_LENGTH} characters")
    return notes


def _format_values(values: Sequence[float]) -> str:
    first = ", ".join(f"{value:.6g}" for value in values[:_MAX_LISTED])
    return first if len(values) <= _MAX_LISTED else f"{first}, … ({len(values)} in all)"


NO_SETTINGS = SignalSettings()
"""Default settings: no delays, no operating point, unknown hold and sample time."""


class ModelSignals:
    """Base class of models with signal settings: delays, operating point, hold and sample time as properties."""

    signal_settings: SignalSettings

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number of inputs m."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs p."""

    @property
    def input_delay(self) -> NDArray[np.float64]:
        """Delay of each input in units of time, `(m,)`."""
        return self.signal_settings.array("input_delay", self.n_inputs)

    @property
    def output_delay(self) -> NDArray[np.float64]:
        """Delay of each output in units of time, `(p,)`."""
        return self.signal_settings.array("output_delay", self.n_outputs)

    @property
    def u0(self) -> NDArray[np.float64]:
        """Operating point of the inputs, `(m,)`: y − y0 responds to u − u0."""
        return self.signal_settings.array("u0", self.n_inputs)

    @property
    def y0(self) -> NDArray[np.float64]:
        """Operating point of the outputs, `(p,)`."""
        return self.signal_settings.array("y0", self.n_outputs)

    @property
    def hold(self) -> Hold | None:
        """Interpolation of inputs between samples, "linear" or "zero"; None if the model does not specify it."""
        return self.signal_settings.hold

    @property
    def sample_time(self) -> float | None:
        """Time between samples of the data that the model was identified from; None if there is no such data."""
        return self.signal_settings.sample_time
