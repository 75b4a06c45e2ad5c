"""Reference solutions of models with products, restarted at every knot: Taylor series in mpmath, and DOP853."""

from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import ltinet

Array = NDArray[np.float64]
_DIGITS = 30
_ORDER = 24


def taylor_states(model: Any, u: Array, t: Array, x0: Array, *, hold: str, substeps: int = 4) -> Array:
    """States at the times t of samples u `(T, m + l)`, inputs before scheduling signals, in 30 digits.

    Every interval is divided into substeps, each with a Taylor series of order 24 for inputs that are linear in time.
    """
    n, m = model.n_states, model.n_inputs
    with mpmath.workdps(_DIGITS):
        factors = [*(model.terms.N or [np.zeros((n, n))] * m), *model.terms.A_p]
        products = [_exact(_dense(matrix)) for matrix in factors]
        A, B = _exact(model.A), _exact(model.B)
        B_p = [_exact(matrix) for matrix in model.terms.B_p]
        S, J, K = (None,) * 3 if model.terms.H is None else (_exact(_dense(part)) for part in model.terms.H)
        x, states = _exact(x0), [x0]
        for k, (start, stop) in enumerate(pairwise(t.tolist())):
            if stop == start:
                states.append(states[-1])
                continue
            h = (mpmath.mpf(stop) - mpmath.mpf(start)) / substeps
            first, last = _exact(u[k]), _exact(u[k + 1] if hold == "linear" else u[k])
            slope = (last - first) / (h * substeps)
            for step in range(substeps):
                w = first + slope * (h * step)
                series = [x]
                for order in range(_ORDER):
                    derivative = A @ series[order]
                    inputs = {0: w, 1: slope}
                    if order in inputs:
                        derivative = derivative + B @ inputs[order][:m]
                    for power, values in inputs.items():
                        if order >= power:
                            for value, matrix in zip(values, products, strict=True):
                                derivative = derivative + value * (matrix @ series[order - power])
                    for index, matrix in enumerate(B_p):
                        for power, values in inputs.items():
                            other = inputs.get(order - power)
                            if other is not None:
                                derivative = derivative + values[m + index] * (matrix @ other[:m])
                    if S is not None:
                        pairs = ((J @ series[i]) * (K @ series[order - i]) for i in range(order + 1))
                        derivative = derivative + S @ sum(pairs)
                    series.append(derivative / (order + 1))
                x = sum(coefficient * h**order for order, coefficient in enumerate(series))
            states.append(np.array([float(value) for value in x]))
    return np.array(states)


def dop853_states(model: Any, u: Array, t: Array, x0: Array, *, hold: str) -> Array:
    """States at the times t of samples u `(T, m + l)` by DOP853 with a relative tolerance of 1e-13, interval by interval."""
    m, x, states = model.n_inputs, x0, [x0]
    for k, (start, stop) in enumerate(pairwise(t.tolist())):
        if stop > start:
            first, last = u[k], u[k + 1] if hold == "linear" else u[k]

            def derivative(
                time: float,
                x: Array,
                first: Array = first,
                last: Array = last,
                start: float = start,
                stop: float = stop,
            ) -> Array:
                w = first + (last - first) * ((time - start) / (stop - start))
                return np.asarray(model.evaluate(x, w[:m], w[m:]))

            x = solve_ivp(derivative, (start, stop), x, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
        states.append(x)
    return np.array(states)


def random_case(seed: int, *, max_states: int | None = None) -> tuple[Any, Array, Array, Array, str]:
    """A stable random model of one of three classes, with samples, times that may hold jumps, a state and a hold.

    It has up to 12 states, from seed 200 on up to 40.
    """
    rng = np.random.default_rng(seed)
    if max_states is None:
        max_states = 12 if seed < 200 else 40
    n, m = int(rng.integers(2, max_states + 1)), int(rng.integers(1, 3))
    A = rng.normal(size=(n, n)) / np.sqrt(n)
    A -= (np.linalg.eigvals(A).real.max() + rng.uniform(0.2, 1.0)) * np.eye(n)
    A[0] *= 10.0 ** rng.uniform(0.0, 1.0)  # a faster state
    A -= max(0.0, np.linalg.eigvals(A).real.max() + 0.1) * np.eye(n)
    B, C = rng.normal(size=(n, m)), rng.normal(size=(2, n))
    D = rng.normal(size=(2, m)) if seed % 2 else None
    kind, hold = ("bilinear", "lpv", "quadratic")[seed % 3], ("linear", "zero")[seed // 3 % 2]
    scale = 0.4 / np.sqrt(n)
    N = [scale * rng.normal(size=(n, n)) for _ in range(m)]
    count = m
    if kind == "bilinear":
        model: Any = ltinet.Bilinear(A, B, C, D, N)
    elif kind == "lpv":
        A_p = [scale * rng.normal(size=(n, n)) for _ in range(2)]
        model = ltinet.LPV(
            A, B, C, D, A_p, B_p=[0.3 * rng.normal(size=(n, m)), None], C_p=[None, rng.normal(size=(2, n))]
        )
        count = m + 2
    else:
        H = 0.1 / n * rng.normal(size=(n, n * n))
        model = ltinet.QuadraticBilinear(A, B, C, D, N, H)
    n_times = 13
    t = np.linspace(0.0, 6.0, n_times)
    if seed % 4 == 3:
        t = np.insert(t, 7, t[7])  # a jump
    if seed % 4 == 2:
        t = np.sort(rng.uniform(0.0, 6.0, n_times))
    u = rng.uniform(-1.0, 1.0, (len(t), count))
    x0 = rng.normal(size=n) if seed % 5 else np.zeros(n)
    return model, u, t, x0, hold


def outputs(model: Any, x: Array, u: Array) -> Array:
    """Outputs of states `(T, n)` and samples `(T, m + l)`."""
    v, p = u[:, : model.n_inputs], u[:, model.n_inputs :]
    y = x @ model.C.T + v @ model.D.T
    for index, (C, D) in enumerate(zip(model.terms.C_p, model.terms.D_p, strict=True)):
        y = y + p[:, [index]] * (x @ C.T + v @ D.T)
    return np.asarray(y)


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _exact(array: Array) -> Any:
    return np.array([mpmath.mpf(value) for value in np.ravel(array).tolist()], dtype=object).reshape(np.shape(array))
