"""Hypothesis: the page about network files names every array and every fact that a file has, and no other."""

import json
import re

import numpy as np
from page_code import DOCS
from safetensors import safe_open

import ltinet

_FIRST_CELL = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)
_MARKED = re.compile(r"`([\w.]+)`")


def test_every_array_and_fact_is_on_the_page(tmp_path):
    page = (DOCS / "network-file.md").read_text(encoding="utf-8")
    system = ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2), E=2.0 * np.eye(2), inputs=["a", "b"])
    ltinet.construct(system).save(tmp_path / "net.safetensors")
    with safe_open(tmp_path / "net.safetensors", framework="np") as file:
        arrays, metadata = set(file.keys()), file.metadata()
    facts = set(json.loads(metadata["content"]))
    listed = {name for cell in _FIRST_CELL.findall(page) for name in _MARKED.findall(cell)}
    in_words = set(re.findall(r"`((?:system|blocks)\.\w)`", page))
    assert listed | in_words == arrays | set(metadata)
    assert facts <= set(_MARKED.findall(page))
