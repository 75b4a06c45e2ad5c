"""Docstrings of `ltinet.nn`: every public name has an example, and the examples run."""

import doctest
import importlib.util
from pathlib import Path

import pytest

from ltinet import nn


@pytest.mark.parametrize("name", nn.__all__)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "export_onnx" and importlib.util.find_spec("onnx") is None:
        pytest.skip("onnx is not installed")
    monkeypatch.chdir(tmp_path)
    examples = [test for test in doctest.DocTestFinder(recurse=False).find(getattr(nn, name), name) if test.examples]
    assert examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples:
        runner.run(test)
    assert runner.failures == 0
