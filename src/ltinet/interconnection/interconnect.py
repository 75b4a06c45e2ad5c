"""Interconnections by names: `interconnect` and `summing_junction`.

Signals are written as in python-control: "plant.y1" is a signal of a system, "plant" all of its inputs or outputs, and
"y1" the signals of that name in all systems together: as a destination each of them, as a source their sum.
"-plant.y1" has the sign −1, ("plant", "y1", -2.0) a gain. A name without its index stands for all signals that have one,
channel by channel: "plant.u" for u[0], u[1], … or, where signals have default names, u1, u2, …; "plant.u[1:3]" selects
some of them, counted from 0.

A specification is resolved to channels, each a vector of gains over all inputs or all outputs of all systems. Without a
list of connections every input is connected to the outputs of the same name.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_first_names, sanitize, suggest_names
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.algebra import as_operand
from ltinet.interconnection.connection import connect
from ltinet.interconnection.delays import Wiring
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_names import Names, SignalNames

_MAX_NAME_LENGTH = 200  # characters of a name, as for all names of signals


class Channel(NamedTuple):
    """A signal of an interconnection: its name, and a gain for every input or output of the systems."""

    name: str
    gains: Array


def summing_junction(
    inputs: Any = None, output: Any = None, *, dimension: int | None = None, dt: float | None = None
) -> StateSpace:
    """Create a system that adds its inputs, for `interconnect`.

    Parameters
    ----------
    inputs : sequence of str or int
        Names of the inputs, with "-" before those that are subtracted: ["r", "-y"]; a number stands for u1, u2, ….
    output : str, optional
        Name of the output; "y" by default.
    dimension : int, optional
        Number of channels of vector signals; their signals are called "r[0]", "r[1]", ….
    dt : float, optional
        Time step; a junction without one fits any system.

    Returns
    -------
    StateSpace
        Static gain with one input for each name, and with `dimension` one for each name and channel.

    Raises
    ------
    InvalidSystemError
        If names or dimension are not valid.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.summing_junction(["r", "-y"], "e").D
    array([[ 1., -1.]])
    """
    if isinstance(inputs, int | np.integer) and not isinstance(inputs, bool) and inputs >= 1:
        inputs = [f"u{number}" for number in range(1, int(inputs) + 1)]
    texts = _texts(inputs, "inputs")
    names = _texts("y" if output is None or output == 1 else output, "output")
    is_count = isinstance(dimension, int | np.integer) and not isinstance(dimension, bool)
    if not texts or len(names) != 1:
        raise InvalidSystemError(
            'a summing junction needs names of inputs and one output: summing_junction(["r", "-y"], "e")'
        )
    if dimension is not None and not (is_count and dimension >= 1):
        raise InvalidSystemError(f"dimension must be an integer ≥ 1, got {sanitize(repr(dimension))}")
    size = 1 if dimension is None else int(dimension)
    signs = [-1.0 if text.startswith("-") else 1.0 for text in texts]
    plain = [text.removeprefix("-").strip() for text in texts]
    D = np.kron(np.array([signs]), np.eye(size))
    if dimension is not None:
        plain, names = ([f"{name}[{index}]" for name in group for index in range(size)] for group in (plain, names))
    B, C = np.zeros((0, D.shape[1])), np.zeros((size, 0))
    return StateSpace(np.zeros((0, 0)), B, C, D, dt=dt, inputs=plain, outputs=names)


def interconnect(
    systems: Any,
    connections: Any = None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    inplist: Any = None,
    outlist: Any = None,
    ignore_inputs: Any = None,
) -> StateSpace:
    """Connect systems by the names of their signals.

    Parameters
    ----------
    systems : mapping of str to system, or sequence of systems
        Systems by name, `{"plant": P, "controller": C}`, or a list of systems or of (name, system). Systems of a list
        without names are called sys1, sys2, …; those of python-control keep theirs.
    connections : sequence of sequence, optional
        For each input its sources, `[["plant.u1", "controller.y1"], ["controller.u1", "-plant.y1"]]`; several sources
        are added. By default every input is connected to the output of the same name, or with a warning to the sum of
        several; `False` connects nothing.
    inputs, outputs : str or sequence of str, optional
        Names of the inputs and outputs of the result. Without `inplist` and `outlist` they are also the signals that
        they lead to, all inputs of that name, and come from, an output or an input of that name.
    inplist, outlist : sequence, optional
        For each input of the result the inputs that it drives, and for each output the signal that it is. A nested list
        drives several signals, or adds several outputs.
    ignore_inputs : sequence, optional
        Inputs that stay zero; any other input without a source is an error, since most are misspelled names.

    Returns
    -------
    StateSpace
        Interconnection. Names of its states begin with the names of their systems.

    Raises
    ------
    InvalidSystemError
        If a name is unknown or ambiguous, numbers of signals do not fit, an input has no source, an algebraic loop is
        ill-posed, or a loop in continuous time has a delay.

    Examples
    --------
    >>> import ltinet
    >>> plant = ltinet.tf([1], [1, 1], inputs=["u"], outputs=["y"])
    >>> controller = ltinet.pid(2.0, 1.0, inputs=["e"], outputs=["u"])
    >>> junction = ltinet.summing_junction(["r", "-y"], "e")
    >>> loop = ltinet.interconnect([plant, controller, junction], inputs=["r"], outputs=["y"])
    >>> loop.dcgain()
    array([[1.]])
    """
    parts = _Signals.of(systems)
    n_inputs, n_outputs = len(parts.names("input")), len(parts.names("output"))
    K = np.zeros((n_inputs, n_outputs))
    if connections is None:
        # Default names are numbers of signals, not names that could connect them.
        named = parts.given_names("input"), parts.given_names("output")
        for row, name in enumerate(named[0]):
            K[row] = [float(name is not None and name == other) for other in named[1]]
            if K[row].sum() > 1.0:
                sources = np.array(parts.full_names("output"))[K[row] > 0.0]
                warnings.warn(
                    f"{format_first_names(sources)} have the same name, and their sum drives {parts.full_names('input')[row]}; "
                    "rename one of them, or write the sum in connections",
                    UserWarning,
                    stacklevel=2,
                )
    elif connections is not False:
        entries = _list(connections, "connections")
        for connection in [entries] if entries and all(isinstance(entry, str) for entry in entries) else entries:
            _add_connection(K, parts, connection)
    drives = _external(parts, inputs, inplist, "inputs")
    reads = _external(parts, outputs, outlist, "outputs")
    E = np.array([channel.gains for channel in drives.channels]).reshape(-1, n_inputs).T
    gains = np.array([channel.gains for channel in reads.channels]).reshape(-1, n_outputs + n_inputs)
    F, G = gains[:, :n_outputs], gains[:, n_outputs:]
    ignored = sum((channel.gains for spec in _list(ignore_inputs, "ignore_inputs") for channel in parts.find(spec, "input")),
                  start=np.zeros(n_inputs))  # fmt: skip
    unused = np.flatnonzero(~K.any(axis=1) & ~E.any(axis=1) & (ignored == 0.0))
    if len(unused):
        names = parts.full_names("input")
        raise InvalidSystemError(
            f"no source is connected to {format_first_names([names[index] for index in unused.tolist()])}; connect, name "
            "in inputs, or keep at zero with ignore_inputs"
        )
    # Outputs that are inputs of systems, u = K y + E r, are sums of outputs and external inputs.
    wiring = Wiring(K, E, F + G @ K, G @ E)
    signal_names = SignalNames(drives.names, reads.names, parts.state_names)
    return connect(parts.systems, wiring, names=signal_names, labels=parts.labels)


@dataclass(frozen=True, eq=False)
class _Signals:
    """Systems with their names, and the names of all inputs and outputs in their order."""

    labels: tuple[str, ...]
    systems: tuple[StateSpace, ...]

    @classmethod
    def of(cls, systems: Any) -> "_Signals":
        """Return the systems by name; raise InvalidSystemError if names are not unique texts."""
        if isinstance(systems, Mapping):
            pairs = list(systems.items())
        else:
            if not isinstance(systems, list | tuple):
                raise InvalidSystemError('systems must be a list, or a mapping such as {"plant": P, "controller": C}')
            pairs = [_labelled(part, number) for number, part in enumerate(systems, start=1)]
        labels = tuple(label for label, _ in pairs)
        if not pairs:
            raise InvalidSystemError("interconnect needs at least one system, got none")
        for label in labels:
            if not isinstance(label, str) or not label.strip() or "." in label or label.startswith("-"):
                raise InvalidSystemError(
                    f"names of systems must be texts without a point or a leading minus sign, got {sanitize(repr(label))}"
                )
            if labels.count(label) > 1:
                raise InvalidSystemError(f"names of systems must be unique, got {sanitize(repr(label))} twice")
        return cls(labels, tuple(_with_labels(system) for _, system in pairs))

    def names(self, kind: str) -> list[str]:
        """Return the names of all inputs or outputs, without those of their systems."""
        return [name for system in self.systems for name in getattr(system, f"{kind}_names")]

    def given_names(self, kind: str) -> list[str | None]:
        """Return the names of all inputs or outputs; None for default names."""
        given: list[str | None] = []
        for system in self.systems:
            count = getattr(system, f"n_{kind}s")
            given += getattr(system.matrices.names, f"{kind}s") or [None] * count
        return given

    def full_names(self, kind: str) -> list[str]:
        """Return the names of all inputs or outputs with those of their systems: "plant.u1"."""
        return [
            f"{label}.{name}"
            for label, system in zip(self.labels, self.systems, strict=True)
            for name in getattr(system, f"{kind}_names")
        ]

    @property
    def state_names(self) -> Names | None:
        """Names of all states, "plant.x1"; None if they would be too long."""
        names = tuple(self.full_names("state"))
        return None if any(len(name) > _MAX_NAME_LENGTH for name in names) else names

    def find(self, spec: Any, kind: str) -> list[Channel]:
        """Return the channels of a specification; raise InvalidSystemError if there are none."""
        if isinstance(spec, tuple):
            return self._find_by_parts(spec, kind)
        if isinstance(spec, int | np.integer) and not isinstance(spec, bool):
            return self._find_by_parts((spec,), kind)
        if not isinstance(spec, str):
            raise InvalidSystemError(
                f'signals are written "plant.y1", "y1" or ("plant", "y1", gain), got {sanitize(repr(spec))}'
            )
        gain, text = (-1.0, spec[1:].strip()) if spec.startswith("-") else (1.0, spec.strip())
        if text in self.labels:
            return self._channels(self.labels.index(text), None, kind, gain)
        label, point, name = text.partition(".")
        if point and label in self.labels:
            return self._channels(self.labels.index(label), name, kind, gain)
        together: dict[str, Array] = {}
        for number, system in enumerate(self.systems):
            if getattr(system.matrices.names, f"{kind}s") is None and len(self.systems) > 1:
                continue  # default names belong to one system
            for channel in self._matching(number, text, kind):
                together[channel.name] = together.get(channel.name, 0.0) + gain * channel.gains
        if not together:
            given = dict.fromkeys(name for name in self.given_names(kind) if name is not None)
            known = [*given, *self.full_names(kind), *self.labels]
            raise InvalidSystemError(f"there is no {kind} {sanitize(repr(text))}; {suggest_names(text, known)}")
        return [Channel(name, gains) for name, gains in together.items()]

    def _find_by_parts(self, spec: tuple[Any, ...], kind: str) -> list[Channel]:
        """Return the channels of (system,), (system, signal) or (system, signal, gain)."""
        if not 1 <= len(spec) <= 3:
            raise InvalidSystemError(f"a signal is (system, signal, gain), got {sanitize(repr(spec))}")
        first, sign = spec[0], 1.0
        if isinstance(first, str) and first.startswith("-"):
            first, sign = first[1:], -1.0
        if isinstance(first, str) and first in self.labels:
            number = self.labels.index(first)
        elif isinstance(first, int | np.integer) and not isinstance(first, bool) and 0 <= first < len(self.labels):
            number = int(first)
        else:
            raise InvalidSystemError(f"there is no system {sanitize(repr(first))}; {suggest_names(first, self.labels)}")
        if len(spec) == 3 and (isinstance(spec[2], bool) or not isinstance(spec[2], int | float | np.number)):
            raise InvalidSystemError(f"the gain of a signal must be a number, got {sanitize(repr(spec[2]))}")
        gain = sign * float(spec[2]) if len(spec) == 3 else sign
        signals = spec[1] if len(spec) > 1 else None
        if isinstance(signals, list):
            return [channel for signal in signals for channel in self._channels(number, signal, kind, gain)]
        return self._channels(number, signals, kind, gain)

    def _channels(self, number: int, signal: Any, kind: str, gain: float) -> list[Channel]:
        """Return signals of one system, by name or index; all of them for None."""
        count, label = getattr(self.systems[number], f"n_{kind}s"), self.labels[number]
        if signal is None:
            found = [self._channel(number, index, kind) for index in range(count)]
        elif isinstance(signal, int | np.integer) and not isinstance(signal, bool):
            if not 0 <= signal < count:
                raise InvalidSystemError(f"{label} has {format_count(count, kind)}; there is no {kind} {signal}")
            found = [self._channel(number, int(signal), kind)]
        else:
            found = self._matching(number, str(signal), kind)
        if not found and signal is not None:
            names = getattr(self.systems[number], f"{kind}_names")
            raise InvalidSystemError(f"{label} has no {kind} {sanitize(repr(signal))}; {suggest_names(signal, names)}")
        return [Channel(channel.name, gain * channel.gains) for channel in found]

    def _matching(self, number: int, text: str, kind: str) -> list[Channel]:
        """Return the signals of one system that a name stands for."""
        names = getattr(self.systems[number], f"{kind}_names")
        if text in names:
            return [self._channel(number, names.index(text), kind)]
        selected = re.fullmatch(r"(.+)\[(\d*)(:?)(\d*)\]", text)
        base = selected[1] if selected else text
        indices = [index for index, name in enumerate(names) if re.fullmatch(rf"{re.escape(base)}\[\d+\]", name)]
        has_defaults = getattr(self.systems[number].matrices.names, f"{kind}s") is None
        if not indices and has_defaults and base == ("u" if kind == "input" else "y"):
            indices = list(range(len(names)))
        if selected and selected[3]:
            indices = indices[slice(*(int(part) if part else None for part in (selected[2], selected[4])))]
        elif selected:
            indices = indices[int(selected[2]) :][:1] if selected[2] else []
        return [self._channel(number, index, kind) for index in indices]

    def _channel(self, number: int, index: int, kind: str) -> Channel:
        counts = [getattr(system, f"n_{kind}s") for system in self.systems]
        gains = np.zeros(sum(counts))
        gains[sum(counts[:number]) + index] = 1.0
        return Channel(getattr(self.systems[number], f"{kind}_names")[index], gains)


def _labelled(part: Any, number: int) -> tuple[Any, Any]:
    """Return name and system of an entry of a list of systems."""
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
        return part
    name = getattr(part, "name", None) if not hasattr(part, "matrices") else None
    # python-control numbers systems without a name: "sys[3]".
    return (name if isinstance(name, str) and name and "[" not in name and "." not in name else f"sys{number}"), part


def _with_labels(system: Any) -> StateSpace:
    """Return the system; one of python-control keeps default labels such as u[0], by which it may be connected."""
    operand = as_operand(system)
    labels = [getattr(system, f"{kind}_labels", None) for kind in ("input", "output")]
    if isinstance(system, StateSpace) or not all(isinstance(names, list) for names in labels):
        return operand
    return operand.with_names(inputs=labels[0], outputs=labels[1])


def _add_connection(K: Matrix, parts: _Signals, connection: Any) -> None:
    """Add one connection, [input, source, …], to the gains."""
    entries = _list(connection, "a connection")
    if len(entries) < 2:
        raise InvalidSystemError(
            f'a connection is an input and its sources, ["plant.u1", "controller.y1"], got {sanitize(repr(connection))}'
        )
    targets = parts.find(entries[0], "input")
    for entry in entries[1:]:
        sources = parts.find(entry, "output")
        if len(sources) not in (1, len(targets)):
            raise InvalidSystemError(
                f"{sanitize(repr(entries[0]))} stands for {format_count(len(targets), 'input')} and "
                f"{sanitize(repr(entry))} for {format_count(len(sources), 'output')}; connect as many"
            )
        for index, target in enumerate(targets):
            K += np.outer(target.gains, sources[index if len(sources) > 1 else 0].gains)


class _External(NamedTuple):
    """External inputs or outputs: gains for all inputs, or for all outputs and then all inputs, and their names."""

    channels: list[Channel]
    names: Names | None


def _external(parts: _Signals, names: Any, specs: Any, kind: str) -> _External:
    """Return the inputs or outputs of the interconnection; `kind` is the name of the argument.

    Names alone stand for the signals of that name; with a list of signals they are only the names of these. A nested
    list is the sum of its signals, channel by channel.
    """
    find = _find_input if kind == "inputs" else _find_output
    if specs is None:
        texts = None if names is None else _texts(names, kind)
        groups = [find(parts, text) for text in texts or ()]
        labels = [
            label
            for text, group in zip(texts or (), groups, strict=True)
            for label in ([text.removeprefix("-")] if len(group) == 1 else [channel.name for channel in group])
        ]
        return _External([channel for group in groups for channel in group], None if texts is None else tuple(labels))
    channels: list[Channel] = []
    for spec in _list(specs, "inplist" if kind == "inputs" else "outlist"):
        found = [find(parts, part) for part in spec] if isinstance(spec, list) else [find(parts, spec)]
        width = max((len(group) for group in found), default=0)
        if any(len(group) not in (1, width) for group in found):
            raise InvalidSystemError(f"signals that are added must have as many channels: {sanitize(repr(spec))}")
        for index in range(width):
            summands = [group[index if len(group) > 1 else 0] for group in found]
            gains = np.sum([channel.gains for channel in summands], axis=0)
            channels.append(Channel(summands[0].name, gains))
    count = names if isinstance(names, int) and not isinstance(names, bool) else None
    texts = None if names is None or count is not None else _texts(names, kind)
    given = count if texts is None else len(texts)
    if given is not None and given != len(channels):
        raise InvalidSystemError(
            f"{kind} has {format_count(given, 'name')} for {format_count(len(channels), 'signal')}; give one for each"
        )
    return _External(channels, None if texts is None else tuple(texts))


def _find_input(parts: _Signals, spec: Any) -> list[Channel]:
    return parts.find(spec, "input")


def _find_output(parts: _Signals, spec: Any) -> list[Channel]:
    """Return channels over all outputs and then all inputs; an input is read where there is no such output."""
    n_outputs, n_inputs = len(parts.names("output")), len(parts.names("input"))
    try:
        found = parts.find(spec, "output")
        return [Channel(name, np.concatenate([gains, np.zeros(n_inputs)])) for name, gains in found]
    except InvalidSystemError as error:
        try:
            found = parts.find(spec, "input")
        except InvalidSystemError:
            raise error from None
    for channel in found:
        at = np.flatnonzero(channel.gains)
        if len(at) > 1:
            names = [parts.full_names("input")[index] for index in at.tolist()]
            raise InvalidSystemError(
                f"{sanitize(repr(spec))} is an input of several systems: {format_first_names(names)}; name one of them"
            )
    return [Channel(name, np.concatenate([np.zeros(n_outputs), gains])) for name, gains in found]


def _texts(value: Any, kind: str) -> list[str]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, str) for entry in entries):
        raise InvalidSystemError(
            f'{kind} must be a name or a list of names, such as ["r", "d"], got {sanitize(repr(value))}'
        )
    return list(entries)


def _list(value: Any, kind: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str | tuple):
        return [value] if isinstance(value, str) or kind in ("inplist", "outlist", "ignore_inputs") else list(value)
    if not isinstance(value, list):
        raise InvalidSystemError(f"{kind} must be a list, got {sanitize(repr(value))}")
    return value
