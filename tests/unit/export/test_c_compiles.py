"""Hypothesis: exported C is clean under every compiler and checker here, as C and C++, on the host and on a board."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ltinet
from exported_runs import AS_CXX, STRICT, any_compiler, compiled, compilers

PACKAGED = Path(ltinet.__file__).parent / "export" / "c" / "source"
BOARD = Path(__file__).parents[2] / "bare_metal"
COMPILERS = compilers()
ON_BOARD = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-ffp-contract=off", "-O2")


@pytest.fixture(params=["double", "float", "static gain", "no input", "one state"])
def exported(request, tmp_path, mixed_net) -> Path:
    """A folder of each kind, odd ones among them."""
    if request.param in ("double", "float"):
        net, options = mixed_net, {"dtype": request.param, "hold": "linear", "user_states": True, "x0": np.ones(10)}
    else:
        n, m, p = {"static gain": (0, 2, 2), "no input": (2, 0, 1), "one state": (1, 1, 1)}[request.param]
        system = ltinet.StateSpace(-np.eye(n), np.ones((n, m)), np.ones((p, n)), np.ones((p, m)))
        net, options = ltinet.construct(system), {"dtype": "double", "hold": "zero", "user_states": n > 0}
    net.export_c(tmp_path / "model", 0.125, **options)
    return tmp_path / "model"


def run(*command: object, folder: Path | None = None) -> str:
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}  # nothing is allocated, and looking takes seconds
    done = subprocess.run(  # noqa: S603
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", COMPILERS)
def test_sources_of_the_package_compile_as_they_stand(name, tmp_path):
    sources = PACKAGED / "model.c", PACKAGED / "model_test.c"
    compiled(COMPILERS[name], [*STRICT, "-o", tmp_path / "test", *sources])
    assert "passed" in run(tmp_path / "test")


def test_strict_compilers_say_nothing_in_either_language_and_bits_are_the_same(exported, tmp_path):
    if not COMPILERS:
        pytest.skip("no C compiler is here")
    told = set()
    for name, command in COMPILERS.items():
        languages = (
            {"c": STRICT, "c++": AS_CXX} if name != "zig" else {"c": STRICT}
        )  # for C++ it builds a library first
        for language, options in languages.items():
            objects = [tmp_path / f"{name}_{len(language)}_{stem}.o" for stem in ("model", "model_test")]
            for own in objects:
                source = exported / f"{'model_test' if own.stem.endswith('test') else 'model'}.c"
                compiled(command, [*options, "-O2", "-c", "-o", own, source])
            compiled(command, ["-o", tmp_path / "test", *objects])
            told.add(run(tmp_path / "test"))
    assert len(told) == 1
    assert "passed" in told.pop()


@pytest.mark.parametrize("exported", ["double", "float"], indirect=True)
def test_sanitizers_find_nothing(exported, tmp_path):
    command = next((COMPILERS[name] for name in ("gcc", "clang") if name in COMPILERS), None)
    if command is None or not sys.platform.startswith("linux"):
        pytest.skip("neither gcc nor clang with sanitizers is here")
    flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compiled(command, [*STRICT, *flags, "-o", tmp_path / "test", exported / "model.c", exported / "model_test.c"])
    assert "passed" in run(tmp_path / "test")


def test_cppcheck_finds_nothing(exported):
    if not shutil.which("cppcheck"):
        pytest.skip("cppcheck is not here")
    checks = ["--enable=warning,performance,portability", "--std=c99", "--error-exitcode=1", "--quiet"]
    run("cppcheck", *checks, exported / "model.c", exported / "model_test.c")


def test_make_runs_the_self_test(exported):
    if not shutil.which("make"):
        pytest.skip("make is not here")
    assert "passed" in run("make", "test", f"CC={' '.join(any_compiler())}", folder=exported)


def test_fast_math_is_refused(exported, tmp_path):
    command = [*any_compiler(), "-ffast-math", "-c", "-o", tmp_path / "model.o", exported / "model.c"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode != 0
    assert "-ffast-math" in done.stderr


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_a_board_gives_the_bits_of_the_host(dtype, tmp_path, mixed_net):
    tools = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here")
    folder = tmp_path / "model"
    mixed_net.export_c(folder, 0.125, dtype=dtype)
    host, board, alone = tmp_path / "host", tmp_path / "board.elf", tmp_path / "model.o"
    compiled(any_compiler(), [*STRICT, "-o", host, folder / "model.c", folder / "model_test.c"])
    compiled(["arm-none-eabi-gcc"], [*STRICT, *ON_BOARD, "-c", "-o", alone, folder / "model.c"])
    sources = BOARD / "start.c", folder / "model.c", folder / "model_test.c"
    linking = ["-std=gnu99", "-nostartfiles", "--specs=rdimon.specs", "-T", BOARD / "mps2.ld"]
    compiled(["arm-none-eabi-gcc"], [*ON_BOARD, *linking, "-o", board, *sources])
    machine = ["-M", "mps2-an386", "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", board]
    told = run("qemu-system-arm", *machine)
    text, data, bss = map(int, run("arm-none-eabi-size", alone).splitlines()[1].split()[:3])
    print(f"{dtype}: {text} bytes of flash, {data + bss} of static memory")
    assert told == run(host)
    assert data + bss == 0, "nothing is shared between two instances"
    tables = re.search(r"the tables (\d+) bytes", (folder / "README.md").read_text())
    assert tables is not None
    assert int(tables[1]) <= text <= int(tables[1]) + 4000
