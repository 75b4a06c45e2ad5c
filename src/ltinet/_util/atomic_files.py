"""Atomic replacement of files and folders.

A file or folder appears under its name completely or not at all, and no temporary file remains. Where the operating
system supports it (O_TMPFILE) a file is written without a name and disappears with a process that is killed. A second
name exists only during the rename, while signals that end the process are blocked. Permissions and, where allowed,
owner and group of a replaced file are preserved; symbolic links are followed.
"""

import errno
import os
import secrets
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

_PREFIX = ".ltinet-"
_NEW_FILE_MODE = 0o666  # less the umask, as for every new file
_PERMISSION_MASK = 0o777
_ANONYMOUS_FILES_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_TERMINATION_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def write_file_atomically(path: Path, content: bytes) -> None:
    """Write a file; a file that is replaced passes on its permissions.

    Raises OSError if the file system refuses; the previous content is then unchanged.
    """
    path = _resolve_target(path)
    with _new_file(path.parent) as file:
        _write(file, content, like=path)
        with _signals_blocked():
            temporary = path.with_name(_unused_name()) if file.name is None else file.name
            try:
                _link_file(file, temporary)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise


def write_folder_atomically(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files; an existing folder is renamed first and restored on failure.

    Raises OSError if the file system refuses; the previous content is then unchanged.
    """
    path = _resolve_target(path)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_new_file(path.parent)) for name in contents}
        for name, content in contents.items():
            _write(files[name], content, like=path / name)
        with _signals_blocked(), _staging_folder(path) as staging:
            staged = staging / "new"
            staged.mkdir()
            for name, file in files.items():
                _link_file(file, staged / name)
            if path.exists():
                staged.chmod(path.stat().st_mode & _PERMISSION_MASK)
                _swap_folders(staged, path, aside=staging / "previous")
            else:
                os.replace(staged, path)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success the file written there replaces `path`, on failure it is removed.

    For writers that need a path. A process that is killed may leave the temporary file behind, which
    `write_file_atomically` avoids.
    """
    path = _resolve_target(path)
    with _staging_folder(path) as staging:
        staged = staging / path.name
        yield staged
        with staged.open("rb+") as stream:
            _copy_permissions(stream.fileno(), like=path)
            os.fsync(stream.fileno())
        os.replace(staged, path)


def _resolve_target(path: Path) -> Path:
    """Return the target of a symbolic link, so that the link stays a link; refuse devices and pipes."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except ValueError as error:  # NUL in the path
        raise OSError(errno.EINVAL, str(error)) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # renaming would remove the device
        raise OSError(errno.EINVAL, "a device or pipe cannot be replaced by a file")
    return Path(os.path.realpath(path))


class _NewFile(NamedTuple):
    """File open for writing."""

    stream: FileIO
    name: Path | None
    """Path of the file; None for an anonymous file."""


@contextmanager
def _new_file(folder: Path) -> Iterator[_NewFile]:
    """Create a file in the folder, anonymous if possible; it is removed at the end unless it was renamed."""
    file = _anonymous_file(folder) or _named_file(folder)
    try:
        yield file
    finally:
        file.stream.close()
        if file.name is not None:
            file.name.unlink(missing_ok=True)


def _anonymous_file(folder: Path) -> _NewFile | None:
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").is_dir():  # needed to link the file later
        return None
    try:
        descriptor = os.open(folder, flag | os.O_RDWR, _NEW_FILE_MODE)
    except OSError as error:
        if error.errno in _ANONYMOUS_FILES_UNSUPPORTED:
            return None
        raise
    return _NewFile(os.fdopen(descriptor, "wb", buffering=0), None)


def _named_file(folder: Path) -> _NewFile:
    name = folder / _unused_name()
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _NEW_FILE_MODE)
    return _NewFile(os.fdopen(descriptor, "wb", buffering=0), name)


def _unused_name() -> str:
    """Return a random file name; the name of the target may have the maximal length already."""
    return f"{_PREFIX}{secrets.token_hex(8)}"


def _link_file(file: _NewFile, target: Path) -> None:
    if file.name is None:
        # os.link follows the symbolic link in /proc only if a folder descriptor is passed; any one does.
        descriptor = file.stream.fileno()
        os.link(f"/proc/self/fd/{descriptor}", target, src_dir_fd=descriptor)
        return
    file.stream.close()  # Windows does not rename open files
    if file.name != target:
        os.rename(file.name, target)


def _write(file: _NewFile, content: bytes, *, like: Path) -> None:
    descriptor = file.stream.fileno()
    _copy_permissions(descriptor, like=like)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)  # otherwise a power failure after the rename could leave an empty file


def _copy_permissions(descriptor: int, *, like: Path) -> None:
    """Copy the permissions of the file that is replaced, and its owner and group if allowed."""
    if not hasattr(os, "fchown") or not like.is_file():
        return
    old = like.stat()
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & _PERMISSION_MASK)


@contextmanager
def _staging_folder(path: Path) -> Iterator[Path]:
    """Create a temporary folder beside the path and remove it at the end."""
    staging = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=path.parent))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals that end the process, which could leave a temporary name behind during a rename."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = {getattr(signal, name) for name in _TERMINATION_SIGNALS if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _swap_folders(staged: Path, path: Path, aside: Path) -> None:
    """Replace a folder by two renames, since no system call replaces one that is not empty."""
    os.replace(path, aside)
    try:
        os.replace(staged, path)
    except OSError:
        os.replace(aside, path)
        raise
