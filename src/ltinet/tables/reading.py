"""A table from its first line to its last, chunk after chunk: form, rows, times, gaps."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, final

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.tables.clock import Clock
from ltinet.tables.dialect import decimal_of
from ltinet.tables.form import Form, NoRowsError, form_of
from ltinet.tables.gaps import GapFiller, Samples
from ltinet.tables.layout import lines_of
from ltinet.tables.options import TableOptions
from ltinet.tables.rows import Rows, rows_of
from ltinet.tables.source import HEAD, Block, blocks_of


@final
@dataclass(frozen=True)
class Chunk:
    """Times `(T,)` and values `(T, k)` of rows that follow each other."""

    t: Array
    values: Array


@final
class Reading:
    """A table that is being read: its form is known from its beginning, its rows come when they are asked for."""

    def __init__(self, stream: BinaryIO, *, title: str, options: TableOptions) -> None:
        self.title, self._options = title, options
        self._blocks = blocks_of(stream, title=title, encoding=options.encoding)
        head, self._form = self._beginning()
        lines = head.content.split(b"\n", self._form.first_line - 1)
        self._first = Block(lines[-1], self._form.first_line)
        self._clock = Clock(self._form, options)
        self._gaps = GapFiller(options.gaps, self._form.columns.value_names, title)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values."""
        return self._form.columns.value_names

    @property
    def start(self) -> datetime | None:
        """The first time where times are stamps; known with the first chunk."""
        return self._clock.start

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to the table; complete when all of it has been read."""
        return (*self._form.remarks, *self._clock.told(), *self._gaps.told())

    def chunks(self) -> Iterator[Chunk]:
        """The rows in the order in which they stand, as they come.

        Raises:
            FileFormatError: a row is at fault; all rows before it have been given.
        """
        n_rows = 0
        for block in self._all_blocks():
            self._form = _with_decimal_mark(self._form, block)
            rows = rows_of(block, self._form, self._options.gaps)
            t, fault = self._clock.read(rows)
            complete = self._filled(t, rows)
            if len(complete.t):
                n_rows += len(complete.t)
                yield Chunk(complete.t, complete.values)
            if fault is not None:
                raise fault
        self._gaps.finish()
        if not n_rows:
            raise FileFormatError(f"{self.title} has a header but no samples; at least one line of numbers must follow")

    def _filled(self, t: Array, rows: Rows) -> Samples:
        lines = np.arange(rows.first_line, rows.first_line + len(t)) if rows.lines is None else np.array(rows.lines)
        return self._gaps.fill(Samples(t, rows.values[: len(t)], lines[: len(t)].astype(np.int64)))

    def _all_blocks(self) -> Iterator[Block]:
        if self._first.content:
            yield self._first
        yield from self._blocks

    def _beginning(self) -> tuple[Block, Form]:
        """What has come so far, and its form; a stream may begin slowly, and a header alone says too little."""
        content = b""
        while True:
            block = next(self._blocks, None)
            content += b"" if block is None else block.content
            try:
                return Block(content, 1), form_of(Block(content, 1), self._options, self.title)
            except NoRowsError:
                if block is None or len(content) >= HEAD:
                    raise


def _with_decimal_mark(form: Form, block: Block) -> Form:
    """The form with the decimal mark that this block has, if none was known so far."""
    delimiter = form.dialect.delimiter
    if form.dialect.decimal is not None or not (b"." in block.content or b"," in block.content):
        return form
    if delimiter == "," and b'"' not in block.content:
        return form.with_decimal(".")
    try:
        lines = lines_of(block.content.decode(), delimiter, block.first_line)
    except ValueError:
        return form  # the row by row reader says what is wrong
    read = (*form.columns.values, *(() if form.columns.time is None else (form.columns.time,)))
    rows = [[line.cells[k] for k in read if k < len(line.cells)] for line in lines if not line.is_comment]
    place = f"{form.title}, from line {block.first_line} on:"
    return form.with_decimal(decimal_of(rows, delimiter, place))
