"""Write the picture of the README with the code of its first example, up to `net.plot()`."""

import re
from pathlib import Path
from typing import Any

from ltinet.plotting import save_figure
from ltinet.plotting.figures import draw_offscreen

README = Path(__file__).parents[1] / "README.md"
TARGET = Path(__file__).parent / "_static" / "overview.png"


def draw() -> Any:
    """Run the example and return the figure that its `net.plot()` makes."""
    example = re.search(r"```python\n(.*?)^(net\.plot\(\))", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if example is None:
        raise ValueError(f"{README.name} has no example with a line net.plot()")
    names: dict[str, Any] = {}
    exec(example[1], names)  # noqa: S102 - our own README
    return draw_offscreen(lambda: eval(example[2], names))  # noqa: S307


if __name__ == "__main__":
    save_figure(draw(), TARGET)
