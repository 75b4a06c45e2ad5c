"""Models without poles in the right half plane: reflected, and fitted again as well as that allows."""

import numpy as np

from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.descent import Downhill, descended
from ltinet.identification.from_frequency.linear import refitted, with_residues
from ltinet.identification.from_frequency.orders import FLOOR, best_start
from ltinet.identification.from_frequency.realisation import Realisation, in_blocks
from ltinet.identification.from_frequency.truncation import truncations
from ltinet.identification.from_frequency.vector_fitting import first_poles, relocate

_AT_ORIGIN = 0.1  # of the lowest frequency: nearer to zero a real pole may be an integrator for all that data say
_AS_GOOD = 1.01  # of the error: what an integrator in its place may cost


def is_stable(model: Realisation) -> bool:
    """No pole has a positive real part."""
    return bool(np.all(model.poles.real <= 0.0))


def stabilised(model: Realisation, data: ScaledResponse, *, feedthrough: bool, rounds: int) -> Realisation:
    """The best stable model of the same order that is found from reflected poles and from a stable vector fit."""
    starts = [_reflected(model)]
    if model.n_states <= len(data.s) // 2:
        poles = relocate(data, first_poles(data.s, model.n_states), feedthrough=feedthrough, stable=True)
        full = truncations(with_residues(data, poles, feedthrough=feedthrough), data.s)
        starts.append(_reflected(full.of_order(model.n_states)))
    how = Downhill(feedthrough=feedthrough, rounds=rounds, floor=FLOOR, allowed=is_stable)
    return descended(best_start(starts, data, feedthrough=feedthrough), data, how)


def with_integrators(model: Realisation, data: ScaledResponse, *, feedthrough: bool) -> Realisation:
    """The model with real poles near the origin moved into it, where the data do not object."""
    nearest = float(np.min(np.abs(data.s[data.s != 0.0])))
    for block in model.blocks():
        pole = model.A[block[0], block[0]]
        if len(block) == 1 and 0.0 < abs(pole) < _AT_ORIGIN * nearest and not np.any(data.s == 0.0):
            A = model.A.copy()
            A[block[0], block[0]] = 0.0
            moved = refitted(Realisation(A, model.B, model.C, model.D, model.sizes), data, feedthrough=feedthrough)
            errors = [data.error(own.response(data.s)) for own in (model, moved)]
            if errors[1] <= max(_AS_GOOD * errors[0], FLOOR):
                model = moved
    return model


def _reflected(model: Realisation) -> Realisation:
    """Every block whose poles are unstable with these reflected in the imaginary axis, by its Schur form."""
    if is_stable(model):
        return model
    values, vectors = np.linalg.eig(model.A)
    reflected = -np.abs(values.real) + 1j * values.imag
    A = (vectors * reflected) @ np.linalg.inv(vectors)
    return in_blocks(np.ascontiguousarray(A.real), model.B, model.C, model.D)
