"""The scan of JAX on a GPU, jitted: states of diagonal complex layers, their outputs, and gradients of P, Γ and C.

Its parameters are those of a step, so that nothing is counted for making them. Products are in the full precision of
their type, as on the other side.
"""

import os
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.learning.shapes import Shape

_SMALLEST = 8  # what a batch may be divided by where it does not fit


@dataclass(frozen=True)
class JaxTime:
    """Milliseconds of a forward and backward pass of the whole batch, and the batch that was run."""

    milliseconds: float
    batch: int


def time_of_jax(shape: Shape, *, double: bool, rounds: int) -> JaxTime | str:
    """Time it at the shape's batch, or at the largest part of it that fits, scaled; a text says why it has no time."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError:
        return "JAX is not installed"
    jax.config.update("jax_enable_x64", double)
    jax.config.update("jax_default_matmul_precision", "highest")
    if jax.default_backend() != "gpu":
        return "JAX sees no GPU"
    failure, part = "", 1
    while part <= _SMALLEST:
        try:
            seconds = _seconds(jax, shape, shape.batch // part, double=double, rounds=rounds)
        except Exception as error:  # out of memory comes under several names
            failure, part = str(error).splitlines()[0][:100], part * 2
            continue
        return JaxTime(seconds * part * 1e3, shape.batch // part)
    return failure


def _seconds(jax: Any, shape: Shape, batch: int, *, double: bool, rounds: int) -> float:
    """The median of some runs after two that are not counted."""
    jnp = jax.numpy
    numbers, reals = (jnp.complex128, jnp.float64) if double else (jnp.complex64, jnp.float32)
    n, m, p = shape.net.n_states // 2, shape.net.n_inputs, shape.net.n_outputs
    rates = (jnp.linspace(-0.5, -0.01, n) + 1j * jnp.linspace(0.0, 30.0, n)) * 0.05
    given = (jnp.exp(rates).astype(numbers), jnp.ones((n, m), numbers) / n, jnp.ones((p, n), numbers) / n)
    u = jnp.ones((batch, shape.steps, m), reals)

    def joined(one: Any, other: Any) -> Any:
        return one[0] * other[0], other[0] * one[1] + other[1]

    def loss(own: Any, samples: Any) -> Any:
        P, Gamma, C = own

        def outputs(record: Any) -> Any:
            drive = record.astype(numbers) @ Gamma.T
            states = jax.lax.associative_scan(joined, (jnp.broadcast_to(P, drive.shape), drive))[1]
            return (states @ C.T).real

        return (jax.vmap(outputs)(samples) ** 2).mean()

    both = jax.jit(jax.grad(loss))
    times = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        jax.block_until_ready(both(given, u))
        times.append(time.perf_counter() - start)
    return float(sorted(times[2:])[rounds // 2])
