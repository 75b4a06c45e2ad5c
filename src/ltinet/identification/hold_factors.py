"""Between the input weights of continuous and of sampled modes, for inputs that are held or straight lines.

Over a step of length h a mode v' = s v + b u goes, with z = s h and λ = eᶻ, to λ v + g₀ b u₀ + g₁ b u₁: held inputs
have g₀ = h φ₁(z), g₁ = 0; lines g₁ = h φ₂(z), g₀ = h (φ₁ − φ₂)(z). In w = v − g₁ b u the step is λ w + γ b u₀ with
γ = λ g₁ + g₀ = h φ₁(z)², and the output sees v = w + g₁ b u: the share ρ = g₁/γ of the input weight γ b at samples.
"""

import numpy as np

from ltinet.arrays import Complex
from ltinet.solve.steps.propagators import phi_functions


def rates(poles: Complex) -> Complex:
    """The z = s h with λ = eᶻ, imaginary parts from 0 to π: negative real poles become halves of pairs at π."""
    return np.asarray(np.log(poles.astype(np.complex128)))


def input_factor(poles: Complex, *, linear: bool) -> Complex:
    """γ/h: by what b of continuous time, in units of 1/h, becomes that at samples."""
    first, _ = phi_functions(rates(poles))
    return np.asarray(first * first if linear else first)


def direct_share(poles: Complex) -> Complex:
    """ρ of lines between samples."""
    first, second = phi_functions(rates(poles))
    return np.asarray(second / first**2)
