"""`python -m fuzz`: mutate files, load them, print a table; exit code 1 if anything bad happened."""

import argparse
import sys
import time

from fuzz.children import BAD, DEATH, HANG, LOADED, RAW, REFUSED, WRONG, run
from fuzz.formats import FORMATS

_COLUMNS = {
    LOADED: "loaded", REFUSED: "refused", DEATH: "deaths", HANG: "hangs", RAW: "raw errors", WRONG: "wrong loads",
}  # fmt: skip


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--format", choices=sorted(FORMATS), action="append", help="only this one; may be repeated")
    parser.add_argument("--count", type=int, default=5000, help="files of each format")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{'format':<9}{'files':>7}" + "".join(f"{title:>13}" for title in _COLUMNS.values()) + f"{'seconds':>10}")
    bad = []
    for name in arguments.format or FORMATS:
        begin = time.perf_counter()
        tally = run(FORMATS[name], count=arguments.count, seed=arguments.seed)
        numbers = "".join(f"{tally.counts[outcome]:>13}" for outcome in _COLUMNS)
        print(f"{name:<9}{tally.counts.total():>7}{numbers}{time.perf_counter() - begin:>10.0f}", flush=True)
        bad += [(name, outcome, case) for outcome in BAD for case in tally.cases.get(outcome, [])]
    for name, outcome, (index, remark) in bad[:40]:
        print(f"{name} {index}: {outcome}: {remark}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
