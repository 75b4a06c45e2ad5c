"""The network whose tables stand in the C sources of the package, so that these compile and can be linted as they are.

`python tests/exported_sample.py` writes them again.
"""

from pathlib import Path

import ltinet
from ltinet.export.c.export import model_sources, self_test_section
from ltinet.export.c.templates import read_source
from ltinet.export.step_model import build_exported_model, validate_settings

SOURCE = Path(ltinet.__file__).parent / "export" / "c" / "source"


def sample_sources() -> dict[str, str]:
    """What the package's sources are to be."""
    net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))
    settings = validate_settings(0.125, hold="linear", dtype="double", x0=None)
    model = build_exported_model(net._context, settings)
    files = model_sources(net._context, model, settings, prefix="model", user_states=False)
    vectors = self_test_section(model, settings)
    sections = {
        "model.h": ("sizes", _between(files["model.h"], 'extern "C" {\n#endif\n\n', "/* Array size")),
        "model.c": ("tables", _between(files["model.c"], 'compile without it"\n#endif\n\n', "enum { FIRST")),
        "model_test.c": ("vectors", vectors),
    }
    return {name: _placed(read_source("c", name), *section) for name, section in sections.items()}


def _between(text: str, before: str, after: str) -> str:
    return text.split(before)[1].split(after)[0].strip("\n")


def _placed(text: str, name: str, section: str) -> str:
    begin, end = f"/* [model: {name}] */\n", "/* [end] */\n"
    head, rest = text.split(begin)
    return head + begin + section + "\n" + end + rest.split(end)[1]


if __name__ == "__main__":
    for name, text in sample_sources().items():
        (SOURCE / name).write_text(text, encoding="utf-8")
