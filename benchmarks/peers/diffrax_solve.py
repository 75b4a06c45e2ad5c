"""`diffrax.diffeqsolve`, compiled by JAX, in double precision, with the knots of the input given to the controller.

Tsit5 and Kvaerno5 are what its documentation advises for non-stiff and stiff problems. Outputs alone are saved, at the
samples. Compilation is not timed: the first call, which compiles, does not count.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.peer import Run
from benchmarks.support.cases import Case


def diffrax_solve(solver: Literal["Tsit5", "Kvaerno5"]) -> Callable[[Case, float], Run]:
    """A peer with one of diffrax's solvers."""

    def prepare(case: Case, tolerance: float) -> Run:
        import diffrax
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        A, B, C, D = (jnp.asarray(M) for M in case.matrices)
        t, u = jnp.asarray(case.t), jnp.asarray(case.u)

        def solve(samples: Any) -> Any:
            control = diffrax.LinearInterpolation(t, samples)
            inner = diffrax.PIDController(rtol=tolerance, atol=tolerance)
            return diffrax.diffeqsolve(
                diffrax.ODETerm(lambda time, x, _: A @ x + B @ control.evaluate(time)),
                getattr(diffrax, solver)(),
                t[0],
                t[-1],
                None,  # the solver chooses its first step
                jnp.zeros(len(A)),
                saveat=diffrax.SaveAt(ts=t, fn=lambda time, x, _: C @ x + D @ control.evaluate(time)),
                stepsize_controller=diffrax.ClipStepSizeController(inner, step_ts=t),
                max_steps=None,
                adjoint=diffrax.ForwardMode(),  # no gradients backwards: the cheapest for a plain solve without a cap
            ).ys

        compiled = jax.jit(solve)

        def run() -> NDArray[np.float64]:
            return np.asarray(compiled(u).block_until_ready())

        return run

    return prepare
