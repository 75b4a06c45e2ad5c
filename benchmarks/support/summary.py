"""What the results must show, and what they show: one row per claim, met or not."""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.support.markdown import number
from benchmarks.support.table import Cell, Table, middle

Tables = dict[str, Table]
LSIM = "scipy.signal.lsim"
EXACT = (LSIM, "control.forced_response")


def summary(tables: Tables) -> Table:
    """All claims whose tables are there."""
    columns = {"claim": "claim", "target": "target", "measured": "measured", "met": "met"}
    claims = [_simulation, _solvers, _batch, _construction, _first_result, _irregular, _small_things, _work_precision]
    rows = [row for claim in claims for row in claim(tables)]
    note = "Medians over repetitions; the tables below have their spread."
    return Table("summary", "What the results show", note, columns, rows)


def _row(claim: str, measured: float, target: float, *, least: bool, where: str = "") -> dict[str, Cell]:
    met = measured >= target if least else measured <= target
    sign = "≥" if least else "≤"
    text = number(measured) + (f" ({where})" if where else "")
    return {"claim": claim, "target": f"{sign} {target:g}", "measured": text, "met": "yes" if met else "**no**"}


def _extreme(table: Table, key: str, *, choose: Callable[..., int], named: str) -> tuple[float, str]:
    """The smallest or largest number of a column, and the row that has it."""
    rows = [row for row in table.rows if row.get(key) is not None and not isinstance(row[key], str)]
    values = [middle(row[key]) for row in rows]  # type: ignore[arg-type]  # text is left out above
    place = int(choose(values))
    return values[place], str(rows[place][named])


def _simulation(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "simulation" not in tables:
        return
    table = tables["simulation"]
    least, where = _extreme(table, LSIM, choose=np.argmin, named="case")
    yield _row("simulation: smallest ratio to lsim", least, 300.0, least=True, where=where)
    above = sum(ratio >= 500.0 for ratio in table.column(LSIM))
    yield _row("simulation: cases with 500× lsim or more", above, 4, least=True, where=f"of {len(table.rows)}")
    for row in table.rows:
        if row["case"] == "Ex 3.1":
            yield _row("simulation: Ex 3.1, ratio to lsim", middle(row[LSIM]), 500.0, least=True)  # type: ignore[arg-type]
        if row["case"] == "iss":
            yield _row("simulation: iss, distance to the floor", middle(row["floor"]), 3.0, least=False)  # type: ignore[arg-type]
    worst, where = _accuracy(table)
    yield _row("accuracy: largest error over that of the best peer", worst, 10.0, least=False, where=where)


def _accuracy(table: Table) -> tuple[float, str]:
    """Our error over that of the best peer, at its worst; errors below the last digit of a double count as that."""
    ratios = []
    for row in table.rows:
        errors = [float(row[f"error {peer}"]) for peer in EXACT if row.get(f"error {peer}") is not None]  # type: ignore[arg-type]
        ratios.append(float(row["error"]) / max(min(errors), float(np.finfo(float).eps)))  # type: ignore[arg-type]
    place = int(np.argmax(ratios))
    return ratios[place], str(table.rows[place]["case"])


def _solvers(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "simulation" not in tables or "solvers" not in tables:
        return
    rivals = [_extreme(tables["solvers"], "ratio", choose=np.argmin, named="case")]
    rivals += [_extreme(tables["simulation"], peer, choose=np.argmin, named="case") for peer in EXACT]
    least, where = min(rivals)
    yield _row("simulation: smallest ratio to any peer", least, 2.0, least=True, where=where)


def _batch(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "batch" not in tables:
        return
    table = tables["batch"]
    for row in table.rows:
        if row["case"] == "iss" and row["batch"] == 256:
            for key, how in (("gain", "one thread"), ("shared", "a thread on each core")):
                gain = middle(row[key])  # type: ignore[arg-type]
                yield _row(f"batch of 256 on iss, {how}: gain over one at a time", gain, 2.0, least=True)
    hundred = Table("", "", "", table.columns, [row for row in table.rows if row["batch"] == 100])
    worst, where = _extreme(hundred, "floor", choose=np.argmax, named="case")
    yield _row("batch of 100: largest distance to the floor", worst, 3.0, least=False, where=where)


def _construction(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "construction" not in tables:
        return
    rows = [row for row in tables["construction"].rows if str(row["matrix"]).startswith("random")]
    dense = Table("", "", "", {}, rows)
    worst, where = _extreme(dense, "ratio", choose=np.argmax, named="matrix")
    yield _row("construction: largest ratio to one Schur form", worst, 3.0, least=False, where=where)
    growth = float(np.polyfit(np.log(dense.column("n")), np.log(dense.column("seconds")), 1)[0])
    yield _row("construction: growth with n, exponent", growth, 3.0, least=False)


def _first_result(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "first_result" not in tables:
        return
    for steps, target in (("10000", 3.0), ("1000", 1.0)):
        least, where = _extreme(tables["first_result"], steps, choose=np.argmin, named="system")
        yield _row(f"first result, {steps} steps: smallest ratio to lsim", least, target, least=True, where=where)


def _irregular(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "irregular" in tables:
        least, where = _extreme(tables["irregular"], "ratio", choose=np.argmin, named="case")
        yield _row("uneven times: smallest ratio to solve_ivp", least, 20.0, least=True, where=where)


def _small_things(tables: Tables) -> Iterator[dict[str, Cell]]:
    if "streaming" in tables:
        yield _row("streaming step, µs", tables["streaming"].column("step")[0], 30.0, least=False)
    if "import_time" in tables:
        yield _row("import, s", tables["import_time"].column("seconds")[0], 0.35, least=False)
    if "memory" in tables and tables["memory"].column("peak"):
        yield _row("memory of the longest stream, MB", tables["memory"].column("peak")[-1], 300.0, least=False)


def _work_precision(tables: Tables) -> Iterator[dict[str, Cell]]:
    """Peers that are both faster and more accurate than the prepared network."""
    if "work_precision" not in tables:
        return
    rows = tables["work_precision"].rows
    better = []
    for row in rows:
        own = next(r for r in rows if r["case"] == row["case"] and r["tolerance"] == "prepared")
        if middle(row["seconds"]) < middle(own["seconds"]) and float(row["error"]) < float(own["error"]):  # type: ignore[arg-type]
            better.append(f"{row['method']} on {row['case']}")
    yield _row("peers both faster and more accurate", len(better), 0, least=False, where=", ".join(better))
