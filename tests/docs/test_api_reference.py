"""The API reference has every public name, and no name that does not exist."""

import re
from importlib import import_module
from importlib.util import find_spec

import pytest
from page_code import DOCS

import ltinet
import ltinet.plotting


def documented_names() -> set[str]:
    """Full names of all entries; one without a dot belongs to the module named last."""
    names, module = set(), ""
    for kind, name in re.findall(
        r"^\.\. (currentmodule|auto\w+):: ([\w.]+)", (DOCS / "api.md").read_text(), re.MULTILINE
    ):
        if kind == "currentmodule":
            module = name
        else:
            names.add(name if "." in name else f"{module}.{name}")
    return names


def test_every_public_name_is_documented() -> None:
    public = {f"ltinet.{name}" for name in ltinet.__all__}
    public |= {f"ltinet.plotting.{name}" for name in ltinet.plotting.__all__}
    assert public - documented_names() == set()


def test_every_name_of_nn_is_documented() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = import_module("ltinet.nn")
    assert {f"ltinet.nn.{name}" for name in nn.__all__} - documented_names() == set()


def test_every_documented_name_exists() -> None:
    has_torch = find_spec("torch") is not None
    for name in documented_names():
        if name.startswith("ltinet.nn.") and not has_torch:
            continue
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name
