"""Block algebra and interconnections of python-control, with its conventions: equal transfer functions to 1e-9.

The cases are listed in `python_control_cases.md`, with those that are not in scope.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import ltinet
from ltinet.errors import LtinetError

POINTS = [0.3j, 1.7j, 40j, 0.4 + 0.9j, 2.0, 7.0 + 3.0j, 0.05j, 12.0 - 5.0j, 3.3]
CASES: dict[str, Callable[[], tuple[Any, Any]]] = {}
REFUSED: dict[str, Callable[[], Any]] = {}


def case(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    assert name not in CASES
    CASES[name] = lambda: (ours(), theirs())


def random_control(n: int, p: int, m: int, seed: int, *, D: bool = True, **names: Any) -> Any:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) - 2.5 * np.eye(n)
    feedthrough = rng.standard_normal((p, m)) if D else np.zeros((p, m))
    return control.ss(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), feedthrough, **names)


def ours_of(system: Any) -> Any:
    return system if isinstance(system, int | float) else ltinet.as_state_space(system)


def labels(base: str, count: int) -> list[str]:
    return [f"{base}[{index}]" for index in range(count)]


# Feedback of numbers, matrices and transfer functions

SS = control.ss([[1.0, 4.0], [3.0, 2.0]], [[1.0], [-4.0]], [[1.0, 0.0]], [[0.0]])
TF = control.tf([1.0, 2.0], [1.0, 2.0, 3.0])
THIRD = control.ss([[-1.0, 4.0], [2.0, -3.0]], [[2.0], [3.0]], [[-3.0, 1.0]], [[-2.0]])
FOURTH = control.ss([[-3.0, -2.0], [1.0, 4.0]], [[-2.0], [-6.0]], [[2.0, -3.0]], [[3.0]])
PAIRS = {
    "scalar-scalar": (2.5, -3.0), "scalar-ss": (2.5, SS), "scalar-tf": (2.5, TF), "ss-scalar": (SS, 2.5),
    "ss-ss-strictly-proper": (SS, SS), "ss-ss-feedthrough": (THIRD, FOURTH), "ss-tf": (SS, TF), "tf-ss": (TF, SS),
    "tf-scalar": (TF, 2.5), "tf-tf": (TF, TF),
}  # fmt: skip
for key, (first, second) in PAIRS.items():
    for sign in (-1, 1):
        case(
            f"{key}-{sign}",
            lambda a=first, b=second, s=sign: ltinet.feedback(ours_of(a), ours_of(b), s),
            lambda a=first, b=second, s=sign: control.feedback(a, b, s),
        )
for key, system in {"scalar-ss": SS, "scalar-tf": TF}.items():
    case(f"{key}-default", lambda a=system: ltinet.feedback(ours_of(a)), lambda a=system: control.feedback(a, 1))
    case(f"{key}-one", lambda a=system: ltinet.feedback(ours_of(a), 1), lambda a=system: control.feedback(a))

# Series and parallel connections of several systems

CHAIN = [control.tf([1, zero], [1, pole]) for zero, pole in ((1, 2), (3, 4), (5, 6), (7, 8), (9, 0))]
for count in range(2, 6):
    for key in ("series", "parallel"):
        case(
            f"{key}-of-{count}",
            lambda k=key, c=count: getattr(ltinet, k)(*map(ours_of, CHAIN[:c])),
            lambda k=key, c=count: getattr(control, k)(*CHAIN[:c]),
        )
GAINS = [np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[1.0, 0.0], [2.0, 3.0]])]
case(
    "mimo-series",
    lambda: ltinet.series(*(ltinet.ss([], [], [], gain) for gain in GAINS)),
    lambda: control.series(*(control.ss([], [], [], gain) for gain in GAINS)),
)

# `connect` with signals by number; u_k = Σ ± y_j as rows [k, j, …]

ONE_STATE = control.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
WIRINGS = [
    (2, [[1, 2], [2, -2]], [2], [1, 2]), (2, [[1, 2], [2, 0]], [2], [1, 2]), (2, [[1, 2, 0], [2, -2, 1]], [2], [1, 2]),
    (2, [[1, 2], [2, -2]], [2, 1], [1]), (3, [[1, 2, 0], [2, -2, 1], [3, -3, 0]], [2], [1, 2]),
    (3, [[1, 2, 0], [2, -2, 1], [3, -3, 0]], [1, 2, 3], [3]), (3, [[1, 2, 0], [2, -2, 1], [3, -3, 0]], [2, 3], [2, 1]),
]  # fmt: skip


def by_numbers(count: int, rows: list[list[int]], inputs: list[int], outputs: list[int]) -> Any:
    systems = {f"s{k}": ours_of(part) for k, part in enumerate([SS, ONE_STATE, ONE_STATE][:count], start=1)}
    connections = [
        [("all", row[0] - 1), *(("all", abs(j) - 1, float(np.sign(j))) for j in row[1:] if j)] for row in rows
    ]
    return ltinet.interconnect(
        {"all": ltinet.append(*systems.values())},
        [connection for connection in connections if len(connection) > 1],
        inplist=[("all", k - 1) for k in inputs],
        outlist=[("all", k - 1) for k in outputs],
        ignore_inputs=["all"],
    )


def by_connect(count: int, rows: list[list[int]], inputs: list[int], outputs: list[int]) -> Any:
    with pytest.warns(FutureWarning, match="interconnect"):
        return control.connect(control.append(*[SS, ONE_STATE, ONE_STATE][:count]), rows, inputs, outputs)


for number, wiring in enumerate(WIRINGS):
    case(f"connect-{number}", lambda w=wiring: by_numbers(*w), lambda w=wiring: by_connect(*w))
OK = [[1, 2], [2, -2]]
OUT_OF_RANGE = [
    ([[1, 3], [2, -2]], [2], [1, 2]), ([[0, 2], [2, -2]], [2], [1, 2]), ([[1, 2], [2, -3]], [2], [1, 2]),
    ([[1, 2], [2, 4]], [2], [1, 2]), (OK, [3], [1, 2]), (OK, [0], [1, 2]), (OK, [-2], [1, 2]), (OK, [2], [1, 3]),
    (OK, [2], [1, 0]), (OK, [2], [1, -1]), ([[3, 1], [2, -2]], [2], [1, 2]),
]  # fmt: skip
for number, wiring in enumerate(OUT_OF_RANGE):
    REFUSED[f"refused-connect-{number}"] = lambda w=wiring: by_numbers(2, *w)

# Operations, gains and entries

R1, R2 = random_control(2, 1, 1, 1), random_control(2, 1, 1, 2)
for key in ("series", "parallel", "feedback", "append"):
    case(
        f"operation-{key}",
        lambda k=key: getattr(ltinet, k)(ours_of(R1), ours_of(R2)),
        lambda k=key: getattr(control, k)(R1, R2),
    )
case("operation-negate", lambda: -ours_of(R1), lambda: control.negate(R1))
WIDE = random_control(3, 3, 3, 3)
for key, gain in {
    "number": 2, "one": np.array([[2.0]]), "float": np.float64(2.0), "matrix": np.array([[2.0, 0, 3], [1, 2, 3]]),
    "row": np.array([[2.0, 0.0, 3.0]]), "square": np.arange(9.0).reshape(3, 3),
}.items():  # fmt: skip
    plant = R1 if np.size(gain) == 1 else WIDE
    case(f"gain-{key}", lambda g=gain, p=plant: g * ours_of(p), lambda g=gain, p=plant: g * p)
DISCRETE = control.tf([1.0], [1.0, 0.5], 0.1)
REFUSED["refused-operand-0"] = lambda: ours_of(TF) + ours_of(DISCRETE)
REFUSED["refused-operand-1"] = lambda: ours_of(DISCRETE) * ours_of(TF)
REFUSED["refused-operand-2"] = lambda: ours_of(TF) * np.ones((1, 1, 1))
REFUSED["refused-operand-3"] = lambda: ours_of(TF) + np.ones((1, 1, 1, 1))
REFUSED["refused-feedback-list"] = lambda: ltinet.feedback([[[1.0]]], ours_of(SS))
REFUSED["refused-feedback-text"] = lambda: ltinet.feedback(ours_of(TF), "hello world")
ENTRIES = {
    "continuous": ([[[1]], [[2]]], [[[1, 1]], [[1, 0]]], 0),
    "discrete": ([[[1]], [[2]]], [[[1, 1]], [[1, 0]]], 1),
    "gain": ([[[2]], [[2]]], [[[1]], [[1, 0]]], 0),
}
for key, (num, den, dt) in ENTRIES.items():
    case(f"entries-{key}", lambda a=(num, den, dt): ltinet.tf(*a), lambda a=(num, den, dt): control.tf(*a))
SPLIT = {
    "one": ([[[1]]], [[[1, 1]]], 0), "column": ENTRIES["continuous"], "discrete": ENTRIES["discrete"],
    "discrete-gain": ([[[2]], [[2]]], [[[1]], [[1, 0]]], 0.1),
}  # fmt: skip
for key, (num, den, dt) in SPLIT.items():
    case(
        f"split-{key}",
        lambda a=(num, den, dt): ltinet.tf(*a)[-1, 0],
        lambda a=(num, den, dt): control.split_tf(control.tf(*a))[-1, 0],
    )

# Summing junctions

JUNCTIONS = [
    (1, 1, None), ("u", "y", None), (["u"], ["y"], None), (2, 1, None), (["r", "-y"], ["e"], None), (5, 1, None),
    ("u", "y", 1), ("u", "y", 2), (["r", "-y"], ["e"], 2),
]  # fmt: skip
for number, (inputs, output, dimension) in enumerate(JUNCTIONS):
    case(
        f"junction-{number}",
        lambda a=(inputs, output, dimension): ltinet.summing_junction(a[0], a[1], dimension=a[2]),
        lambda a=(inputs, output, dimension): control.summing_junction(inputs=a[0], output=a[1], dimension=a[2]),
    )
REFUSED["refused-junction-inputs"] = lambda: ltinet.summing_junction(np.pi, "y")
REFUSED["refused-junction-output"] = lambda: ltinet.summing_junction("u", np.pi)
REFUSED["refused-junction-dimension"] = lambda: ltinet.summing_junction("u", "y", dimension=False)

# Implicit connections


def implicit(dim: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the systems of a loop with `dim` channels, and the loops that they must give."""
    P = random_control(2, dim, dim, 5, D=False, name="P", inputs=labels("u", dim), outputs=labels("y", dim))
    ends = {"inputs": labels("e", dim), "outputs": labels("u", dim)}
    kp, ki = np.full((dim, dim), 1.7), 2.4 * np.eye(dim)
    zero, one = np.zeros((dim, dim)), np.eye(dim)
    parts = {
        "P": P,
        "kp": control.ss([], [], [], kp, name="kp", **ends),
        "ki": control.ss(zero, one, ki, zero, name="ki", **ends),
        "C": control.ss(zero, one, ki, kp, name="C", **ends),
        "C2": control.ss([], [], [], 0.6 * kp, name="C2", **ends),
    }
    loops = {
        "dynamic": control.feedback(P * parts["C"], np.eye(dim)),
        "static": control.feedback(P * parts["C2"], np.eye(dim)),
        "controller": parts["C"],
    }
    return parts, loops


def implicitly(dim: int, names: list[str], junction: bool = True, **options: Any) -> Any:
    parts = [implicit(dim)[0][name] for name in names]
    if junction:
        parts.append(ltinet.summing_junction(["r", "-y"], "e", dimension=dim))
    return ltinet.interconnect(parts, **options)


for dim in (1, 3):
    ends = {"inplist": ["r"], "outlist": ["y"]}
    explicit = {"connections": [["P.u", "C.u"], ["C.e", "-P.y"]], "inplist": "C.e", "outlist": "P.y"}
    for key, names, junction, options, loop in (
        ("explicit", ["C", "P"], False, explicit, "dynamic"),
        ("junction", ["C", "P"], True, ends, "dynamic"),
        ("static", ["C2", "P"], True, {"inplist": "r", "outlist": "y"}, "static"),
        ("summed", ["kp", "ki", "P"], True, ends, "dynamic"),
        ("repeated", ["kp", "ki"], False, {"inplist": ["e"], "outlist": ["u"]}, "controller"),
        ("names", ["kp", "ki", "P"], True, {"inputs": "r", "outputs": "y"}, "dynamic"),
    ):
        case(
            f"implicit-{key}-{dim}",
            lambda a=(dim, names, junction), o=options: implicitly(*a, **o),
            lambda d=dim, k=loop: implicit(d)[1][k],
        )
REFUSED["refused-name-input"] = lambda: implicitly(1, ["C", "P"], inplist=["x"], outlist=["y"])
REFUSED["refused-name-output"] = lambda: implicitly(1, ["C", "P"], inplist=["r"], outlist=["x"])

P2, C2 = random_control(2, 2, 2, 7, D=False, name="P"), random_control(2, 2, 2, 8, name="C")
case(
    "docstring-mimo",
    lambda: ltinet.interconnect(
        [C2, P2],
        [["P.u[0]", "C.y[0]"], ["P.u[1]", "C.y[1]"], ["C.u[0]", "-P.y[0]"], ["C.u[1]", "-P.y[1]"]],
        inplist=["C.u[0]", "C.u[1]"],
        outlist=["P.y[0]", "P.y[1]"],
    ),
    lambda: control.feedback(P2 * C2, control.ss([], [], [], np.eye(2))),
)
INTEGRATOR = {"num": 1, "den": [1, 0], "inputs": ["u"], "outputs": ["y"]}
LAG = {"num": 10, "den": [1, 1], "inputs": ["e"], "outputs": ["u"]}


def integrator_loop(order: tuple[int, ...]) -> Any:
    parts = [ltinet.tf(**LAG), ltinet.tf(**INTEGRATOR), ltinet.summing_junction(["r", "-y"], "e")]
    return ltinet.interconnect([parts[index] for index in order], inputs="r", outputs="y")


def integrator_feedback() -> Any:
    return control.feedback(control.tf(1, [1, 0]) * control.tf(10, [1, 1]), 1)


case("docstring-implicit", lambda: integrator_loop((0, 1, 2)), integrator_feedback)
case("order-of-systems", lambda: integrator_loop((1, 0, 2)), integrator_feedback)

NAMED1 = random_control(2, 1, 1, 9, inputs=["u1"], outputs=["y1"], name="one")
NAMED2 = random_control(2, 1, 1, 10, inputs=["y1"], outputs=["y2"], name="two")
for key, options in {
    "input": {"inputs": "u1", "outputs": ["y2"]},
    "output": {"inputs": ["u1"], "outputs": "y2"},
}.items():
    case(f"string-{key}", lambda o=options: ltinet.interconnect([NAMED1, NAMED2], **o), lambda: NAMED2 * NAMED1)

CTRL = {"tf": control.tf(1, [10.1, 1], inputs="e", outputs="u", name="ctrl"),
        "ss": control.ss(1, 2, 1, 0, inputs="e", outputs="u", name="ctrl")}  # fmt: skip
PLANT = {"tf": control.tf(1, [10.1, 1], inputs="u", outputs="y", name="plant"),
         "ss": control.ss(1, 2, 1, 0, inputs="u", outputs="y", name="plant")}  # fmt: skip
for one in ("tf", "ss"):
    for other in ("tf", "ss"):
        case(
            f"linear-{one}-{other}",
            lambda a=one, b=other: ltinet.interconnect(
                [CTRL[a], PLANT[b], ltinet.summing_junction(["r", "-y"], "e")], inputs="r", outputs="y"
            ),
            lambda a=one, b=other: control.feedback(PLANT[b] * CTRL[a], 1),
        )

# Connections by names, numbers and slices

SYS1, SYS2 = random_control(4, 3, 3, 11, name="sys1"), random_control(4, 3, 3, 12, name="sys2")
ALL = [0, 1, 2]
SERIES = {
    "systems": ([["sys2", "sys1"]], "sys1", "sys2", None, None),
    "counts": ([["sys2", "sys1"]], "sys1", "sys2", 3, 3),
    "lists-counts": ([[("sys2", ALL), ("sys1", ALL)]], [("sys1", ALL)], [("sys2", ALL)], 3, 3),
    "slices": ([["sys2.u[0:3]", "sys1.y[:]"]], "sys1.u[:]", ["sys2.y[0:3]"], None, None),
    "basenames": (["sys2.u", "sys1.y"], "sys1.u", "sys2.y", None, None),
    "lists": ([[("sys2", ALL), ("sys1", ALL)]], [("sys1", ALL)], [("sys2", ALL)], None, None),
    "mixed": (
        [[(1, ["u[0]", "u[1]", "u[2]"]), (0, ["y[0]", "y[1]", "y[2]"])]],
        [("sys1", ALL)], [("sys2", ALL)], 3, ["y1", "y2", "y3"],
    ),
    "enumeration": (
        [[f"sys2.u[{i}]", f"sys1.y[{i}]"] for i in ALL],
        [f"sys1.u[{i}]" for i in ALL], [f"sys2.y[{i}]" for i in ALL], labels("u", 3), labels("y", 3),
    ),
}  # fmt: skip
for key, (connections, inplist, outlist, inputs, outputs) in SERIES.items():
    case(
        f"wired-series-{key}",
        lambda c=connections, o={"inplist": inplist, "outlist": outlist, "inputs": inputs, "outputs": outputs}: (
            ltinet.interconnect([SYS1, SYS2], c, **o)
        ),
        lambda: SYS2 * SYS1,
    )
PLANT4, CONTROL4 = random_control(4, 2, 2, 13, D=False, name="P"), random_control(4, 2, 2, 14, name="C")
FEEDBACK = {
    "systems": ([["P", "C"], ["C", "-P"]], "C", "P"),
    "basenames": ([["P.u", "C.y"], ["C.u", "-P.y"]], "C.u", "P.y"),
    "mixed": (
        [["P.u[:]", "C.y[0:2]"], [("C", "u"), ("P", ["y[0]", "y[1]"], -1)]], ["C.u[0]", "C.u[1]"], ("P", [0, 1]),
    ),
}  # fmt: skip
for key, (connections, inplist, outlist) in FEEDBACK.items():
    case(
        f"wired-feedback-{key}",
        lambda a=(connections, inplist, outlist): ltinet.interconnect(
            [CONTROL4, PLANT4], a[0], inplist=a[1], outlist=a[2]
        ),
        lambda: control.feedback(PLANT4 * CONTROL4, np.eye(2)),
    )
WZ = {"inputs": [*labels("w", 2), *labels("u", 2)], "outputs": [*labels("z", 2), *labels("y", 2)]}
BASES, PICKED = [["P.u", "C.y"], ["C.u", "-P.y"]], [("P", [2, 3]), ("C", [0, 1])]
PARTIAL = {
    "indices": (WZ, [PICKED, [("C", [0, 1]), ("P", [2, 3], -1)]], [("C", [0, 1]), ("P", [0, 1])],
                [("P", [0, 1, 2, 3]), ("C", [0, 1])]),
    "systems": (WZ, [PICKED, [("C", [0, 1]), ("P", [2, 3], -1)]], ["C", ("P", [0, 1])], ["P", "C"]),
    "slices": ({}, [["P.u[2:4]", "C.y[:]"], ["C.u", "-P.y[2:]"]], ["C", "P.u[:2]"], ["P.y[:]", "P.u[2:]"]),
    "controller-output": (WZ, BASES, ["C.u", "P.w"], ["P.z", "P.y", "C.y"]),
    "plant-input": (WZ, BASES, ["C.u", "P.w"], ["P.z", "P.y", "P.u"]),
}  # fmt: skip


def partial_feedback(names: dict[str, Any]) -> Any:
    P = random_control(6, 4, 4, 15, D=False, name="P", **names)
    return control.interconnect(
        [CONTROL4, P],
        connections=[[(1, 2), (0, 0)], [(1, 3), (0, 1)], [(0, 0), (1, 2, -1)], [(0, 1), (1, 3, -1)]],
        inplist=[(0, 0), (0, 1), (1, 0), (1, 1)],
        outlist=[(1, 0), (1, 1), (1, 2), (1, 3), (0, 0), (0, 1)],
    )


for key, (names, connections, inplist, outlist) in PARTIAL.items():
    case(
        f"partial-feedback-{key}",
        lambda a=(names, connections, inplist, outlist): ltinet.interconnect(
            [CONTROL4, random_control(6, 4, 4, 15, D=False, name="P", **a[0])], a[1], inplist=a[2], outlist=a[3]
        ),
        lambda n=names: partial_feedback(n),
    )

DOC_P = random_control(6, 4, 4, 16, D=False, name="P", inputs=[*labels("u", 2), *labels("v", 2)],
                       outputs=[*labels("y", 2), *labels("z", 2)])  # fmt: skip
DOC_C = random_control(4, 2, 2, 17, name="C", inputs=labels("e", 2), outputs=labels("u", 2))
DOCTEST = {
    "slices": (
        [["P.u[0:2]", "C.u[0:2]"], ["C.e[0:2]", "sum.e[0:2]"], ["sum.y[0:2]", "P.y[0:2]"]],
        ["sum.r[0:2]", "P.v[0:2]"], ["P.y[0:2]", "P.z[0:2]", "C.u[0:2]"],
    ),
    "basenames": ([["P.u", "C.u"], ["C.e", "sum.e"], ["sum.y", "P.y"]], ["sum.r", "P.v"], ["P.y", "P.z", "C.u"]),
    "systems": ([["P.u", "C"], ["C", "sum"], ["sum.y", "P.y"]], ["sum.r", "P.v"], ["P", "C.u"]),
    "implicit": (None, ["sum.r", "P.v"], ["P", "C.u"]),
}  # fmt: skip


def enumerated() -> Any:
    return control.interconnect(
        [DOC_C, DOC_P, control.summing_junction(inputs=["r", "-y"], outputs="e", dimension=2, name="sum")],
        connections=[[f"{one}[{i}]", f"{other}[{i}]"] for one, other in
                     (("P.u", "C.u"), ("C.e", "sum.e"), ("sum.y", "P.y")) for i in (0, 1)],
        inplist=["sum.r[0]", "sum.r[1]", "P.v[0]", "P.v[1]"],
        outlist=["P.y[0]", "P.y[1]", "P.z[0]", "P.z[1]", "C.u[0]", "C.u[1]"],
    )  # fmt: skip


for key, (connections, inplist, outlist) in DOCTEST.items():
    case(
        f"doctest-{key}",
        lambda a=(connections, inplist, outlist): ltinet.interconnect(
            {"C": DOC_C, "P": DOC_P, "sum": ltinet.summing_junction(["r", "-y"], "e", dimension=2)},
            a[0], inplist=a[1], outlist=a[2],
        ),
        enumerated,
    )  # fmt: skip

REWRITE = random_control(2, 5, 6, 18, D=False, name="sys", outputs=[*labels("y", 2), *labels("z", 3)],
                         inputs=[*labels("u", 2), *labels("v", 2), *labels("w", 2)])  # fmt: skip
case(
    "channels-of-a-name",
    lambda: ltinet.interconnect([REWRITE], [["sys.v", "sys.y"]], inputs=["u", "w"], outputs=["y", "z"]),
    lambda: control.interconnect([REWRITE], connections=[["sys.v", "sys.y"]], inputs=["u", "w"], outputs=["y", "z"]),
)

TABLES = {
    "chain": ([("u", "y", 1), ("e", "u", 2)], ["e"], ["y"]),
    "sum": ([("u", "y", 1), ("e", "y", 2), ("x", "y", 3)], ["e", "u", "x"], ["y"]),
    "split": ([("u", "x", 1), ("u", "y", 2), ("u", "z", 3)], ["u"], ["x", "y", "z"]),
}


def table(parts: list[tuple[str, str, int]]) -> list[Any]:
    return [
        random_control(1, 1, 1, 20 + seed, D=False, inputs=[u], outputs=[y], name=f"P{seed}") for u, y, seed in parts
    ]


for key, (parts, inputs, outputs) in TABLES.items():
    case(
        f"table-{key}",
        lambda a=(parts, inputs, outputs): ltinet.interconnect(table(a[0]), inputs=a[1], outputs=a[2]),
        lambda a=(parts, inputs, outputs): control.interconnect(table(a[0]), inputs=a[1], outputs=a[2]),
    )
S1, S2 = random_control(2, 1, 1, 30, name="S1"), random_control(2, 1, 1, 31, name="S2")
case(
    "wired-parallel",
    lambda: ltinet.interconnect(
        [S1, S2], inplist=[["S1.u[0]", "S2.u[0]"]], outlist=[["S1.y[0]", "S2.y[0]"]], connections=False
    ),
    lambda: S1 + S2,
)


@pytest.mark.parametrize("name", CASES)
def test_transfer_function_is_that_of_python_control(name: str) -> None:
    ours, theirs = CASES[name]()
    shape = len(POINTS), theirs.noutputs, theirs.ninputs
    expected = np.moveaxis(theirs(np.array(POINTS), squeeze=False), 2, 0)
    H = np.asarray(ours(np.array(POINTS)))
    assert H.shape == expected.shape == shape
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert np.all(np.abs(H - expected) <= 1e-9 * scale)


@pytest.mark.parametrize("name", REFUSED)
def test_case_that_python_control_refuses_is_refused(name: str) -> None:
    with pytest.raises((LtinetError, TypeError)):
        REFUSED[name]()


def test_listed_cases_are_those_tested() -> None:
    page = (Path(__file__).parent / "python_control_cases.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| ([^|]+) \|$", page.split("## Not in scope")[0], re.MULTILINE)
    prefixes = [prefix for _, cell in rows for prefix in cell.split()]
    names = [*CASES, *REFUSED]

    def row_of(name: str) -> str:
        return max((prefix for prefix in prefixes if name.startswith(prefix)), key=len)

    counted = {prefix: sum(row_of(name) == prefix for name in names) for prefix in prefixes}
    for count, cell in rows:
        assert sum(counted[prefix] for prefix in cell.split()) == int(count), cell
    assert len(names) >= 120
