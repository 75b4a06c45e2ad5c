"""Run the package without what only POSIX has: `python without_posix.py FOLDER`, where files are written to FOLDER.

A stand-in for Windows on Linux. Libraries are imported first, as they have their own ways on Windows; then modules and
functions of POSIX disappear, files that are open cannot be renamed, and text files need an encoding. `import ltinet`
and the work of most users must get by with the rest. It does not stand for other paths, processes or compilers.
"""

# ruff: noqa: F401 - many imports are for what they load alone
import concurrent.futures.process
import multiprocessing.connection
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import rich.progress
import safetensors.numpy
import scipy.fft
import scipy.integrate
import scipy.io
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg
import scipy.special
import scipy.stats
import threadpoolctl
import typer.completion

MODULES = ("fcntl", "grp", "pwd", "pty", "resource", "termios", "tty")
FUNCTIONS = {
    os: "O_NONBLOCK O_TMPFILE chown fchown fork forkpty geteuid getgid getuid killpg mkfifo register_at_fork "
    "sched_getaffinity setsid sysconf uname",
    signal: "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT alarm setitimer pthread_kill pthread_sigmask",
}


def hide_posix() -> None:
    threadpoolctl.threadpool_info()  # finds the C library by `os.uname` and keeps it; Windows has another way
    sys.modules |= dict.fromkeys(MODULES)  # None: importing them fails
    for module, names in FUNCTIONS.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    shutil._use_fd_functions = False  # as on Windows; rmtree needs O_NONBLOCK otherwise
    sys.addaudithook(refuse_to_rename_open_files)
    warnings.filterwarnings("error", category=EncodingWarning, module="ltinet")


def refuse_to_rename_open_files(event: str, arguments: tuple[object, ...]) -> None:
    """Where /proc tells which files this process has open; `os.replace` raises the same event."""
    descriptors = Path("/proc/self/fd")
    if event == "os.rename" and descriptors.is_dir():
        source = os.path.realpath(os.fsdecode(arguments[0]))
        if any(os.path.realpath(descriptor) == source for descriptor in descriptors.iterdir()):
            raise PermissionError(f"the process cannot rename {source} because it is open")


def use_the_package(folder: Path) -> None:
    import ltinet

    A, B, C = np.array([[-1.0, 2.0], [-2.0, -1.0]]), np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]])
    net = ltinet.construct(ltinet.StateSpace(A, B, C))
    t = 0.1 * np.arange(400)
    u = np.random.default_rng(0).standard_normal(len(t))
    sol = net.simulate(u, t)
    for engine in ("per_neuron", "per_interval"):
        np.testing.assert_allclose(net.simulate(u[:20], t[:20], engine=engine).y, sol.y[:20], atol=1e-5)
    for _ in range(2):  # the second time the file is replaced
        net.save(folder / "net.safetensors")
        net.export_c(folder / "c", 0.1)
    np.testing.assert_array_equal(ltinet.load(folder / "net.safetensors").simulate(u, t).y, sol.y)
    for suffix in ("mat", "npz"):
        ltinet.save_system(net.system, folder / f"system.{suffix}")
        np.testing.assert_array_equal(ltinet.load_system(folder / f"system.{suffix}").A, A)
    larger = (-np.diag(np.arange(1.0, 9.0)), np.ones((8, 1)), np.ones((1, 8)))
    assert ltinet.reduce(larger, order=4).net.simulate(u, t).y.shape == (len(t), 1)
    assert ltinet.identify(u, sol.y, dt=0.1, order=2).order == 2


def run_commands(folder: Path) -> None:
    os.chdir(folder)
    table = "t,u\n" + "".join(f"{0.1 * step:.1f},1.0\n" for step in range(50))
    Path("input.csv").write_text(table, encoding="utf-8")
    for command in (
        "construct system.mat -o from_command.safetensors",
        "simulate from_command.safetensors -i input.csv -o output.csv",
        "info from_command.safetensors",
    ):
        assert not exit_code(command), command
    assert len(Path("output.csv").read_text(encoding="utf-8").splitlines()) == 51


def exit_code(command: str) -> object:
    from ltinet.__main__ import main

    sys.argv = ["ltinet", *command.split()]
    try:
        main()
    except SystemExit as end:
        return end.code
    return None


if __name__ == "__main__":
    hide_posix()
    use_the_package(Path(sys.argv[1]))
    run_commands(Path(sys.argv[1]))
    print("all of it works without POSIX")
