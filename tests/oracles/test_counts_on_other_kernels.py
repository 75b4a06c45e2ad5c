"""Hypothesis: a network's counts are those of its system, whichever kernel of BLAS has rounded its numbers.

Weights are left out where T itself is not determined: the vectors of a repeated eigenvalue can be any basis, and at a
condition number of ten couplings inside of blocks of pde are rounding errors of a size that no bound tells. There, one
input weight of b767_flutter is a rounding of T that is exactly zero on some kernels.
"""

import json
import os
import platform
import subprocess
import sys

import pytest

from data_sets import DATA_SETS
from with_kernels import ALIASES, KERNELS, blas_libraries, environment, processor_flags

BUDGETS = (10.0, 1e4)
NAMED = {
    "blobs": {},
    "convection_diffusion": {"points": 10},
    "diffusion": {"points": 8},
    "heat_rod": {},
    "mass_spring_damper": {},
    "penzl": {"n_real": 50},
    "triangular": {},
}
FREE_VECTORS = {"j100_jet_engine", "diffusion"}
ROUNDED_COUPLINGS = {"pde 10"}
ROUNDED_WEIGHTS = {"b767_flutter 10": 1}
# A known fault: here one step of the search is decided by less than rounding, and the oldest OpenBLAS that is allowed
# goes another way with its kernel for old processors: 19 connections, not 1.
# Of triangular, the kernel for SkylakeX leaves 36 connections at a limit of 10 and 28, as the others, at 10.001.
DECIDED_BY_ROUNDING = {"lf10_beam_descriptor 10", "triangular 10"}
PROGRAM = """
import json, sys
import numpy as np
import ltinet

folder, names, named, budgets = json.loads(sys.argv[1])
systems = {name: ltinet.named_system(name, **options) for name, options in named.items()}
for name in names:
    outputs = {"C": np.eye(28)} if name == "helicopter_v73" else {}
    systems[name] = ltinet.load_system(f"{folder}/{name}.mat", **outputs)
found = {}
for name, system in systems.items():
    for budget in budgets:
        net = ltinet.construct(system, max_condition=budget)
        counts = [net.n_layers, net.n_neurons, net.n_first_order, net.n_connections, net.form.n_connections]
        found[f"{name} {budget:g}"] = counts, net.n_weights
print(json.dumps(found))
"""
MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


@pytest.fixture(scope="module")
def data_sets(data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    return str(data_dir)


@pytest.fixture(scope="module")
def counts(data_sets):
    return counted(data_sets, os.environ.get("OPENBLAS_CORETYPE", ""))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.get(MACHINE, {}))
def test_counts_are_the_same(counts, data_sets, kernel):
    if missing := KERNELS[MACHINE][kernel] - processor_flags():
        pytest.skip(f"the processor has no {', '.join(sorted(missing))}")
    known = ALIASES.get(kernel.lower(), {kernel.lower()})
    if any(name != "openblas" or own.lower() not in known for name, own in blas_libraries(kernel)):
        pytest.skip(f"NumPy and SciPy have no kernel {kernel}")
    other = counted(data_sets, kernel)
    steady = counts.keys() - DECIDED_BY_ROUNDING
    assert {name: other[name][0] for name in steady} == {name: counts[name][0] for name in steady}
    determined = [name for name in sorted(steady - ROUNDED_COUPLINGS) if name.split()[0] not in FREE_VECTORS]
    for name in determined:
        assert abs(other[name][1] - counts[name][1]) <= ROUNDED_WEIGHTS.get(name, 0), name


def counted(folder, kernel):
    """The counts of all networks, in a process with that kernel."""
    argument = json.dumps([folder, DATA_SETS, NAMED, BUDGETS])
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM, argument],
        env=environment(kernel),
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    return json.loads(done.stdout)
