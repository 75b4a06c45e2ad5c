"""A file or folder appears under its name whole or not at all: it is written beside its place and renamed into it."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path to write to; on success what was written there takes the place of `path`, on failure it is removed.

    A folder that was there before steps aside first, and returns if the new one cannot take its place.

    Raises:
        OSError: the file system refuses.
    """
    path = path.resolve()  # a symbolic link stays a link, and its target is replaced
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "a device or pipe cannot be replaced by a file")  # renaming would remove the device
    workshop = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        staged = workshop / path.name
        yield staged
        for file in [staged] if staged.is_file() else staged.iterdir():
            _flush_to_disk(file)
        if staged.is_dir() and path.is_dir():
            _swap_folders(staged, path, aside=workshop / "previous")
        else:
            os.replace(staged, path)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _flush_to_disk(file: Path) -> None:
    """Without this a power cut after the rename can leave the new name on an empty file."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


def _swap_folders(staged: Path, path: Path, aside: Path) -> None:
    """No system call replaces a folder that is not empty, so this takes two renames."""
    os.replace(path, aside)
    try:
        os.replace(staged, path)
    except OSError:
        os.replace(aside, path)
        raise
