"""Every requirement says how old it may be, the same wherever it stands: `make test-oldest` installs just that."""

import re
import tomllib
from itertools import chain

import ltinet
from oldest_versions import PYPROJECT, oldest_versions

PROJECT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]


def test_every_requirement_of_package_and_tests_has_a_lower_bound():
    pins = oldest_versions()
    assert any(re.fullmatch(r"numpy==[\d.]+", pin) for pin in pins)
    assert all(re.fullmatch(r"[\w.-]+(\[\w+\])?==\d[\d.]*(; \w+ == '\w+')?", pin) for pin in pins)


def test_a_library_has_the_same_bound_in_every_extra():
    bounds = {}
    requirements = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for requirement in (given for given in requirements if "==" not in given):  # a pin is for the tests alone
        name, _, version = requirement.partition(";")[0].partition(">=")
        bounds.setdefault(re.sub(r"\[.*\]", "", name), set()).add(version)
    assert {name: versions for name, versions in bounds.items() if len(versions) > 1} == {}


def test_one_version_everywhere():
    root = PYPROJECT.parent
    assert f"\nversion: {ltinet.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## ([\d.]+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == ltinet.__version__
