"""Interconnections by names: `interconnect` and `summing_junction`.

Signals are written as in python-control: "plant.y1" is a signal of a system, "plant" all of its inputs or outputs, and
"y1" the signals of that name in all systems; "-plant.y1" has the sign −1. ("plant", "y1", -2.0) is the same with a
gain. A name without its index stands for all signals that have one: "plant.u" for u1, u2, … or u[0], u[1], ….

Without a list of connections every input is connected to the output of the same name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ltinet._util.text import format_count, format_first_names, sanitize, suggest_names
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.algebra import as_operand
from ltinet.interconnection.connection import connect
from ltinet.interconnection.delays import Wiring
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import Names, SignalNames

Terms: TypeAlias = list[tuple[int, float]]
"""Signals by their position among all signals of one kind, with a gain each."""

_MAX_NAME_LENGTH = 200  # characters of a name, as for all names of signals


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
    names = _texts("y" if output is None else output, "output")
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
        are added. By default every input is connected to the output of the same name; `False` connects nothing.
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
    K = np.zeros((len(parts.inputs), len(parts.outputs)))
    if connections is None:
        for row, name in enumerate(parts.inputs):
            K[row] += parts.same_name(name)
    elif connections is not False:
        for connection in _list(connections, "connections"):
            _add_connection(K, parts, connection)
    E, input_names = _external_inputs(parts, inputs, inplist)
    F, G, output_names = _external_outputs(parts, outputs, outlist)
    ignored = {index for spec in _list(ignore_inputs, "ignore_inputs") for index, _ in parts.find(spec, "input")}
    unused = [i for i in np.flatnonzero(~K.any(axis=1) & ~E.any(axis=1)).tolist() if i not in ignored]
    if unused:
        names = format_first_names([parts.full_name(i, "input") for i in unused])
        raise InvalidSystemError(
            f"no source is connected to {names}; connect them, name them in inputs, or keep them at zero with "
            "ignore_inputs"
        )
    # Outputs that are inputs of systems, u = K y + E r, are sums of outputs and external inputs.
    wiring = Wiring(K, E, F + G @ K, G @ E)
    return connect(
        parts.systems, wiring, names=SignalNames(input_names, output_names, parts.state_names), labels=parts.labels
    )


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
        return cls(labels, tuple(as_operand(system) for _, system in pairs))

    @property
    def inputs(self) -> list[str]:
        """Names of all inputs, without those of their systems."""
        return [name for system in self.systems for name in system.input_names]

    @property
    def outputs(self) -> list[str]:
        """Names of all outputs."""
        return [name for system in self.systems for name in system.output_names]

    @property
    def state_names(self) -> Names | None:
        """Names of all states, "plant.x1"; None if they would be too long."""
        names = tuple(f"{label}.{name}" for label, system in self._items() for name in system.state_names)
        return None if any(len(name) > _MAX_NAME_LENGTH for name in names) else names

    def _items(self) -> list[tuple[str, StateSpace]]:
        return list(zip(self.labels, self.systems, strict=True))

    def same_name(self, name: str) -> np.ndarray[Any, Any]:
        """Return a row of K that connects the output of a name; raise InvalidSystemError if several have it."""
        row = np.array([float(output == name) for output in self.outputs])
        if row.sum() > 1:
            sources = [self.full_name(index, "output") for index in np.flatnonzero(row).tolist()]
            raise InvalidSystemError(
                f"{format_count(len(sources), 'output')} are called {sanitize(repr(name))}: {format_first_names(sources)}; "
                "rename them with system.with_names, or list the connections"
            )
        return row

    def full_name(self, index: int, kind: str) -> str:
        """Return "plant.u1" for a signal by its position."""
        names = [f"{label}.{name}" for label, system in self._items() for name in getattr(system, f"{kind}_names")]
        return names[index]

    def find(self, spec: Any, kind: str) -> Terms:
        """Return the signals of a specification; raise InvalidSystemError if there are none."""
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
            return self._signals(self.labels.index(text), None, kind, gain)
        label, point, name = text.partition(".")
        if point and label in self.labels:
            return self._signals(self.labels.index(label), name, kind, gain)
        everywhere = [self._matching(number, text, kind) for number in range(len(self.systems))]
        terms = [(index, gain) for indices in everywhere for index in indices]
        if not terms:
            known = [*self.labels, *(self.inputs if kind == "input" else self.outputs)]
            raise InvalidSystemError(f"there is no {kind} {sanitize(repr(text))}; {suggest_names(text, known)}")
        return terms

    def _find_by_parts(self, spec: tuple[Any, ...], kind: str) -> Terms:
        """Return the signals of (system,), (system, signal) or (system, signal, gain)."""
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
        gain = sign * float(spec[2]) if len(spec) == 3 else sign
        signals = spec[1] if len(spec) > 1 else None
        if isinstance(signals, list):
            return [term for signal in signals for term in self._signals(number, signal, kind, gain)]
        return self._signals(number, signals, kind, gain)

    def _signals(self, number: int, signal: Any, kind: str, gain: float) -> Terms:
        """Return signals of one system, by name or index; all of them for None."""
        names = getattr(self.systems[number], f"{kind}_names")
        start = sum(len(getattr(system, f"{kind}_names")) for system in self.systems[:number])
        if signal is None:
            return [(start + index, gain) for index in range(len(names))]
        if isinstance(signal, int | np.integer) and not isinstance(signal, bool):
            if not 0 <= signal < len(names):
                raise InvalidSystemError(
                    f"{self.labels[number]} has {format_count(len(names), kind)}; there is no {kind} {signal}"
                )
            return [(start + int(signal), gain)]
        found = self._matching(number, str(signal), kind)
        if not found:
            raise InvalidSystemError(
                f"{self.labels[number]} has no {kind} {sanitize(repr(signal))}; {suggest_names(signal, names)}"
            )
        return [(index, gain) for index in found]

    def _matching(self, number: int, text: str, kind: str) -> list[int]:
        """Return the positions of the signals of one system that a name stands for."""
        names = getattr(self.systems[number], f"{kind}_names")
        start = sum(len(getattr(system, f"{kind}_names")) for system in self.systems[:number])
        if text in names:
            return [start + names.index(text)]
        defaults = getattr(self.systems[number].matrices.names, f"{kind}s") is None
        chosen = re.fullmatch(r"(.+)\[(\d*)(:?)(\d*)\]", text)
        base = chosen[1] if chosen else text
        indexed = [i for i, name in enumerate(names) if re.fullmatch(rf"{re.escape(base)}\[\d+\]", name)]
        if not indexed and defaults and base == ("u" if kind == "input" else "y"):
            indexed = list(range(len(names)))
        if chosen and chosen[3]:
            indexed = indexed[slice(*(int(part) if part else None for part in (chosen[2], chosen[4])))]
        elif chosen:
            indexed = [indexed[int(chosen[2])]] if chosen[2] and int(chosen[2]) < len(indexed) else []
        return [start + index for index in indexed]


def _labelled(part: Any, number: int) -> tuple[Any, Any]:
    """Return name and system of an entry of a list of systems."""
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
        return part
    name = getattr(part, "name", None) if not hasattr(part, "matrices") else None
    # python-control numbers systems without a name: "sys[3]".
    return (name if isinstance(name, str) and name and "[" not in name and "." not in name else f"sys{number}"), part


def _add_connection(K: np.ndarray[Any, Any], parts: _Signals, connection: Any) -> None:
    """Add one connection, [input, source, …], to the gains."""
    entries = _list(connection, "a connection")
    if len(entries) < 2:
        raise InvalidSystemError(
            f'a connection is an input and its sources, ["plant.u1", "controller.y1"], got {sanitize(repr(connection))}'
        )
    targets = parts.find(entries[0], "input")
    for entry in entries[1:]:
        sources = parts.find(entry, "output")
        if len(sources) == 1:
            sources = sources * len(targets)
        if len(sources) != len(targets):
            raise InvalidSystemError(
                f"{sanitize(repr(entries[0]))} stands for {format_count(len(targets), 'input')} and "
                f"{sanitize(repr(entry))} for {format_count(len(sources), 'output')}; connect as many"
            )
        for (row, one), (column, other) in zip(targets, sources, strict=True):
            K[row, column] += one * other


def _external_inputs(parts: _Signals, names: Any, targets: Any) -> tuple[np.ndarray[Any, Any], Names | None]:
    """Return E, and the names of the external inputs."""
    texts = _names(names, "inputs")
    n_inputs = len(parts.inputs)
    columns: list[np.ndarray[Any, Any]] = []
    if targets is None:
        columns = [_sum([parts.find(text, "input")], n_inputs) for text in texts or ()]
        plain = None if texts is None else [text.removeprefix("-") for text in texts]
        return _columns(columns, n_inputs), None if plain is None else tuple(plain)
    for target in _list(targets, "inplist"):
        if isinstance(target, list):
            columns += _vector([parts.find(spec, "input") for spec in target], n_inputs)
        else:
            columns += [_sum([[term]], n_inputs) for term in parts.find(target, "input")]
    return _columns(columns, n_inputs), _counted(texts, len(columns), "inputs")


def _external_outputs(
    parts: _Signals, names: Any, sources: Any
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Names | None]:
    """Return gains from outputs and from inputs of systems to the external outputs, and the names of these."""
    texts = _names(names, "outputs")
    n_outputs, n_inputs = len(parts.outputs), len(parts.inputs)
    rows: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

    def terms_of(spec: Any) -> tuple[Terms, int]:
        try:
            return parts.find(spec, "output"), 0
        except InvalidSystemError:
            try:
                return parts.find(spec, "input"), 1
            except InvalidSystemError:
                pass
            raise

    def row(terms: Terms, kind: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        both = np.zeros(n_outputs), np.zeros(n_inputs)
        both[kind][:] = _sum([terms], len(both[kind]))
        return both

    entries = (texts or []) if sources is None else _list(sources, "outlist")
    for source in entries:
        if isinstance(source, list):
            found = [terms_of(spec) for spec in source]
            width = max(len(terms) for terms, _ in found)
            for index in range(width):
                total = np.zeros(n_outputs), np.zeros(n_inputs)
                for terms, kind in found:
                    position, gain = terms[index if len(terms) > 1 else 0]
                    total[kind][position] += gain
                rows.append(total)
            continue
        terms, kind = terms_of(source)
        if sources is None:
            if len(terms) > 1:
                kinds = "input" if kind else "output"
                # One name that several inputs share is one signal if they have the same source.
                listed = format_first_names([parts.full_name(index, kinds) for index, _ in terms])
                if not kind:
                    raise InvalidSystemError(
                        f"output {sanitize(repr(source))} stands for several signals: {listed}; name one of them, or list "
                        "them in outlist"
                    )
                terms = terms[:1]
            rows.append(row(terms, kind))
        else:
            rows += [row([term], kind) for term in terms]
    F, G = (np.array([both[kind] for both in rows]).reshape(len(rows), size)
            for kind, size in ((0, n_outputs), (1, n_inputs)))  # fmt: skip
    if sources is None:
        return F, G, None if texts is None else tuple(text.removeprefix("-") for text in texts)
    return F, G, _counted(texts, len(rows), "outputs")


def _sum(groups: Sequence[Terms], size: int) -> np.ndarray[Any, Any]:
    vector = np.zeros(size)
    for terms in groups:
        for index, gain in terms:
            vector[index] += gain
    return vector


def _vector(groups: Sequence[Terms], size: int) -> list[np.ndarray[Any, Any]]:
    """Return one vector for each channel of signals that are driven together."""
    width = max(len(terms) for terms in groups)
    return [_sum([[terms[index if len(terms) > 1 else 0]] for terms in groups], size) for index in range(width)]


def _columns(columns: Sequence[np.ndarray[Any, Any]], size: int) -> np.ndarray[Any, Any]:
    return np.array(columns).reshape(len(columns), size).T


def _counted(texts: list[str] | None, count: int, kind: str) -> Names | None:
    if texts is None:
        return None
    if len(texts) != count:
        raise InvalidSystemError(
            f"{kind} has {format_count(len(texts), 'name')} for {format_count(count, 'signal')}; give one for each"
        )
    return tuple(texts)


def _names(value: Any, kind: str) -> list[str] | None:
    return None if value is None else _texts(value, kind)


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
