"""Draw hostile runs by any seed and print what became of them: `python -m tests.hostile --seed 7`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where the test runner looks for modules as well

from hostile.command import main

if __name__ == "__main__":
    main()
