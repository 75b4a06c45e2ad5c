"""A table of measurements as a system: the columns that drive and those that answer, and what lies between them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ltinet.arrays import Array
from ltinet.explorer.state import InvalidStateError
from ltinet.signals.times import TimeAxis
from ltinet.state_space import StateSpace
from ltinet.tables.table import Table


class FoundSystem(NamedTuple):
    """What was identified, and how far to trust it."""

    system: StateSpace
    remarks: tuple[str, ...]
    facts: Mapping[str, str]


def identified_system(table: Table, drive: Sequence[int], answer: Sequence[int]) -> FoundSystem:
    """The system between columns of a table, counted from 1.

    Raises:
        InvalidStateError: the columns are not chosen yet, or there are no such columns.
        LtinetError: nothing can be identified from them.
    """
    from ltinet.identifying import identify  # here: most pages identify nothing

    if not drive or not answer:
        raise InvalidStateError("this is a table; say which of its columns drive and which answer")
    u, y = (_named_columns(table, numbers) for numbers in (drive, answer))
    step = TimeAxis.of(table.t).step
    if step is None or not step > 0.0:
        raise InvalidStateError("the times of the table are not evenly spaced; resample it first")
    found = identify(u, y, dt=step)
    fits = ", ".join(f"{fit:.1f} %" for fit in found.fit(u, y))
    return FoundSystem(found.system, table.remarks, {"identified": f"{found.order} states, fit {fits}"})


def _named_columns(table: Table, numbers: Sequence[int]) -> Table:
    """Columns by their numbers from 1, under their names."""
    values = columns_of(table, numbers)
    return Table(table.t, values, tuple(table.names[number - 1] for number in numbers), table.start, ())


def columns_of(table: Table, numbers: Sequence[int]) -> Array:
    """Columns of a table by their numbers from 1, `(T, k)`.

    Raises:
        InvalidStateError: one of them is not there.
    """
    for number in numbers:
        if not 1 <= number <= table.values.shape[1]:
            raise InvalidStateError(f"the table has columns 1 to {table.values.shape[1]}, and no column {number}")
    return table.values[:, [number - 1 for number in numbers]]
