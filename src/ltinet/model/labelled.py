"""Names that matrices and other libraries' systems bring along: labels of DataFrames, labels of python-control."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ltinet.errors import InvalidSystemError
from ltinet.model.names import Names, SignalNames
from ltinet.shown import shown

# A matrix, what its rows and its columns belong to.
Labelled = tuple[str, Any, str | None, str]
_NUMBERED = re.compile(r"[uyx]\[\d+\]")  # python-control's names for what nobody named


def names_of_frames(A: Any, B: Any, C: Any, D: Any, E: Any) -> SignalNames:
    """The names in rows and columns of matrices that are DataFrames, where they are text.

    With an E the rows of E, A and B are equations, which are no states.

    Raises:
        InvalidSystemError: two of them call the same thing by different names, or by the same in another order.
    """
    equations = "states" if E is None else None
    matrices: Sequence[Labelled] = (
        ("A", A, equations, "states"),
        ("B", B, equations, "inputs"),
        ("C", C, "outputs", "states"),
        ("D", D, "outputs", "inputs"),
        ("E", E, None, "states"),
    )
    found: dict[str, tuple[Names, str]] = {}
    for own in matrices:
        for kind, labels, place in _labels(own):
            known, where = found.setdefault(kind, (labels, place))
            if known != labels:
                raise InvalidSystemError(
                    f"{kind} are called {shown(list(known))} in the {where} and {shown(list(labels))} in the {place}; "
                    "bring them into one order with reindex, or pass the numbers alone, with to_numpy()"
                )
    return SignalNames(**{kind: labels for kind, (labels, _) in found.items()})


def _labels(matrix: Labelled) -> Iterable[tuple[str, Names, str]]:
    name, value, of_rows, of_columns = matrix
    if not (hasattr(value, "columns") and hasattr(value, "index") and hasattr(value, "to_numpy")):
        return
    for kind, labels, axis in ((of_rows, value.index, "rows"), (of_columns, value.columns, "columns")):
        texts = tuple(labels)
        if kind is not None and texts and all(isinstance(text, str) for text in texts):
            yield kind, texts, f"{axis} of {name}"


def names_of_labels(system: Any) -> SignalNames:
    """The labels of a system of python-control; those that it makes up by itself, u[0], are none."""
    kinds = ("input_labels", "output_labels", "state_labels")
    return SignalNames(*(_own_labels(getattr(system, kind, None)) for kind in kinds))


def _own_labels(labels: Any) -> Names | None:
    if not isinstance(labels, list | tuple) or not labels:
        return None
    return None if all(_NUMBERED.fullmatch(str(label)) for label in labels) else tuple(labels)
