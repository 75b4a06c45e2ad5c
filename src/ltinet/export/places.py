"""Where exports go: folders and files that appear whole, and that destroy nothing of anybody else's."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from ltinet.atomic import write_folder_whole, write_whole
from ltinet.errors import FileFormatError
from ltinet.model.formats.opening import as_path, reason_of
from ltinet.shown import shown_path

MANIFEST = "manifest.json"


def write_export_folder(folder: str | PathLike[str], files: Mapping[str, bytes]) -> Path:
    """Write a folder, or one over an earlier export.

    Raises:
        FileFormatError: something else stands there, or the file system refuses.
    """
    path = as_path(folder)
    try:
        if path.exists() and not _may_be_replaced(path):
            raise FileFormatError(
                f"{shown_path(path)} exists and is no earlier export; name an empty folder or a new one"
            )
        write_folder_whole(path, files)
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error
    return path


def checked_file(path: str | PathLike[str], *, suffix: str) -> Path:
    """A path that a file of this kind may have.

    Raises:
        FileFormatError: its name ends otherwise, it is a folder, or nobody may look there.
    """
    place = as_path(path)
    if place.suffix.lower() != suffix:
        raise FileFormatError(f"{shown_path(place)} does not end in {suffix}; name it so, since programs look for that")
    try:
        is_folder = place.is_dir()
    except OSError as error:  # a folder above it is closed to us
        raise _refusal(place, error) from error
    if is_folder:
        raise FileFormatError(f"{shown_path(place)} is a folder; name a file in it that ends in {suffix}")
    return place


def write_export_file(place: Path, content: bytes) -> None:
    """Write a file, or over one of its name.

    Raises:
        FileFormatError: the file system refuses.
    """
    try:
        write_whole(place, content)
    except (OSError, ValueError) as error:
        raise _refusal(place, error) from error


def _refusal(path: Path, error: Exception) -> FileFormatError:
    if isinstance(error, FileFormatError):
        return error
    return FileFormatError(f"{shown_path(path)} cannot be written ({reason_of(error)}); choose another place")


def _may_be_replaced(path: Path) -> bool:
    """Whether a folder is empty, or holds nothing but an export and what its Makefile makes."""
    if not path.is_dir():
        return False
    entries = {entry.name for entry in path.iterdir()}
    try:
        written = {str(name) for name in json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return not entries
    made = {name.removesuffix(".c") for name in written} | {f"{name.removesuffix('.c')}.o" for name in written}
    return entries <= written | made
