"""Which variable of a file is which matrix: by name, in a struct, or as somebody who knows the file says."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from ltinet.errors import FileFormatError
from ltinet.model.formats.sampling_time import Readable
from ltinet.model.matrices import shape_of
from ltinet.shown import shown, shown_names, shown_path

MATRIX_NAMES = ("A", "B", "C", "D", "E")
_NEEDED = ("A", "B", "C")
_LOOKED_AT, _LOOKED_AT_BYTES = 100, 2**26  # variables of a file that has no A, and the most that one may take


def roles(
    path: Path, variables: Collection[str], names: Mapping[str, str] | None, *, supplied: Collection[str] = ()
) -> dict[str, str]:
    """The variable that is A, that is B, …; those that the file lacks are left out.

    Without `names` these are A, B, C, D, E; where there is no A, nor one that is `supplied`, the same in small letters,
    or the fields of the one struct that has an A, B and C (`sys.A`, `sys.a`).

    Raises:
        FileFormatError: a name that was given is no matrix or not in the file, or several structs would do.
    """
    given = _checked(path, variables, names)
    found = {role: role for role in MATRIX_NAMES if role in variables}
    if not any("A" in own for own in (found, given, supplied)):
        found = _small(variables, "") if _has_all(_small(variables, "")) else _in_a_struct(path, variables, given)
    return found | given


def prefix_of(found: Mapping[str, str]) -> str:
    """The struct that A comes from, with its dot, or nothing: a sampling time stands beside A."""
    owner, dot, _ = found.get("A", "").rpartition(".")
    return owner + dot


def likely_roles(file_format: Readable, path: Path, variables: Collection[str]) -> dict[str, str]:
    """What A, and B and C, could be by their sizes, where exactly one square matrix is there; nothing elsewhere."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in list(variables)[:_LOOKED_AT]:
        with suppress(Exception):  # no numbers, too large or damaged, which every format says in its own way
            shapes[name] = shape_of(file_format.read(path, [name], max_bytes=_LOOKED_AT_BYTES)[name], name)
    square = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == shape[1] > 1]
    if len(square) != 1:
        return {}
    n = shapes[square[0]][0]
    tall = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == n > shape[1] >= 1]
    wide = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] == n > shape[0] >= 1]
    if len(tall) != 1 or len(wide) != 1:
        return {"A": square[0]}
    return {"A": square[0], "B": tall[0], "C": wide[0]}


def _checked(path: Path, variables: Collection[str], names: Mapping[str, str] | None) -> dict[str, str]:
    if names is None:
        return {}
    if not isinstance(names, Mapping) or not all(isinstance(own, str) for own in (*names, *names.values())):
        raise FileFormatError(f'names is {shown(repr(names))}; give variables by matrix, such as {{"A": "Amat"}}')
    for role, name in names.items():
        if role not in MATRIX_NAMES:
            raise FileFormatError(f"names has {shown(repr(role))}; the matrices are {', '.join(MATRIX_NAMES)}")
        if name not in variables:
            raise FileFormatError(
                f"{shown_path(path)} has no {shown(name)}, which is to be {role}; it holds {shown_names(variables)}"
            )
    return dict(names)


def _in_a_struct(path: Path, variables: Collection[str], given: Mapping[str, str]) -> dict[str, str]:
    owners = dict.fromkeys(name.rpartition(".")[0] for name in variables if "." in name)
    fitting = {}
    for owner in owners:
        capital = {role: f"{owner}.{role}" for role in MATRIX_NAMES if f"{owner}.{role}" in variables}
        fields = capital if _has_all(capital) else _small(variables, f"{owner}.")
        if _has_all(fields):
            fitting[owner] = fields
    if len(fitting) > 1 and not given:
        first = next(iter(fitting.values()))
        example = ", ".join(f'"{role}": "{shown(name)}"' for role, name in first.items())
        raise FileFormatError(
            f"{shown_path(path)} holds several systems ({shown_names(fitting)}); say which: names={{{example}}}"
        )
    return next(iter(fitting.values()), {}) if len(fitting) == 1 else {}


def _small(variables: Collection[str], prefix: str) -> dict[str, str]:
    return {role: prefix + role.lower() for role in MATRIX_NAMES if prefix + role.lower() in variables}


def _has_all(found: Mapping[str, str]) -> bool:
    return all(role in found for role in _NEEDED)
