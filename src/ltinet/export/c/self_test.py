"""What the self-test of exported C is compared with: a run of the stepper in Python."""

import numpy as np

from ltinet.arrays import Array
from ltinet.export.c.tables import listed, number
from ltinet.export.rounding.bound import rounding_bound
from ltinet.export.settings import PRECISIONS, ExportSettings
from ltinet.export.step_model import StepModel

_STEPS = 64
_SEED = 20260


def vectors_section(model: StepModel, settings: ExportSettings) -> str:
    """Inputs, outputs in double precision and what a difference may be."""
    u = _inputs(model, settings)
    y, allowed = reference_run(model, u), _allowed(model, settings, u)
    shares = (allowed if allowed.size else np.ones(1)).tolist()
    inputs = _rows(u if u.size else np.zeros((len(u), 1)), settings.dtype)
    outputs = _rows(y if y.size else np.zeros((len(y), 1)), "double")
    return "\n".join(
        [
            f"enum {{ TEST_STEPS = {len(u)} }};",
            f"static const model_real TEST_U[TEST_STEPS][MODEL_ROOM(MODEL_INPUTS)] = {{\n{inputs}}};",
            f"static const double TEST_Y[TEST_STEPS][MODEL_ROOM(MODEL_OUTPUTS)] = {{\n{outputs}}};",
            "static const double TEST_ALLOWED[MODEL_ROOM(MODEL_OUTPUTS)] = {\n"
            f"{listed(number(value, 'double') for value in shares)}}};",
        ]
    )


def reference_run(model: StepModel, u: Array) -> Array:
    """Outputs `(T, p)` of the step model in NumPy and double precision, sample by sample."""
    z, outputs = model.start, []
    pairs, n_scalars = model.n_pairs, len(model.rates) + model.n_pairs
    for k, sample in enumerate(u):
        if k:
            moved = model.P[:pairs] * (z[:pairs] + 1j * z[pairs : 2 * pairs])
            parts, first = [moved.real, moved.imag, model.P[pairs:].real * z[2 * pairs : n_scalars]], n_scalars
            for block in model.blocks:
                parts.append(block.P @ z[first : first + len(block.F)])
                first += len(block.F)
            z = np.concatenate(parts) + model.Gamma0 @ u[k - 1] + model.Gamma1 @ sample
        outputs.append(model.C @ z + model.D @ sample)
    return np.array(outputs).reshape(len(u), model.n_outputs)


def _inputs(model: StepModel, settings: ExportSettings) -> Array:
    """Noise that the precision holds exactly."""
    drawn = np.random.default_rng(_SEED).standard_normal((_STEPS, model.n_inputs))
    return drawn.astype(PRECISIONS[settings.dtype]).astype(np.float64)


def _allowed(model: StepModel, settings: ExportSettings, u: Array) -> Array:
    """The bounds of the exported code and of the reference; the largest number where none is known."""
    peak = np.abs(u).max(axis=0, initial=0.0)
    own, reference = (
        rounding_bound(model, precision, n_steps=float(len(u)), peak=peak).drift
        for precision in (PRECISIONS[settings.dtype], np.float64)
    )
    largest, tiny = np.finfo(np.float64).max, np.finfo(np.float64).tiny
    return np.clip(np.nan_to_num(own + reference, nan=largest, posinf=largest), tiny, largest)


def _rows(values: Array, dtype: str) -> str:
    lines = [
        "    {" + listed((number(value, dtype) for value in row), indent=" ").strip() + "}" for row in values.tolist()
    ]
    return ",\n".join(lines)
