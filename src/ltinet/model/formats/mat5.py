"""MATLAB's own binary files up to version 7, through `scipy.io`."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import scipy  # which loads scipy.io when it is first used: half of the time that importing ltinet would take

from ltinet.model.matrices import Matrix


def list_variables(path: Path) -> list[str]:
    """Name the variables without reading them."""
    with _stream(path) as stream:
        return [name for name, _, _ in scipy.io.whosmat(stream)]


def read(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of `names` that are there, dense or sparse."""
    with _stream(path) as stream:
        contents = scipy.io.loadmat(stream, variable_names=list(names))
    return {name: contents[name] for name in names if name in contents}


def write(path: Path, matrices: Mapping[str, Matrix]) -> None:
    """Write a version 5 file, which Octave, Julia and every MATLAB read."""
    scipy.io.savemat(str(path), dict(matrices), appendmat=False, format="5", do_compression=True)


def _stream(path: Path) -> Any:
    """Open the file here: SciPy, given a path, leaves a damaged file open. Any because its stubs know only paths."""
    return path.open("rb")
