"""The formats under test: valid files, how they are changed, how they are loaded, and what they really hold."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import ltinet
from fuzz import hdf5_files, market_files, mat_files, network_files, npz_files
from fuzz.mutations import Generator
from fuzz.reference import hdf5, market, mat4, mat5, network, npz

MATRICES = ("A", "B", "C", "D", "E")
SAMPLING_TIMES = ("Ts", "dt", "Td", "sampling_time", "sample_time", "SampleTime")


@dataclass(frozen=True)
class Format:
    """One format: a file is bytes, or for a folder the bytes of its files by name."""

    name: str
    seeds: Callable[[Path], list]
    change: Callable[[Any, Generator], Any]
    file_name: str
    load: Callable[[Path], Any]
    agrees: Callable[[Any, Any, Path], bool]
    """Return whether the loaded object equals the result of the reference reader."""

    def store(self, file: Any, folder: Path) -> Path:
        """Put a file where it can be loaded from."""
        place = folder / self.file_name
        if isinstance(file, bytes):
            place.write_bytes(file)
            return place
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for name, content in file.items():
            (place / name).write_bytes(content)
        return place


def _system_agrees(read: Callable[[Any], dict]) -> Callable[[Any, Any, Path], bool]:
    def agrees(system: ltinet.StateSpace, file: Any, _: Path) -> bool:
        try:
            return system == expected_system(read(file), is_sparse=system.sparse is not None)
        except (AssertionError, ValueError, KeyError, IndexError, TypeError, OverflowError, EOFError, ArithmeticError):
            return False
        except Exception as error:  # zlib, struct and gzip have types of their own
            return type(error).__module__ == "builtins" and False

    return agrees


def expected_system(variables: dict, *, is_sparse: bool = False) -> ltinet.StateSpace:
    """The system of the matrices that a reference reader found; a sparse E may be singular, an array may not."""
    steps = set()
    for name in SAMPLING_TIMES:
        assert name not in variables or variables[name] is not None
        if np.any(variables.get(name, 0.0)):
            step = np.asarray(variables[name])
            assert step.size == 1
            assert step.dtype.kind in "iuf"
            assert 0.0 < step.item() < np.inf
            steps.add(float(step.item()))
    assert len(steps) <= 1
    matrices = {name: variables[name] for name in MATRICES if name in variables}
    assert all(value is not None for value in matrices.values())
    for name in ("D", "E"):
        if name in matrices and np.shape(matrices[name]) == (0, 0):
            del matrices[name]
    if is_sparse:
        matrices |= {name: sparse.csc_array(matrices[name]) for name in ("A", "E") if name in matrices}
    return ltinet.StateSpace(**matrices, dt=next(iter(steps), None))


def _hdf5_agrees(system: ltinet.StateSpace, _: Any, path: Path) -> bool:
    """In a process of its own: a crash of the reference is no agreement, but no crash of what is tested either."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            found = hdf5.variables(str(path), MATRICES + SAMPLING_TIMES)
            status = 0 if system == expected_system(found, is_sparse=system.sparse is not None) else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _network_agrees(net: ltinet.DynamicNetwork, file: bytes, _: Path) -> bool:
    try:
        return network.is_held_by(net, *network.contents(file))
    except (AssertionError, ValueError, KeyError, TypeError):
        return False


def _load_network(path: Path) -> ltinet.DynamicNetwork:
    net = ltinet.load(path)
    str(net)  # what loads can be looked at, and run or refused for a reason
    try:
        solution = net.simulate(np.ones((4, net.n_inputs)), 0.5 * np.arange(4), x0=np.ones(net.n_states))
        _ = solution.y, solution.states, solution.error_bound()
    except ltinet.SimulationError:
        pass
    return net


def _system_format(name: str, seeds: Callable[[], list], change: Any, file_name: str, agrees: Any) -> Format:
    return Format(name, lambda _: seeds(), change, file_name, ltinet.load_system, agrees)


FORMATS = {
    form.name: form
    for form in (
        _system_format("mat4", mat_files.mat4_seeds, mat_files.change_mat4, "s.mat", _system_agrees(mat4.variables)),
        _system_format(
            "mat5",
            mat_files.mat5_seeds,
            mat_files.change_mat5,
            "s.mat",
            _system_agrees(lambda data: mat5.variables(data, MATRICES + SAMPLING_TIMES)),
        ),
        _system_format("mat73", hdf5_files.mat73_seeds, hdf5_files.change_mat73, "s.mat", _hdf5_agrees),
        _system_format("npz", npz_files.npz_seeds, npz_files.change_npz, "s.npz", _system_agrees(npz.variables)),
        _system_format(
            "mtx", market_files.market_seeds, market_files.change_market, "s", _system_agrees(market.variables)
        ),
        Format(
            "network",
            network_files.network_seeds,
            network_files.change_network,
            "n.safetensors",
            _load_network,
            _network_agrees,
        ),
    )
}
