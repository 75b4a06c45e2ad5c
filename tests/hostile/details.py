"""All about one case, for whoever has to find out why it fails."""

import numpy as np

import ltinet
from ball_oracle import respond

from .draw import Case
from .judge import judge
from .peer import solve_by_peer


def describe(case: Case) -> tuple[str, bool]:
    """Text about a case and its outcome, and whether it fails."""
    outcome = judge(case, timed=True)
    lines = [str(case), *_about_system(case)]
    if outcome.raised:
        lines.append(f"raised {outcome.raised}")
    else:
        lines += _about_outputs(case)
    for text in (*outcome.wrong, *(f"above: {own}" for own in outcome.above)):
        lines.append(f"FAILS: {text}")
    if outcome.unbounded:
        lines.append("FAILS: infinite bound")
    seconds = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in outcome.seconds.items())
    lines.append(f"bound over error {outcome.tightness:.3g}{' (floored)' if outcome.floored else ''}; {seconds}")
    lines.append(f'again in Python: draw("{case.name}") of tests/hostile/draw.py')
    return "\n".join(lines) + "\n", outcome.fails


def _about_system(case: Case) -> list[str]:
    A = case.A if case.E is None else np.linalg.solve(case.E, case.A)
    values, vectors = np.linalg.eig(A)
    steps = np.diff(case.t)
    steps = steps[steps > 0.0]
    fastest = float(np.max(np.abs(values)))
    return [
        f"eigenvalues {np.array2string(values, precision=6, max_line_width=110)}",
        f"|λ|max h from {fastest * steps.min():.2g} to {fastest * steps.max():.2g}, max Re λ · span "
        f"{float(np.max(values.real)) * (case.t[-1] - case.t[0]):.2g}, times from {case.t[0]:.6g} to {case.t[-1]:.6g}",
        f"condition of the eigenvectors {np.linalg.cond(vectors):.1e}"
        + ("" if case.E is None else f", of E {np.linalg.cond(case.E):.1e}"),
    ]


def _about_outputs(case: Case) -> list[str]:
    """Peak, error, the peer's error and the bound with its parts, for every output of every signal."""
    truth = respond(*case.system, **case.run).y  # type: ignore[arg-type]
    net = ltinet.construct(ltinet.StateSpace(*case.system))  # type: ignore[arg-type]
    solution = net.simulate(**case.run)
    error = np.max(truth.distance(solution.y), axis=-2)
    peer = np.max(truth.distance(solve_by_peer(case).y), axis=-2)
    parts = solution.error_parts()
    bound = solution.error_bound()
    lines = [f"{solution.stats}", f"{net!r}"]
    if net.form is not None:
        lines.append(f"blocks of {net.form.block_sizes}, cond(T) {net.form.condition:.1e}")
    for place in np.ndindex(error.shape):
        own = ", ".join(f"{name} {float(value[place]):.1e}" for name, value in parts.items())
        lines.append(
            f"output {place}: peak {truth.peak[place]:.2e}, error {error[place]:.2e}, peer {peer[place]:.2e}, "
            f"bound {bound[place]:.2e} ({own})"
        )
    return lines
