"""Exported C, FMUs and ONNX against simulate: data sets with both holds, from rest and from x0, and hostile systems.

`python tests/exported_agreement.py [--count 200] [--steps 10000] [--only fmu]`, or `make export-agreement`.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from data_sets import DATA_SETS
from exported_fmus import RunningFmu
from exported_runs import Run, data_set_runs, hostile_runs, library_of, share_of_peak
from ltinet.export.rounding import rounding_bound
from ltinet.export.step_model import build_exported_model, validate_settings

TARGETS = ["c", "onnx", "fmu", "float"]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="hostile systems")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument(
        "--only", choices=["c", "onnx", "fmu", "float"], nargs="*", default=["c", "onnx", "fmu", "float"]
    )
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = data_set_runs(DATA, DATA_SETS, n_steps=asked.steps) if DATA.is_dir() else {}
    runs |= hostile_runs(range(asked.count), n_steps=asked.steps)
    with tempfile.TemporaryDirectory() as folder:
        if "c" in asked.only:
            judge("C, double", runs, c_double(runs, Path(folder)), Run.simulated)
        if "onnx" in asked.only:
            judge("ONNX, double", runs, onnx_double(runs, Path(folder)), Run.simulated)
        if "fmu" in asked.only:
            judge("FMU, multiples", runs, fmu(runs, Path(folder)), Run.simulated)
            judge("FMU, odd points", runs, fmu_at_odd_points(runs, Path(folder)), simulated_at_odd_points)
        if "float" in asked.only:
            judge_float(runs, Path(folder))


def judge(
    title: str, runs: dict[str, Run], found: dict[str, np.ndarray], expected: Callable[[Run], np.ndarray]
) -> None:
    """How many agree to 1e-12 of the peak, and which are farther apart than ten times the stepper."""
    shares = {name: share_of_peak(y, expected(runs[name])) for name, y in found.items()}
    beyond = {name: share for name, share in shares.items() if share > 1e-12}
    stepper = {name: share_of_peak(runs[name].stepped(), runs[name].simulated()) for name in beyond}
    missed = {name: share for name, share in beyond.items() if share > 10.0 * stepper[name]}
    counts = f"{len(shares)} runs, {len(beyond)} beyond 1e-12, {len(missed)} beyond ten times the stepper"
    within = {name: share for name, share in shares.items() if name not in beyond}
    worst = max(within, key=within.__getitem__, default="none")
    print(f"{title}: {counts}; worst of the others: {worst}, {within.get(worst, 0.0):.2e}", flush=True)
    for name, share in missed.items():
        print(f"    {name}: {share:.2e} of the peak, stepper {stepper[name]:.1e}")


def judge_float(runs: dict[str, Run], place: Path) -> None:
    """How many runs in single precision stay below their bound."""
    rounded = {
        name: Run(run.net, run.dt, run.hold, run.u.astype(np.float32).astype(float), run.x0)
        for name, run in runs.items()
    }
    found, below, infinite = compiled_runs(rounded, place / "float", "float"), 0, 0
    for name, y in found.items():
        run = rounded[name]
        settings = validate_settings(run.dt, hold=run.hold, dtype="float", x0=run.x0)
        model = build_exported_model(run.net._context, settings)
        bound = rounding_bound(model, np.float32, n_steps=len(run.u), peak=np.abs(run.u).max(axis=0)).drift
        infinite += not np.isfinite(bound).all()
        below += bool(np.all(np.abs(y - run.simulated()).max(axis=0) <= bound))
    print(f"C, float: {len(found)} runs, {below} below their bound, {infinite} of these without a finite one")


def c_double(runs: dict[str, Run], place: Path) -> dict[str, np.ndarray]:
    """Outputs of exported C."""
    return compiled_runs(runs, place / "double", "double")


def compiled_runs(runs: dict[str, Run], place: Path, dtype: str) -> dict[str, np.ndarray]:
    """Outputs of exported C in either precision."""
    place.mkdir()
    folders = [place / f"m{number}" for number in range(len(runs))]
    for folder, run in zip(folders, runs.values(), strict=True):
        run.net.export_c(folder, dtype=dtype, prefix=folder.name, **run.options)
    library = library_of(folders, place)
    return {
        name: library.run(folder.name, run.u, run.net.n_outputs, dtype=dtype)
        for folder, (name, run) in zip(folders, runs.items(), strict=True)
    }


def onnx_double(runs: dict[str, Run], place: Path) -> dict[str, np.ndarray]:
    """Outputs of exported graphs."""
    import onnxruntime

    options, found = onnxruntime.SessionOptions(), {}
    options.intra_op_num_threads = 1
    for name, run in runs.items():
        exported = run.net.export_onnx(place / "net.onnx", **run.options)
        session = onnxruntime.InferenceSession(place / "net.onnx", options, providers=["CPUExecutionProvider"])
        start = np.array(exported.manifest["initial state"])[None]
        found[name] = session.run(None, {"u": run.u[None], "state": start})[0][0]
    return found


def fmu(runs: dict[str, Run], place: Path) -> dict[str, np.ndarray]:
    """Outputs of exported FMUs at whole multiples of dt."""
    found = {}
    for number, (name, run) in enumerate(runs.items()):
        path = place / f"m{number}.fmu"
        run.net.export_fmu(path, run.dt, version="2.0", x0=run.x0)
        t = run.dt * np.arange(len(run.u))
        found[name] = RunningFmu(path).run(run.u, t, derivatives=run.hold == "linear")
    return found


def odd_points(run: Run) -> np.ndarray:
    """Times with steps from a hundredth of dt to three of them, as many as the run has samples."""
    steps = run.dt * np.random.default_rng(len(run.u)).choice([0.01, 0.3, 0.77, 1.0, 1.5, 3.0], len(run.u) - 1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def fmu_at_odd_points(runs: dict[str, Run], place: Path) -> dict[str, np.ndarray]:
    """Outputs of the same FMUs at other times."""
    return {
        name: RunningFmu(place / f"m{number}.fmu").run(run.u, odd_points(run), derivatives=run.hold == "linear")
        for number, (name, run) in enumerate(runs.items())
    }


def simulated_at_odd_points(run: Run) -> np.ndarray:
    """What simulate gives there."""
    return run.net.simulate(run.u, odd_points(run), hold=run.hold, x0=run.x0).y


if __name__ == "__main__":
    main()
