"""Linear parts of python-control's examples: every number is that of python-control, or closer to the exact one.

The cases are listed in `python_control_examples.md`, with the parts that are not in scope. A system is built by one function
with either library, and with exact fractions.
"""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import exact_systems
import ltinet
from margin_oracle import crossings

RELATIVE = 1e-9
POINTS = [0.3j, 1.7j, 40j, 0.4 + 0.9j, 2.0, 7.0 + 3.0j, 0.05j, 12.0 - 5.0j, 3.3]
SYSTEMS: dict[str, tuple[Callable[[Any], Any], float, str]] = {}


def example(name: str, build: Callable[[Any], Any], end: float, *, kind: str = "closed") -> None:
    """Register a system that `build` makes with a library, the end of its step response, and whether it is an open loop."""
    assert name not in SYSTEMS
    SYSTEMS[name] = build, end, kind


# Servomechanism: J θ'' = −b θ' − k r sin θ + τ, y = l θ, at θ = 15°

J, b, k, r, l = 100.0, 10.0, 1.0, 1.0, 2.0  # noqa: E741
STIFFNESS = k * r * np.cos(np.pi / 12)
ARM = [[0.0, 1.0], [-STIFFNESS / J, -b / J]], [[0.0], [1.0 / J]]
PLACED = [200.0 * J - STIFFNESS, 20.0 * J - b]  # poles at −10 ± 10j


def arm(lib: Any, **names: Any) -> Any:
    return lib.ss(*ARM, [[l, 0.0]], [[0.0]], **names)


def arm_with_actuator(lib: Any) -> Any:
    return arm(lib) * lib.tf([10.0], [1.0, 10.0])


def placed_arm(lib: Any) -> Any:
    plant = lib.ss(*ARM, [[l, 0.0], [0.0, 1.0]], [[0.0], [0.0]], inputs=["tau"], outputs=["y", "thdot"])
    K = [PLACED[0] / l, PLACED[1]]
    gains = lib.ss([], [], [], [[-K[0], -K[1], *K]], inputs=["y", "thdot", "y_d", "thdot_d"], outputs=["tau"])
    return lib.interconnect([plant, gains], inputs=["y_d", "thdot_d"], outputs=["y", "tau"])


def shaped_controller(lib: Any) -> Any:
    # kp + ki/s + kd a s/(s + a) with kp = 150, Td = 1, Ti = 5, a = 10/Td
    kp, ki, kd, a = 150.0, 30.0, 150.0, 10.0
    return lib.tf([kp + kd * a, kp * a + ki, ki * a], [1.0, a, 0.0])


def shaped_loop(lib: Any) -> Any:
    return arm_with_actuator(lib) * shaped_controller(lib)


example("servo-arm", arm, 100.0)
example("servo-arm-with-actuator", arm_with_actuator, 100.0)
example("servo-state-feedback", placed_arm, 1.0)
example("servo-shaped-loop", shaped_loop, 10.0, kind="open")
example("servo-shaped-closed", lambda lib: lib.feedback(shaped_loop(lib), 1), 10.0)
example("servo-shaped-sensitivity", lambda lib: lib.feedback(1, shaped_loop(lib)), 10.0)
for key, gains in {"p": ([2.1], [1.0]), "pi": ([1.9, 0.046], [1.0, 0.0])}.items():
    example(
        f"servo-ziegler-nichols-{key}", lambda lib, C=gains: arm_with_actuator(lib) * lib.tf(*C), 100.0, kind="open"
    )

# Cruise control: m v' = α u T(α v) − m g C_r − ρ C_d A v²/2 − m g θ


def car(v: float, gear: float, mass: float = 1600.0) -> tuple[float, list[list[float]]]:
    """A and B of a car at speed v with inputs throttle and slope."""
    g, Cr, Cd, rho, area, Tm, omega_m, beta = 9.8, 0.01, 0.32, 1.3, 2.4, 190.0, 420.0, 0.4
    torque = Tm * (1.0 - beta * (gear * v / omega_m - 1.0) ** 2)
    throttle = (mass * g * Cr + 0.5 * rho * Cd * area * v**2) / (gear * torque)
    slope = -2.0 * Tm * beta * (gear * v / omega_m - 1.0) / omega_m
    return (throttle * gear**2 * slope - rho * Cd * area * v) / mass, [[gear * torque / mass, -g]]


A20, B20 = car(20.0, 12.0)


def vehicle(lib: Any, A: float = A20, B: Any = B20) -> Any:
    return lib.ss([[A]], B, [[1.0]], [[0.0, 0.0]], inputs=["u", "theta"], outputs=["v"])


def cruise(lib: Any, controller: Any, *car_matrices: Any) -> Any:
    """Vehicle, controller from e to u, and junction; reference and slope to speed and throttle."""
    parts = [vehicle(lib, *car_matrices), controller, lib.summing_junction(["vref", "-v"], "e")]
    return lib.interconnect(parts, inputs=["vref", "theta"], outputs=["v", "u"])


def pi(lib: Any, kp: float, ki: float) -> Any:
    return lib.ss([[0.0]], [[1.0]], [[ki]], [[kp]], inputs=["e"], outputs=["u"])


def cruise_state_feedback(lib: Any, ki: float) -> Any:
    # u = −K v − ki ∫(v − r) + kf r
    K = 0.5
    kf = (B20[0][0] * K - A20) / B20[0][0]
    controller = lib.ss([[0.0]], [[1.0, -1.0]], [[-ki]], [[-K, kf]], inputs=["v", "vref"], outputs=["u"])
    return lib.interconnect([vehicle(lib), controller], inputs=["vref", "theta"], outputs=["v", "u"])


example("cruise-vehicle", vehicle, 100.0)
for mass in (1000.0, 2000.0, 3000.0):
    example(
        f"cruise-roll-off-{mass:g}",
        lambda lib, M=mass: cruise(
            lib, lib.tf([0.5, 0.1], [1.0, 0.002], inputs=["e"], outputs=["u"]), *car(25.0, 16.0, M)
        ),
        25.0,
    )
example("cruise-pi", lambda lib: cruise(lib, pi(lib, 0.5, 0.1)), 30.0)
example("cruise-state-feedback", lambda lib: cruise_state_feedback(lib, 0.0), 30.0)
example("cruise-state-feedback-integral", lambda lib: cruise_state_feedback(lib, 0.1), 30.0)
for zeta, omega in ((0.5, 0.5), (1.0, 0.5), (2.0, 0.5), (1.0, 0.2), (1.0, 1.0)):
    example(
        f"cruise-design-{zeta:g}-{omega:g}",
        lambda lib, z=zeta, w=omega: cruise(lib, pi(lib, (2 * z * w + A20) / B20[0][0], w * w / B20[0][0])),
        40.0,
    )
example("cruise-cancelled-pole", lambda lib: cruise(lib, pi(lib, 0.5, -0.5 * A20)), 40.0)

# PVTOL aircraft, inner and outer loop

MASS, INERTIA, ARM_LENGTH, GRAVITY, DAMPING = 4.0, 0.0475, 0.25, 9.8, 0.05


def nested(lib: Any, form: str) -> dict[str, Any]:
    convert = getattr(lib, form)
    Pi, Po = convert(lib.tf([ARM_LENGTH], [INERTIA, 0, 0])), convert(lib.tf([1.0], [MASS, DAMPING, 0]))
    Ci, Co = convert(lib.tf([200.0, 400.0], [1.0, 50.0])), convert(lib.tf([-2.0, -0.6], [1.0, 10.0]))
    Li = Pi * Ci
    Hi = lib.parallel(lib.feedback(Ci, Pi), -MASS * GRAVITY * lib.feedback(Ci * Pi, 1))
    L = Co * Hi * Po
    return {
        "inner-plant": Pi, "outer-plant": Po, "inner-loop": Li, "inner-S": lib.feedback(1, Li), "inner-T": lib.feedback(Li, 1),
        "inner-PS": lib.feedback(Pi, Ci), "inner-CS": lib.feedback(Ci, Pi), "actual-H": Hi,
        "nominal-loop": -MASS * GRAVITY * Po * Co, "loop": L, "S": lib.feedback(1, L), "T": lib.feedback(L, 1),
        "CS": Co * lib.feedback(1, L), "outer-PS": lib.feedback(Hi * Po, Co), "outer-CS": lib.feedback(Co, Hi * Po),
    }  # fmt: skip


for form in ("tf", "ss"):
    for key in nested(exact_systems, form):
        example(
            f"nested-{form}-{key}",
            lambda lib, f=form, name=key: nested(lib, f)[name],
            20.0,
            kind="open" if key.endswith("loop") else "closed",
        )

# PVTOL aircraft, gains of lqr; states x, y, θ and their derivatives

PVTOL_A, PVTOL_B = np.zeros((6, 6)), np.zeros((6, 2))
PVTOL_A[[0, 1, 2], [3, 4, 5]], PVTOL_A[3, 2], PVTOL_A[[3, 4], [3, 4]] = 1.0, -GRAVITY, -DAMPING / MASS
PVTOL_B[3, 0], PVTOL_B[4, 1], PVTOL_B[5, 0] = 1.0 / MASS, 1.0 / MASS, ARM_LENGTH / INERTIA
LATERAL, VERTICAL = [0, 2, 3, 5], [1, 4]
GAINS = {  # lateral and vertical gains of lqr, rounded
    "identity": ([-1.0, 7.8541, -1.605, 2.0685], [1.0, 2.9504]),
    "costly": ([-0.025, 0.8086, -0.0681, 0.5577], [0.025, 0.4007]),
    "costlier": ([-0.005, 0.3416, -0.019, 0.3611], [0.005, 0.1562]),
    "outputs": ([-3.1623, 8.5187, -2.3371, 1.8944], [3.1623, 4.98]),
    "physical": ([-31.6228, 29.2636, -13.7166, 3.9], [3.1623, 4.98]),
}


def lqr_loop(lib: Any, states: list[int], column: int, K: list[float]) -> Any:
    """System x' = (A − B K) x + B K x_d r with the first state as output."""
    A, B = PVTOL_A[np.ix_(states, states)], PVTOL_B[states][:, [column]]
    return lib.ss(A - B * K, B * K[0], np.eye(1, len(states)), [[0.0]])


def full_lqr(lib: Any, lateral: list[float], vertical: list[float]) -> Any:
    K = np.zeros((2, 6))
    K[0, LATERAL], K[1, VERTICAL] = lateral, vertical
    return lib.ss(PVTOL_A - PVTOL_B @ K, PVTOL_B @ K[:, :2], np.eye(2, 6), np.zeros((2, 2)))


for key, (lateral, vertical) in GAINS.items():
    example(f"lqr-x-{key}", lambda lib, K=lateral: lqr_loop(lib, LATERAL, 0, K), 10.0)
    example(f"lqr-y-{key}", lambda lib, K=vertical: lqr_loop(lib, VERTICAL, 1, K), 10.0)
for key in ("identity", "physical"):
    example(f"lqr-all-{key}", lambda lib, K=GAINS[key]: full_lqr(lib, *K), 10.0)

# Steering: lateral position and heading, y' = v θ + (a v/b) δ, θ' = (v/b) δ; normalized with γ = a/b

GAMMA = 0.5


def steered(lib: Any, states: bool = False) -> Any:
    C, outputs = ([[1.0, 0.0], [0.0, 1.0]], ["y", "theta"]) if states else ([[1.0, 0.0]], ["y"])
    return lib.ss([[0.0, 1.0], [0.0, 0.0]], [[GAMMA], [1.0]], C, [[0.0]] * len(C), inputs=["delta"], outputs=outputs)


def steering_gains(omega: float, zeta: float = 0.7) -> list[float]:
    return [omega**2, 2.0 * zeta * omega - GAMMA * omega**2]


def steered_by_states(lib: Any, omega: float) -> Any:
    K = steering_gains(omega)
    gains = lib.ss([], [], [], [[K[0], -K[0], -K[1]]], inputs=["r", "y", "theta"], outputs=["delta"])
    return lib.interconnect([steered(lib, states=True), gains], inputs=["r"], outputs=["y", "delta"])


def steered_by_observer(lib: Any, omega: float, observer: float) -> Any:
    K, L = steering_gains(omega), [2.0 * 0.7 * observer, observer**2]
    # x̂' = A x̂ + B δ + L (y − ŷ) with δ = K₁ r − K x̂
    A = [[-L[0] - GAMMA * K[0], 1.0 - GAMMA * K[1]], [-L[1] - K[0], -K[1]]]
    B = [[L[0], GAMMA * K[0]], [L[1], K[0]]]
    controller = lib.ss(A, B, [[-K[0], -K[1]]], [[0.0, K[0]]], inputs=["y", "r"], outputs=["delta"])
    return lib.interconnect([steered(lib), controller], inputs=["r"], outputs=["y", "delta"])


def car_at_speed(lib: Any, v: float) -> Any:
    return lib.tf([1.5 * v / 3.0, v * v / 3.0], [1.0, 0.0, 0.0])


example("steering-plant", steered, 10.0)
for omega in (0.5, 0.7, 1.0):
    example(f"steering-state-feedback-{omega:g}", lambda lib, w=omega: steered_by_states(lib, w), 10.0)
for observer in (1.0, 2.0):
    example(f"steering-observer-{observer:g}", lambda lib, w=observer: steered_by_observer(lib, 0.7, w), 10.0)
for speed in (10.0, 15.0, 30.0):
    example(
        f"steering-loop-{speed:g}",
        lambda lib, v=speed: car_at_speed(lib, v) * lib.tf([0.02, 0.01], [0.1, 1.0]),
        10.0,
        kind="open",
    )
for key, close in {"T": lambda lib, L: lib.feedback(L, 1), "S": lambda lib, L: lib.feedback(1, L)}.items():
    example(
        f"steering-backwards-{key}",
        lambda lib, f=close: f(lib, car_at_speed(lib, -2.0) * lib.tf([0.3, 0.05], [0.1, 1.0])),
        20.0,
    )


# Comparisons


def agree(ours: Any, theirs: Any, exact: Callable[[], Any], scale: Any) -> None:
    """Every number is equal to 1e-9 of a scale, or closer to the exact one."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape == theirs.shape and np.all(np.abs(ours - theirs) <= RELATIVE * scale):
        return
    wanted = np.asarray(exact())
    assert ours.shape == wanted.shape
    limit = RELATIVE * scale
    if theirs.shape == wanted.shape:
        limit = np.maximum(limit, np.abs(theirs - wanted)) if np.isfinite(theirs).all() else limit
    assert np.all(np.abs(ours - wanted) <= limit)


def in_order(values: Any, reference: np.ndarray) -> np.ndarray:
    """Values in the order of those of a reference that are nearest."""
    left = [complex(value) for value in np.atleast_1d(values) if np.isfinite(value)]
    if len(left) != len(reference):
        return np.array(left, complex)
    return np.array([left.pop(int(np.argmin(np.abs(np.array(left) - wanted)))) for wanted in reference], complex)


def compare_response(ours: Any, theirs: Any, exact: Any) -> None:
    expected = np.moveaxis(theirs(np.array(POINTS), squeeze=False), 2, 0)
    H = np.asarray(ours(np.array(POINTS))).reshape(expected.shape)
    agree(
        H, expected, lambda: [exact(s) for s in map(complex, POINTS)], np.abs(expected).max(axis=(1, 2), keepdims=True)
    )


def compare_step(ours: Any, theirs: Any, exact: Any, t: np.ndarray) -> None:
    expected = np.moveaxis(control.step_response(theirs, t, squeeze=False).outputs, 2, 0)
    y = np.moveaxis(ours.step_response(t).y, 0, 2).reshape(expected.shape)
    agree(y, expected, lambda: [exact.step(float(time)) for time in t], np.abs(expected).max())


def compare_roots(ours: np.ndarray, theirs: np.ndarray, all_roots: np.ndarray, minimal: np.ndarray) -> None:
    """Roots agree, those of hidden modes included where a library keeps them."""
    exact = all_roots if len(ours) == len(all_roots) else minimal
    scale = max(np.abs(exact).max(initial=0.0), 1e-300)
    agree(in_order(ours, exact), in_order(theirs, exact), lambda: exact, scale)


def compare_poles(ours: Any, theirs: Any, exact: Any) -> None:
    minimal = exact_systems.roots(exact.polynomials()[1]) if exact.D.nrows() == exact.D.ncols() == 1 else exact.poles()
    compare_roots(ours.poles(), theirs.poles(), exact.poles(), minimal)


def compare_zeros(ours: Any, theirs: Any, exact: Any) -> None:
    every, minimal = (exact_systems.roots(exact.polynomials(minimal=flag)[0]) for flag in (False, True))
    compare_roots(ours.zeros(), theirs.zeros(), every, minimal)


def compare_margins(ours: Any, theirs: Any, exact: Any) -> None:
    num, den = (polynomial.coeffs()[::-1] for polynomial in exact.polynomials())
    found, wanted = ours.margin(), crossings(num, den)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm, pm, _, wpc, wgc, _ = control.stability_margins(theirs, returnall=True)
    is_finite = np.isfinite(gm)
    for mine, other, name in (
        (found.phase_crossovers, wpc[is_finite], "phase_crossovers"), (found.gain_margins, gm[is_finite], "gain_margins"),
        (found.gain_crossovers, wgc, "gain_crossovers"), (found.phase_margins, pm, "phase_margins"),
    ):  # fmt: skip
        agree(mine, other, lambda name=name: getattr(wanted, name), np.abs(mine))


COMPARISONS = {
    "response": compare_response, "poles": compare_poles, "zeros": compare_zeros,
    "margins": compare_margins,
}  # fmt: skip


def quantities(name: str) -> list[str]:
    build, _, kind = SYSTEMS[name]
    D = build(exact_systems).D
    is_single = D.nrows() == D.ncols() == 1
    return ["response", "step", "poles", *(["zeros"] if is_single else []), *(["margins"] if kind == "open" else [])]


# The double zero at s = 0 of a closed loop of transfer functions is exact in polynomials, which python-control multiplies;
# in the realization here it is known to the square root of a rounding error.
DOUBLE_ZERO = ("nested-tf-inner-CS", "zeros")
CASES = [(name, quantity) for name in SYSTEMS for quantity in quantities(name) if (name, quantity) != DOUBLE_ZERO]


@pytest.mark.default_cases(36)
@pytest.mark.parametrize(("name", "quantity"), CASES, ids=lambda value: value)
def test_example_is_that_of_python_control(name: str, quantity: str) -> None:
    build, end, _ = SYSTEMS[name]
    systems = build(ltinet), build(control), build(exact_systems)
    if quantity == "step":
        compare_step(*systems, np.linspace(0.0, end, 21))
    else:
        COMPARISONS[quantity](*systems)


def test_double_zero_is_known_to_the_root_of_a_rounding_error() -> None:
    system = SYSTEMS[DOUBLE_ZERO[0]][0](ltinet)
    zeros, size = system.zeros(), float(np.abs(system.A).max())
    assert np.sum(np.abs(zeros) <= 4.0 * size * np.sqrt(np.finfo(float).eps)) == 2
    assert np.isclose(zeros, -2.0, rtol=1e-12).sum() == 1


def test_listed_systems_are_those_tested() -> None:
    page = (Path(__file__).parent / "python_control_examples.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| ([^|]+) \|$", page.split("## Not in scope")[0], re.MULTILINE)
    for count, prefix in rows:
        assert sum(name.startswith(prefix.strip()) for name in SYSTEMS) == int(count), prefix
    assert sum(int(count) for count, _ in rows) == len(SYSTEMS)
    assert len(CASES) >= 280
