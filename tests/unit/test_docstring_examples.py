"""Examples in docstrings of the public functions and classes of `ltinet`, and of their methods, print what they say."""

import doctest
import inspect
from pathlib import Path

import pytest

import ltinet

OPTIONAL = {
    "export_onnx": "onnx",
    "to_onnx": "onnx",
    "to_torch": "torch",
    "to_control": "control",
    "to_frame": "pandas",
}


def examples() -> list[doctest.DocTest]:
    """Return all examples of public objects, in the order of their names."""
    objects = {name: getattr(ltinet, name) for name in sorted(ltinet.__all__)}
    finder = doctest.DocTestFinder()
    return [
        test
        for name, value in objects.items()
        if inspect.isfunction(value) or inspect.isclass(value)
        for test in finder.find(value, name, globs={"ltinet": ltinet})
        if test.examples
    ]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_example_prints_what_it_says(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = OPTIONAL.get(example.name.rpartition(".")[2])
    if library is not None:
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(example)
    assert runner.failures == 0


def test_functions_that_judge_loops_have_examples() -> None:
    names = {example.name for example in examples()}
    assert {"margin", "disk_margin", "nyquist", "norm", "sensitivity", "isstable", "feedback", "pade"} <= names
