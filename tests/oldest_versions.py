"""Print what pip needs to install the oldest versions that pyproject.toml allows: `name==version` for each requirement.

Requirements are those of the package and of its extra `test`; each is of the form `name>=version`, or `name[extra]>=…`,
with a marker behind it where not every system has the library.
One that is pinned, `name==version`, stays so. A library that no wheel of its own allows beside the oldest NumPy is left
out: tests that compare with it skip, and say so.
"""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_LOWER_BOUND = re.compile(r"(?P<name>[\w.-]+(?:\[[\w,.-]+\])?)[>=]=(?P<version>[\d.]+)(?P<marker>; \w+ == '\w+')?")
_NEED_A_NEWER_NUMPY = {"slycot"}  # 2, in all of its wheels


def oldest_versions() -> list[str]:
    """One pin for each requirement; a requirement without a lower bound is an error."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    pins = {}
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        bound = _LOWER_BOUND.fullmatch(requirement)
        if bound is None:
            raise ValueError(f"{requirement} has no lower bound of the form name>=version")
        if bound["name"] in _NEED_A_NEWER_NUMPY:
            continue
        pins[bound["name"]] = f"{bound['name']}=={bound['version']}{bound['marker'] or ''}"
    return list(pins.values())


if __name__ == "__main__":
    print("\n".join(oldest_versions()))
