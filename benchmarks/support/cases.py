"""The work that all simulations share: a system, times and an input; straight lines between samples, from rest."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import ltinet
from benchmarks.support.oracle import reference_outputs
from benchmarks.support.systems import DATA
from ltinet.paper.forward_passes import heat_pulse

Array = NDArray[np.float64]
DT = 0.01
BUDGET = 100.0  # on cond(T): for pde a hundred times closer to the truth than the default of 1e4, and as fast
FROM_DATA = {"building": 100_000, "iss": 10_000, "beam": 10_000, "cdplayer": 10_000, "pde": 10_000, "heat": 10_000}


@dataclass(frozen=True)
class Case:
    """One simulation; `u` is `(T, m)`."""

    name: str
    system: ltinet.StateSpace
    step: float
    u: Array

    @property
    def n_steps(self) -> int:
        """Number of samples."""
        return len(self.u)

    @cached_property
    def t(self) -> Array:
        """The times of the samples."""
        return self.step * np.arange(self.n_steps, dtype=np.float64)

    @cached_property
    def matrices(self) -> tuple[Array, Array, Array, Array]:
        """(A, B, C, D) as plain arrays, for the peers."""
        system = self.system
        return np.array(system.A), np.array(system.B), np.array(system.C), np.array(system.D)

    @cached_property
    def is_stiff(self) -> bool:
        """Whether some state decays within a step: there explicit methods are held back by stability, not accuracy."""
        return float(np.max(-np.linalg.eigvals(self.matrices[0]).real)) * self.step > 1.0

    @cached_property
    def reference(self) -> Array:
        """Outputs `(T, p)` of the oracle."""
        return reference_outputs(self.system, self.u, step=self.step)

    def construct(self) -> ltinet.DynamicNetwork:
        """The network, within a budget that costs no digits."""
        return ltinet.construct(self.system, max_condition=BUDGET)

    def first(self, n_steps: int) -> "Case":
        """The same work with fewer steps."""
        return Case(self.name, self.system, self.step, self.u[:n_steps])


def simulation_cases(*, quick: bool) -> list[Case]:
    """The data sets where they are, named systems where not, and Example 3.1 with the paper's input and a dense one."""
    if DATA.is_dir():
        found = [data_case(name, n_steps) for name, n_steps in FROM_DATA.items()]
    else:
        found = [
            random_case("mass_spring_damper", chain(), 100_000),
            random_case("blobs", ltinet.named_system("blobs"), 10_000),
        ]
    if quick:
        return [case.first(1000) for case in found[:2]]
    return [*found, *diffusion_cases()]


def diffusion_cases() -> list[Case]:
    """Example 3.1: 400 inputs and outputs, 101 times; most samples of the paper's input are zero, none of the other."""
    system = ltinet.named_system("diffusion")
    dense = np.random.default_rng(0).standard_normal((101, system.n_inputs))
    return [Case("Ex 3.1", system, 0.1, heat_pulse()), Case("Ex 3.1, dense input", system, 0.1, dense)]


def chain() -> ltinet.StateSpace:
    """24 masses, 48 states, pushed and watched at the same end: at the other nothing arrives for a long time."""
    system = ltinet.named_system("mass_spring_damper", n_masses=24)
    return ltinet.StateSpace(system.A, system.B, np.array(system.B).T)


def data_case(name: str, n_steps: int) -> Case:
    """A data set with random input."""
    return random_case(name, ltinet.load_system(DATA / f"{name}.mat"), n_steps)


def random_case(name: str, system: ltinet.StateSpace, n_steps: int) -> Case:
    """A system with independent normal samples a hundredth of a unit of time apart."""
    u = np.random.default_rng(0).standard_normal((n_steps, system.n_inputs))
    return Case(name, system, DT, u)
