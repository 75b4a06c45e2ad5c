"""The text of a Matrix Market file, read strictly: what is not a number, not in its place or too much is named.

SciPy's reader takes `2abc` for 2 and `-1,5` for −1, divides by a number of rows that may be zero, and does not survive
a NUL. This one knows real matrices, dense ("array") and sparse ("coordinate"), and tells of complex ones by name.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltinet.model.formats.limits import Allowance, times
from ltinet.model.formats.refusals import is_complex
from ltinet.model.formats.sparse_columns import from_places
from ltinet.model.formats.text_lines import Lines
from ltinet.shown import shown

_MARK = b"%%matrixmarket"
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_MOST_COMMENTS = 1 << 24
_LONGEST_SIZE = 18  # digits; more would not fit into 64 bits
_MOST_PER_LINE = 256  # characters on average, blank lines included: three numbers of 17 digits take 70
_ALPHABET = b"0123456789+-.eE \t"
_EXPECTED = ("a line of numbers", "one number", "a row and a column", "a row, a column and a number")
_Number: TypeAlias = Callable[[bytes], float]


class _Form(NamedTuple):
    is_sparse: bool
    number: _Number | None
    symmetry: str


def parse_matrix(lines: Lines, allowance: Allowance, *, name: str) -> Any:
    """The matrix that the lines describe, dense or sparse.

    Raises:
        ValueError: they do not describe one; the message says where.
        BeyondLimitError: it takes more than is allowed.
    """
    form = _form(lines.next_line(), name)
    sizes = _sizes(lines, form)
    shape = (sizes[0], sizes[1])
    count = _n_entries(sizes, form)
    if form.is_sparse:
        allowance.claim_sparse(shape, 0, name)
    else:
        allowance.claim(shape, name)
    if form.symmetry != "general" and shape[0] != shape[1]:
        raise ValueError(f"it is {form.symmetry}, but {times(shape)}")
    if (4 if form.is_sparse else 2) * count > lines.most_bytes + 1:  # digits, and an end that the last line may lack
        raise ValueError(f"it claims {count} entries, for which the file is too short")
    if not form.is_sparse:
        return _dense(lines, form, shape, count)
    allowance.claim_sparse((0, 0), count if form.symmetry == "general" else 2 * count, name)
    return _sparse(lines, form, shape, count)


def _form(line: bytes | None, name: str) -> _Form:
    words = (line or b"").lower().split()
    if len(words) != 5 or words[0] != _MARK:
        raise ValueError("its first line is not that of a Matrix Market file")
    kind, layout, field, symmetry = (shown(word.decode("latin-1")) for word in words[1:])
    if field == "complex" or symmetry == "hermitian":
        raise is_complex(name)
    known = kind == "matrix" and layout in ("array", "coordinate") and field in _FIELDS and symmetry in _SYMMETRIES
    if not known or (layout == "array" and field == "pattern"):
        raise ValueError(f"its first line says {kind} {layout} {field} {symmetry}, which is not known here")
    number = None if field == "pattern" else int if "integer" in field else float
    return _Form(layout == "coordinate", number, symmetry)


def _sizes(lines: Lines, form: _Form) -> list[int]:
    """Rows, columns and for a sparse matrix entries, from the first line that is neither comment nor blank."""
    before = lines.most_bytes
    while (line := lines.next_line()) is not None:
        if line.startswith(b"%") or not line.strip(b" \t"):
            if before - lines.most_bytes > _MOST_COMMENTS:
                raise ValueError(f"it has more than {_MOST_COMMENTS} characters of comments")
            continue
        words = line.replace(b"\t", b" ").split(b" ")
        sizes = [int(word) for word in words if word and word.isdigit() and len(word) <= _LONGEST_SIZE]
        if len(sizes) != len([word for word in words if word]) or len(sizes) != (3 if form.is_sparse else 2):
            raise ValueError(f"line {lines.number} is {_quoted(line)}, not the size of the matrix")
        return sizes
    raise ValueError("it ends before the size of the matrix")


def _n_entries(sizes: Sequence[int], form: _Form) -> int:
    """The number of entries that must follow; a dense symmetric matrix is stored as its lower triangle."""
    rows, columns = sizes[:2]
    if not form.is_sparse:
        whole = {"general": rows * columns, "symmetric": rows * (rows + 1) // 2}
        return whole.get(form.symmetry, rows * (rows - 1) // 2)
    if sizes[2] > rows * columns:
        raise ValueError(f"it is {rows}×{columns} and claims {sizes[2]} entries")
    return sizes[2]


def _dense(lines: Lines, form: _Form, shape: tuple[int, int], count: int) -> NDArray[np.float64]:
    number = form.number or float
    entries = np.empty(count)
    for first, portion, text in _entries(lines, count):
        try:
            entries[first : first + len(portion)] = list(map(number, portion))
        except (ValueError, OverflowError):
            raise _complaint(text, (number,), lines.number) from None
    if form.symmetry == "general":
        return entries.reshape(shape, order="F")
    is_skew = form.symmetry == "skew-symmetric"  # whose diagonal is zero and not stored
    matrix = np.zeros(shape)
    columns, rows = np.triu_indices(shape[0], 1 if is_skew else 0)  # the lower triangle, down its columns
    matrix[columns, rows] = -entries if is_skew else entries
    matrix[rows, columns] = entries
    return matrix


def _sparse(lines: Lines, form: _Form, shape: tuple[int, int], count: int) -> Any:
    rows, columns, values = np.empty(count, np.int64), np.empty(count, np.int64), np.ones(count)
    targets = (rows, columns) if form.number is None else (rows, columns, values)
    numbers: tuple[_Number, ...] = (int, int) if form.number is None else (int, int, form.number)
    for first, portion, text in _entries(lines, count):
        try:
            columns_of_text = zip(*(line.split() for line in portion), strict=True)
            for target, number, cells in zip(targets, numbers, columns_of_text, strict=True):
                target[first : first + len(portion)] = list(map(number, cells))
        except (ValueError, OverflowError):
            raise _complaint(text, numbers, lines.number) from None
    rows, columns = rows - 1, columns - 1
    if form.symmetry == "general":
        return from_places(values, rows, columns, shape=shape, name="it")
    is_skew = form.symmetry == "skew-symmetric"
    if np.any(rows <= columns if is_skew else rows < columns):
        raise ValueError(f"it is {form.symmetry} and has an entry outside the lower triangle")
    below = rows != columns
    mirrored = -values[below] if is_skew else values[below]
    both = np.append(rows, columns[below]), np.append(columns, rows[below])
    return from_places(np.append(values, mirrored), *both, shape=shape, name="it")


def _entries(lines: Lines, count: int) -> Iterator[tuple[int, list[bytes], bytes]]:
    """The lines of entries in portions: how many came before, those that are not blank, and the text they stand in.

    Raises:
        ValueError: there are fewer or more than `count`, or characters that no number has.
    """
    first, length = 0, 0
    for text in lines.portions():
        if text.translate(None, _ALPHABET + b"\n"):
            raise _complaint(text, (), lines.number)
        length += len(text)
        portion = [line for line in text.split(b"\n") if line and not line.isspace()]
        if first + len(portion) > count or length > _MOST_PER_LINE * (count + _MOST_PER_LINE):
            raise ValueError(f"it claims {count} entries, and more follows")
        if portion:
            yield first, portion, text
        first += len(portion)
    if first < count:
        raise ValueError(f"it claims {count} entries, and ends after {first}")


def _complaint(text: bytes, numbers: Sequence[_Number], before: int) -> ValueError:
    """What is wrong with the first line that cannot be read; `before` lines precede the text."""
    for place, line in enumerate(text.split(b"\n"), start=before + 1):
        cells = line.split()
        is_text = line.translate(None, _ALPHABET)
        if is_text or (cells and numbers and not _can_read(cells, numbers)):
            return ValueError(f"line {place} is {_quoted(line)}, not {_EXPECTED[len(numbers)]}")
    return ValueError(f"after line {before} there are entries that are no numbers")


def _can_read(cells: Sequence[bytes], numbers: Sequence[_Number]) -> bool:
    try:
        values = [float(number(cell)) for number, cell in zip(numbers, cells, strict=True)]
    except (ValueError, OverflowError):
        return False
    return len(values) == 1 or max(map(abs, values[:2])) < 2.0**63  # rows and columns are numbers of 64 bits


def _quoted(line: bytes) -> str:
    return repr(shown(line.decode("latin-1"), longest=30))
