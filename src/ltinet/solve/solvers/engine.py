"""The engines "neurons" (Algorithm 3) and "intervals" (Algorithm A.1): one differential equation per neuron."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.signals.signal import Signal
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution
from ltinet.solve.solvers.layer_path import Algorithm
from ltinet.solve.solvers.options import SolverOptions
from ltinet.solve.solvers.run import SolverPlan
from ltinet.solve.solvers.shifted import simulate_from_zero


@dataclass(frozen=True)
class SolverEngine:
    """Outputs by SciPy's solvers, by one of the paper's two forward passes."""

    algorithm: Algorithm
    options = frozenset({"method", "rtol", "atol", "first_step", "max_step", "across_knots"})

    def run(
        self,
        prepared: PreparedNetwork,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the times t, from the state x0 at t[0]; layers are shared by `n_jobs` processes."""
        own = {name: value for name, value in options.items() if name != "across_knots"}
        plan = SolverPlan(self.algorithm, SolverOptions(**own), n_jobs, bool(options.get("across_knots")))
        return simulate_from_zero(prepared, signal, t, x0=x0, plan=plan)
