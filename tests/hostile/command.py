"""The command behind `python -m tests.hostile`: a table for a seed, or all about one case."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from .details import describe
from .draw import draw
from .families import FAMILIES
from .judge import Outcome
from .shards import RUNS_PER_FAMILY, run_shard, shards
from .table import over_convolution_limit, table


def main() -> None:
    """Parse, run, print; the exit code tells whether all is as it must be."""
    arguments = _parser().parse_args()
    if arguments.case:
        failed = False
        for name in arguments.case:
            text, fails = describe(draw(name))
            print(text)
            failed |= fails
        sys.exit(int(failed))
    begin = time.monotonic()
    outcomes = _run(arguments.seed, arguments.family or list(FAMILIES), arguments.runs, arguments.jobs)
    print(table(outcomes))
    print(f"seed {arguments.seed}, {len(outcomes)} runs in {time.monotonic() - begin:.0f} s")
    failing = [own for own in outcomes if own.fails]
    wide = over_convolution_limit(outcomes)
    _list("not as they must be", failing, arguments.show)
    _list("by fast convolution with too wide a bound", wide, arguments.show)
    _list("widest bounds", sorted(outcomes, key=lambda own: -_width(own))[: min(10, arguments.show)], arguments.show)
    sys.exit(int(bool(failing or wide)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the draw; the tests use 0")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these; may be given twice")
    parser.add_argument("--runs", type=int, default=RUNS_PER_FAMILY, help="of each family")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--show", type=int, default=60, help="failing cases to list")
    parser.add_argument("--case", action="append", help='one case with all details, as "0/jordan/17"')
    return parser


def _run(seed: int, families: list[str], n_runs: int, n_jobs: int) -> list[Outcome]:
    portions = [(family, numbers) for family, numbers in shards(n_runs) if family in families]
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_shard, seed, family, numbers, timed=True) for family, numbers in portions]
        for done, future in enumerate(as_completed(running), start=1):
            outcomes += future.result()
            if sys.stderr.isatty():
                print(f"\r{done} of {len(portions)} portions", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return sorted(outcomes, key=lambda own: (own.family, int(own.case.split(":")[0].split("/")[2])))


def _width(outcome: Outcome) -> float:
    return outcome.tightness if outcome.tightness == outcome.tightness else -1.0


def _list(title: str, outcomes: list[Outcome], limit: int) -> None:
    if not outcomes:
        return
    print(f"\n{len(outcomes)} {title}; look at one by: python -m tests.hostile --case {_name(outcomes[0])}")
    for own in outcomes[:limit]:
        what = [own.raised, *own.wrong, *own.above, "infinite bound" if own.unbounded else ""]
        print(f"{own.case}\n    {'; '.join(part for part in what if part) or f'bound over error {own.tightness:.1e}'}")
    if len(outcomes) > limit:
        print(f"… and {len(outcomes) - limit} more (--show)")


def _name(outcome: Outcome) -> str:
    return outcome.case.split(":")[0]
