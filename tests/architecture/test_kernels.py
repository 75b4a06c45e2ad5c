"""Hypothesis: a kernel that is not there is named and left out, whatever the reason, and never tried."""

import pytest

from with_kernels import KERNELS, blas_libraries, run


def test_an_unknown_name_which_openblas_ignores_in_silence():
    turn = run("no such kernel", set(), ["--version"])
    assert turn.passed
    assert turn.line.startswith("skipped: NumPy and SciPy run")


@pytest.mark.parametrize("kernel", [name for kernels in KERNELS.values() for name in kernels])
def test_a_kernel_that_the_processor_cannot_execute(kernel):
    assert run(kernel, {"no such flag"}, ["--version"]).line == "skipped: the processor has no no such flag"


def test_both_libraries_are_asked():
    assert len(blas_libraries("")) >= 1  # one where NumPy and SciPy share it
