"""Hypothesis: no damaged file kills the process, hangs, raises a raw error or loads as something that it is not.

A small run of what `make fuzz` does at length, and proof that it would notice.
"""

import json
import os
import subprocess
import sys

import pytest

from fuzz.formats import FORMATS

PER_FORMAT = 120

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="files are loaded in forked children")


def python(*arguments):
    """A process of its own, since it forks: the one that runs the tests has threads."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(  # noqa: S603 - our own interpreter and our own text
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_damaged_files_are_refused_or_read_rightly():
    done = python("-m", "fuzz", "--count", str(PER_FORMAT), "--seed", "12")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [(row[0], int(row[1])) for row in rows] == [(name, PER_FORMAT) for name in FORMATS]
    for row in rows:
        assert int(row[2]) > 0, row  # a reader that refuses everything would pass as well
        assert [int(number) for number in row[4:8]] == [0, 0, 0, 0]


# A link that became a count of references; a sparse E that is singular; an entry so large that SciPy's exponential
# does not end; norms that exceed all numbers; a tiny E;
# an attribute of a type that no one can decode; marks of a group and of a fill value that nobody knows.
ONCE_WRONG = [
    ("mat73", 0, 4977),
    ("mtx", 0, 2075),
    ("network", 0, 2077),
    ("network", 6, 4644),
    ("network", 6, 4837),
    ("network", 7, 4218),
    ("network", 8, 4825),
    ("mat73", 15, 110),
    ("mat73", 18, 178),
    ("mat73", 20, 3274),
]
OUTCOMES = """
import json, pathlib, sys
from fuzz.children import outcome_of, mutated
from fuzz.formats import FORMATS
for number, (name, seed, index) in enumerate(json.loads(sys.argv[1])):
    form, folder = FORMATS[name], pathlib.Path(sys.argv[2], str(number))
    folder.mkdir()
    print(outcome_of(form, mutated(form, form.seeds(folder), seed=seed, index=index), folder)[0], flush=True)
"""


@pytest.mark.slow
def test_files_that_were_once_read_wrongly(tmp_path):
    """One process for all of them; where it dies, the number of outcomes names the file."""
    done = python("-c", OUTCOMES, json.dumps(ONCE_WRONG), str(tmp_path))
    outcomes = done.stdout.split()
    wrong = [case for case, outcome in zip(ONCE_WRONG, outcomes, strict=False) if outcome not in ("loaded", "refused")]
    assert wrong == []
    assert len(outcomes) == len(ONCE_WRONG), done.stderr


UNDAMAGED = """
import pathlib, sys
from fuzz.formats import FORMATS
folder = pathlib.Path(sys.argv[1])
for form in FORMATS.values():
    for file in form.seeds(folder):
        path = form.store(file, folder)
        print(form.name, form.agrees(form.load(path), file, path))
"""


@pytest.mark.slow
def test_the_files_before_the_damage_load_as_what_the_reference_says(tmp_path):
    done = python("-c", UNDAMAGED, str(tmp_path))
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == set(FORMATS), done.stderr
    assert {line.split()[1] for line in lines} == {"True"}


BROKEN = """
import dataclasses, json, os, signal, sys, time
import numpy as np
import ltinet
from fuzz import children
from fuzz.formats import FORMATS

children.SECONDS = 1.0
count = 0

def load(path):
    global count
    count += 1
    what = path.read_bytes()[0] % 5
    if what == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == 1:
        time.sleep(60)
    if what == 2:
        raise KeyError("raw")
    if what == 3:
        return ltinet.StateSpace([[1.0]], [[1.0]], [[1.0]])
    np.ones(10**10)

form = dataclasses.replace(FORMATS["mat5"], load=load, seeds=lambda _: [bytes([k]) for k in range(5)],
                           change=lambda data, _: data)
tally = children.run(form, count=10, seed=0)
print(json.dumps(tally.counts))
"""


@pytest.mark.slow
def test_what_it_guards_against_is_noticed():
    done = python("-c", BROKEN)
    counts = json.loads(done.stdout)
    assert counts == {"death": 2, "hang": 2, "raw": 4, "wrong": 2}  # too much memory is a raw MemoryError


SCIPY = """
import dataclasses, json
import ltinet
from fuzz import children
from fuzz.formats import FORMATS
from scipy.io import mmread

def load(folder):
    try:
        matrices = {file.name.split(".")[0]: mmread(str(file)) for file in folder.iterdir()}
        return ltinet.StateSpace(**{name: value for name, value in matrices.items() if name in "ABCDE"})
    except Exception as error:
        raise ltinet.FileFormatError("damaged") from error

tally = children.run(dataclasses.replace(FORMATS["mtx"], load=load), count=1500, seed=0)
print(json.dumps(tally.counts))
"""


@pytest.mark.slow
def test_a_lenient_reader_is_noticed():
    """SciPy's reader of Matrix Market, which takes 2abc for 2 among other things."""
    counts = json.loads(python("-c", SCIPY).stdout)
    assert counts.get("death", 0) + counts.get("wrong", 0) + counts.get("hang", 0) > 10
