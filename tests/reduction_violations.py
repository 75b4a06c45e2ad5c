"""No violated bound: `python tests/reduction_violations.py [--count 500] [--first 0]` draws systems and judges bounds.

Printed by kind: how many were certified, how many bounds are below the error that balls of python-flint find (none),
and bound over error, median and largest, where the error is more than rounding.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import ltinet
from reduction_cases import KINDS, RESIDUAL, draw, error_of


@dataclass
class Tally:
    """What was found of one kind."""

    drawn: int = 0
    certified: int = 0
    violated: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        ratios = f"{np.median(self.ratios):9.3g} {np.max(self.ratios):9.3g}" if self.ratios else f"{'–':>9} {'–':>9}"
        return f"{self.drawn:6} {self.certified:10} {len(self.violated):9} {ratios}"


def judge(seeds: Sequence[int]) -> dict[str, Tally]:
    """Reduce every case and compare its bound with its error."""
    found = {kind: Tally() for kind in KINDS}
    for seed in seeds:
        case = draw(seed)
        own, result = found[case.kind], ltinet.reduce(case.system, order=case.order)
        own.drawn += 1
        if result.error_bound is None:
            continue
        own.certified += 1
        error = error_of(case, result.system)
        floor = 1e-12 * result.gain if case.kind in RESIDUAL else 0.0  # what the reference by doubles loses there
        if error > result.error_bound + floor:
            own.violated.append(seed)
        if error > 1e-11 * result.gain:  # below, rounding is all of both
            own.ratios.append(result.error_bound / error)
    return found


def main() -> None:
    """Judge as many cases as asked for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    found = judge(range(asked.first, asked.first + asked.count))
    print(f"{'kind':18} drawn  certified  violated    median   largest   (bound/error)")
    for kind, own in found.items():
        print(f"{kind:18}{own}")
    total = sum(own.certified for own in found.values()) / asked.count
    for name, residual in (("dense", False), ("residual", True)):
        ratios = [ratio for kind, own in found.items() if (kind in RESIDUAL) == residual for ratio in own.ratios]
        print(f"median bound/error, {name}: {np.median(ratios):.3g}")
    violated = [seed for own in found.values() for seed in own.violated]
    print(f"certified: {total:.1%}; violated: {len(violated)} {violated or ''}")


if __name__ == "__main__":
    main()
