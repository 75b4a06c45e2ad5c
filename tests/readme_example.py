"""Run the first Python example of the README with the ltinet that is installed, and say where that is."""

import re
import tempfile
from contextlib import chdir
from pathlib import Path

import ltinet

README = Path(__file__).resolve().parents[1] / "README.md"

if __name__ == "__main__":
    block = re.search(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    print(f"the first example of the README runs with ltinet {ltinet.__version__} in {Path(ltinet.__file__).parent}")
