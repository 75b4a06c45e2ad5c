"""Reductions beside those of pyMOR: `python -m benchmarks.reduction [plates | rail | data]`.

`plates` reduces heat and convection–diffusion plates of 10⁴, 10⁵ and (with `--largest`) 10⁶ states to certified errors:
seconds of this process, memory, states, bound. `rail` compares with pyMOR's balanced truncation and IRKA in one run.
`data` compares dense reductions of all systems in ../shared/data with pyMOR and python-control.
Errors are the largest over a sweep of frequencies, relative to the largest gain there.
"""

import argparse
import math
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltinet

Complex = NDArray[np.complex128]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PLATES = ((10_000, 1e-6), (100_000, 1e-4), (1_000_000, 1e-3))
ORDERS = (5, 10, 20, 40)


def plates(*, largest: bool) -> None:
    """Print what certified reductions of plates cost."""
    print(f"{'system':34} {'tolerance':>9} {'CPU s':>7} {'GB':>6} {'states':>7} {'bound':>9} {'L2 → peak':>10}")
    for n, tolerance in PLATES if largest else PLATES[:2]:
        for V in (0.0, 10.0, 100.0) if n <= 100_000 else (0.0, 10.0):
            system = _plate(n, V)
            began = time.process_time()
            found = ltinet.reduce(system, tolerance=tolerance)
            seconds, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            name = f"{'heat' if V == 0.0 else f'convection V={V:g}'} plate, n={system.n_states}"
            bound = "none" if found.error_bound is None else f"{found.error_bound / found.gain:.1e}"
            pointwise = "none" if found.pointwise_bound is None else f"{found.pointwise_bound / found.gain:.1e}"
            row = f"{seconds:7.1f} {memory:6.2f} {found.order:7} {bound:>9} {pointwise:>10}"
            print(f"{name:34} {tolerance:9.0e} {row}", flush=True)


def _plate(n: int, V: float) -> ltinet.StateSpace:
    if V == 0.0:
        return ltinet.named_system("heat_plate", n=n)
    return ltinet.named_system("convection_diffusion_plate", n=n, V=V)


def rail() -> None:
    """Print reductions of the steel profile to order 40, all in one run."""
    from pymor.core.logger import set_log_levels
    from pymor.reductors.h2 import IRKAReductor
    from pymor.reductors.mt import MTReductor

    set_log_levels({"pymor": "ERROR"})
    print(f"{'system':12} {'by':24} {'CPU s':>7} {'error':>9} {'bound':>9}")
    for name in ("rail_371", "rail_1357"):
        system = ltinet.load_system(DATA / "large" / f"{name}.mat")
        omega = np.concatenate([[0.0], np.geomspace(1e-8, 1e2, 200)])
        whole = system.frequency_response(omega)
        found, seconds = _timed(_anew, system)
        bound = "none" if found.error_bound is None else f"{found.error_bound / found.gain:.1e}"
        _print(name, "ltinet.reduce", seconds, _error(whole, found.system.frequency_response(omega)), bound)
        (small, bounds), seconds = _timed(_pymor_truncation, system)
        bound_text = f"{bounds[39] / found.gain:.1e}*" if len(bounds) > 39 else "none"
        _print(name, "pyMOR BT", seconds, _error(whole, _pymor_response(small, omega)), bound_text)
        small, seconds = _timed(IRKAReductor(_pymor_model(system)).reduce, 20)
        _print(name, "pyMOR IRKA, order 20", seconds, _error(whole, _pymor_response(small, omega)), "none")
        small, seconds = _timed(_tried, MTReductor(_pymor_model(system)).reduce, 40)
        if small is None:
            print(f"{name:12} {'pyMOR modal':24} {seconds:7.2f}    failed", flush=True)
        else:
            _print(name, "pyMOR modal", seconds, _error(whole, _pymor_response(small, omega)), "none")
    print("* no bound: Hankel values that low-rank factors did not find are not counted")


def data() -> None:
    """Print errors of dense reductions beside those of pyMOR and python-control, as shares of the largest gain."""
    import control
    from pymor.core.logger import set_log_levels
    from pymor.reductors.bt import BTReductor
    from pymor.reductors.mt import MTReductor

    set_log_levels({"pymor": "ERROR"})
    heads = ("truncation", "pyMOR BT", "balred", "at rest", "balred at rest", "pyMOR modal", "bound")
    print(f"{'system':22} {'order':>5} " + " ".join(f"{head:>14}" for head in heads))
    for path in sorted((DATA / "lti").glob("*.mat")):
        try:
            system = ltinet.load_system(path)
        except ltinet.LtinetError:  # one has no C
            continue
        omega = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 1500), np.abs(system.poles())]))
        whole = system.frequency_response(omega)
        plain = control.ss(system.A, system.B, system.C, system.D)
        reductor, by_modes = BTReductor(_pymor_model(system)), MTReductor(_pymor_model(system))
        for order in (own for own in ORDERS if own < system.n_states):
            cut = _tried(ltinet.reduce, system, order=order)
            rest = _tried(ltinet.reduce, system, order=order, method="singular_perturbation")
            others = (
                cut and cut.system.frequency_response(omega),
                _tried(lambda *own: _pymor_response(own[0].reduce(own[1]), own[2]), reductor, order, omega),
                _tried(_balred, plain, order, omega, method="truncate"),
                rest and rest.system.frequency_response(omega),
                _tried(_balred, plain, order, omega, method="matchdc"),
                _tried(lambda *own: _pymor_response(own[0].reduce(own[1]), own[2]), by_modes, order, omega),
            )
            errors = [f"{_error(whole, own):14.3e}" if own is not None else f"{'–':>14}" for own in others]
            bound = "–" if cut is None or cut.error_bound is None else f"{cut.error_bound / _peak(whole):.3e}"
            print(f"{path.stem:22} {order:5} {' '.join(errors)} {bound:>14}", flush=True)


def _anew(system: ltinet.StateSpace) -> ltinet.ReductionResult:
    """Reduce a system that nothing is known of yet."""
    own = system.sparse
    assert own is not None
    return ltinet.reduce(ltinet.StateSpace(own.A, own.B, system.C, E=own.E), order=40)


def _pymor_truncation(system: ltinet.StateSpace) -> tuple[Any, Any]:
    """Likewise; what pyMOR calls error bounds comes with it."""
    from pymor.reductors.bt import BTReductor

    reductor = BTReductor(_pymor_model(system))
    return reductor.reduce(40), reductor.error_bounds()


def _pymor_model(system: ltinet.StateSpace) -> Any:
    from pymor.models.iosys import LTIModel

    if system.sparse is not None:
        E = None if system.sparse.E is None else system.sparse.E.tocsc()
        return LTIModel.from_matrices(system.sparse.A.tocsc(), system.sparse.B, system.C, E=E)
    if system.descriptor is None:
        return LTIModel.from_matrices(system.A, system.B, system.C)
    return LTIModel.from_matrices(system.descriptor.A, system.descriptor.B, system.C, E=system.descriptor.E)


def _timed(run: Callable[..., Any], *given: Any, **options: Any) -> tuple[Any, float]:
    """The best of three, by CPU seconds; once for what takes long."""
    seconds = math.inf
    for _ in range(3):
        began = time.process_time()
        result = run(*given, **options)
        seconds = min(seconds, time.process_time() - began)
        if seconds > 3.0:
            break
    return result, seconds


def _tried(run: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Return the result, or None if the library fails."""
    try:
        return run(*given, **options)
    except Exception:
        return None


def _balred(plain: Any, order: int, omega: NDArray[np.float64], *, method: str) -> Complex:
    import control

    small = control.balred(plain, order, method=method)
    return np.asarray(small(1j * omega, squeeze=False)).transpose(2, 0, 1)


def _print(name: str, by: str, seconds: float, error: float, bound: str) -> None:
    print(f"{name:12} {by:24} {seconds:7.2f} {error:9.1e} {bound:>9}", flush=True)


def _peak(values: Complex) -> float:
    gains = np.linalg.norm(np.where(np.isfinite(values), values, 0.0), 2, axis=(1, 2))
    return float(gains.max())


def _error(whole: Complex, small: Complex) -> float:
    usable = np.isfinite(whole).all(axis=(1, 2)) & np.isfinite(small).all(axis=(1, 2))
    return float(np.linalg.norm((whole - small)[usable], 2, axis=(1, 2)).max() / _peak(whole))


def _pymor_response(model: Any, omega: NDArray[np.float64]) -> Complex:
    return np.array([model.transfer_function.eval_tf(1j * own) for own in omega])


def main() -> None:
    """Run what is asked for; everything but the largest plates without a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=["plates", "rail", "data"], default=[])
    parser.add_argument("--largest", action="store_true", help="plates of a million states too: 10 minutes, 6 GB")
    asked = parser.parse_args()
    for name in asked.what or ("rail", "data", "plates"):
        {"plates": lambda: plates(largest=asked.largest), "rail": rail, "data": data}[name]()
        print()


if __name__ == "__main__":
    main()
