"""Named models with products: `named_system("burgers", viscosity=0.01)`.

Benchmarks of the literature on the reduction of bilinear and quadratic-bilinear systems (Benner and Breiten 2012, 2015; Gu
2011), already lifted to second degree. Each function documents its equation, inputs and outputs.
"""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.nonlinear.models import Bilinear, NonlinearModel, QuadraticBilinear
from ltinet.systems.named_systems import validate_count, validate_positive


def burgers(n_states: int = 100, *, viscosity: float = 0.05) -> QuadraticBilinear:
    """Build Burgers' equation v_t + v v_x = ν v_xx on (0, 1) with v = u at the left end and v_x = 0 at the right one.

    By central differences at n points x_i = i h, h = 1/(n + 1): v_i′ = ν (v_{i−1} − 2 v_i + v_{i+1})/h² −
    v_i (v_{i+1} − v_{i−1})/(2h), with v_0 = u and v_{n+1} = v_n. The output is the last point.
    """
    n = validate_count(n_states, "n_states", minimum=2)
    nu, h = validate_positive(viscosity, "viscosity"), 1.0 / (n + 1)
    A = nu / h**2 * _second_difference(n, free_right=True)
    B, C = np.zeros((n, 1)), np.zeros((1, n))
    B[0, 0], C[0, -1] = nu / h**2, 1.0
    N = sparse.csr_array(([0.5 / h], ([0], [0])), shape=(n, n))
    slope = sparse.lil_array(sparse.diags_array([-1.0, 1.0], offsets=[-1, 1], shape=(n, n)))
    slope[n - 1, n - 1] = 1.0
    identity = sparse.eye_array(n)
    return QuadraticBilinear(A, B, C, N=[N], H=(-0.5 / h * identity, identity, sparse.csr_array(slope)))


def boundary_heat(points: int = 10) -> Bilinear:
    """Build the heat equation on the unit square whose heat transfer through two edges is controlled.

    w_t = Δw with ∂w/∂n = u_1 (w − 1)/2 at the left and ∂w/∂n = u_2 (w − 1)/2 at the right edge, w = 0 at the bottom and
    w = u_3 at the top, by five-point differences on points² inner points (after Benner and Breiten 2012). Negative u_1
    and u_2 heat towards 1. The output is the mean of all points.
    """
    k = validate_count(points, "points", minimum=2)
    h, one = 1.0 / (k + 1), np.ones(k)
    first, last = np.eye(k)[0], np.eye(k)[-1]
    across = sparse.lil_array(_second_difference(k, free_right=True))
    across[0, 0] = -1.0
    identity = sparse.eye_array(k)
    A = (sparse.kron(across, identity) + sparse.kron(identity, _second_difference(k))) / h**2
    N = [sparse.csr_array(sparse.kron(sparse.diags_array(edge), identity) * (0.5 / h)) for edge in (first, last)]
    B = np.column_stack([-0.5 / h * np.kron(first, one), -0.5 / h * np.kron(last, one), np.kron(one, last) / h**2])
    return Bilinear(sparse.csr_array(A), B, np.full((1, k * k), 1.0 / k**2), N=[*N, None])


def chafee_infante(points: int = 50) -> QuadraticBilinear:
    """Build the Chafee–Infante equation v_t = v_xx + v − v³ on (0, 1), v = u at the left end, v_x = 0 at the right one.

    Lifted by w = v²: the states are (v, w), with v_i′ = (v_xx)_i + v_i − v_i w_i and
    w_i′ = 2 v_i (v_{i−1} + v_{i+1})/h² − 4 w_i/h² + 2 w_i − 2 w_i², where v_0 = u and v_{k+1} = v_k. Initial states must
    satisfy w = v². The output is v at the right end.
    """
    k = validate_count(points, "points", minimum=2)
    inverse_h2 = float((k + 1) ** 2)
    identity = sparse.eye_array(k)
    zero = sparse.csr_array((k, k))
    diagonal = np.full(k, -2.0)
    diagonal[-1] = -1.0
    neighbors = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(k, k))
    A = _blocks([
        [inverse_h2 * _second_difference(k, free_right=True) + identity, None],
        [None, sparse.diags_array(2.0 * inverse_h2 * diagonal + 2.0)],
    ])  # fmt: skip
    B, C = np.zeros((2 * k, 1)), np.zeros((1, 2 * k))
    B[0, 0], C[0, k - 1] = inverse_h2, 1.0
    N = sparse.csr_array(([2.0 * inverse_h2], ([k], [0])), shape=(2 * k, 2 * k))
    v, w = sparse.hstack([identity, zero]), sparse.hstack([zero, identity])
    J, K = sparse.vstack([v, v, w]), sparse.vstack([w, sparse.hstack([neighbors, zero]), w])
    S = _blocks([[-identity, zero, zero], [zero, 2.0 * inverse_h2 * identity, -2.0 * identity]])
    return QuadraticBilinear(sparse.csr_array(A), B, C, N=[N], H=(S, J, K))


def fitzhugh_nagumo(points: int = 50) -> QuadraticBilinear:
    """Build the FitzHugh–Nagumo model of a nerve, ε v_t = ε² v_xx + v (v − 0.1)(1 − v) − w + q, w_t = v/2 − 2 w + q.

    ε = 0.015, q = 0.05, v_x = −u_1 at the left end and 0 at the right one (Chaturantabut and Sorensen 2010). Lifted by
    z = v²: the states are (v, w, z), and initial states must satisfy z = v². The second input is the constant q/0.05, 1.
    The outputs are v and w at the left end. The usual stimulus is u_1 = 5e4 t³ e^{−15 t}.
    """
    k = validate_count(points, "points", minimum=2)
    eps, decay, q, h = 0.015, 2.0, 0.05, 1.0 / k
    identity, zero = sparse.eye_array(k), sparse.csr_array((k, k))
    diffusion = sparse.lil_array(_second_difference(k, free_right=True))
    diffusion[0, 0] = -1.0
    E = sparse.csr_array(diffusion) * (eps / h**2)
    A = _blocks([
        [E - 0.1 / eps * identity, -identity / eps, 1.1 / eps * identity],
        [0.5 * identity, -decay * identity, None],
        [2.0 * q / eps * identity, None, -0.2 / eps * identity],
    ])  # fmt: skip
    first, one, nothing = np.eye(k)[0], np.ones(k), np.zeros(k)
    B = np.column_stack([
        np.concatenate([eps / h * first, nothing, nothing]), np.concatenate([q / eps * one, q * one, nothing])
    ])  # fmt: skip
    C = np.zeros((2, 3 * k))
    C[0, 0] = C[1, k] = 1.0
    N = sparse.csr_array(([2.0 * eps / h], ([2 * k], [0])), shape=(3 * k, 3 * k))
    v, w, z = (sparse.hstack([identity if i == j else zero for j in range(3)]) for i in range(3))
    J, K = sparse.vstack([v, v, z, v]), sparse.vstack([z, sparse.hstack([E, zero, zero]), z, w])
    S = _blocks([
        [-identity / eps, zero, zero, zero],
        [zero, zero, zero, zero],
        [2.2 / eps * identity, 2.0 * identity, -2.0 / eps * identity, -2.0 / eps * identity],
    ])  # fmt: skip
    return QuadraticBilinear(sparse.csr_array(A), B, C, N=[N, None], H=(S, J, K))


def diode_ladder(nodes: int = 50) -> QuadraticBilinear:
    """Build a ladder of unit resistors and diodes i = e^{40 d} − 1 over unit capacitors, driven by a current u.

    With d_1 = v_1, d_{i+1} = v_i − v_{i+1} and z_i = e^{40 d_i} − 1 the states are (v, z): v′ is linear in v, z and u, and
    z_i′ = 40 (z_i + 1) d_i′. Initial states must satisfy this relation; zero does. The output is v_1. (Gu 2011)
    """
    k = validate_count(nodes, "nodes", minimum=2)
    L = _second_difference(k, free_right=True).toarray()
    differences = np.eye(k, k=-1) - np.eye(k)
    differences[0, 0] = 1.0
    G = -differences.T  # the current of a branch leaves its first node and enters its second one
    drive = np.eye(k)[0]
    P, Q, c = 40.0 * differences @ L, 40.0 * differences @ G, 40.0 * differences @ drive
    A = np.block([[L, G], [P, Q]])
    zero, identity = np.zeros((k, k)), np.eye(k)
    N = np.block([[zero, zero], [zero, np.diag(c)]])
    factors = np.vstack([zero, identity]), np.hstack([zero, identity]), np.hstack([P, Q])
    return QuadraticBilinear(A, np.concatenate([drive, c]), np.eye(1, 2 * k), N=[N], H=factors)


def _blocks(rows: Any) -> Any:
    """Return a sparse matrix from blocks, of which None is zero."""
    return sparse.block_array(rows)


def _second_difference(n: int, *, free_right: bool = False) -> Any:
    """Return tridiag(1, −2, 1); with a free right end its last entry is −1."""
    diagonal = np.full(n, -2.0)
    diagonal[-1] += float(free_right)
    bands: Any = [np.ones(n - 1), diagonal, np.ones(n - 1)]
    return sparse.csr_array(sparse.diags_array(bands, offsets=[-1, 0, 1]))


NAMED_MODELS: Mapping[str, Callable[..., NonlinearModel]] = MappingProxyType({
    function.__name__: function for function in (boundary_heat, burgers, chafee_infante, diode_ladder, fitzhugh_nagumo)
})  # fmt: skip
"""Functions that build the named models; all their parameters have default values."""


def describe_models() -> dict[str, str]:
    """Return for each name the parameters of the model with their default values, as `describe_systems` does."""
    return {
        name: ", ".join(f"{key}={item.default:g}" for key, item in inspect.signature(function).parameters.items())
        for name, function in NAMED_MODELS.items()
    }


def build_model(name: str, parameters: Mapping[str, Any]) -> NonlinearModel:
    """Build the model called `name`; raise InvalidSystemError for unknown parameters."""
    known = inspect.signature(NAMED_MODELS[name]).parameters
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise InvalidSystemError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(known)}")
    return NAMED_MODELS[name](**parameters)
