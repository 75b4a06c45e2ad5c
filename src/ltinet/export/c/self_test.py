"""What the self-test of exported C is compared with: a run of the stepper in Python."""

import numpy as np

from ltinet.arrays import Array
from ltinet.export.c.tables import listed, number
from ltinet.export.rounding.bound import rounding_bound
from ltinet.export.settings import PRECISIONS, ExportSettings
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import TappedModel, tapped_bound, tapped_run

_STEPS = 64
_LONGEST_WAIT = 2000  # steps: longer delays would make the test larger than the model
_SEED = 20260


def vectors_section(model: StepModel, settings: ExportSettings, tapped: TappedModel | None = None) -> str:
    """Inputs, outputs in double precision and what a difference may be."""
    if tapped is None:
        u = _inputs(model.n_inputs, settings)
        y, allowed = reference_run(model, u), _allowed(model, settings, u)
    else:
        u = _inputs(tapped.n_inputs, settings, around=tapped.u0, n_steps=n_steps_of(tapped))
        y, allowed = tapped_run(tapped, u), _allowed(tapped, settings, u - tapped.u0)
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


def n_steps_of(tapped: TappedModel | None) -> int:
    """Number of steps of the test: delays, up to some thousand steps, are over before its last part."""
    if tapped is None:
        return _STEPS
    return _STEPS + min(tapped.longest_lag + int(tapped.output_steps.max(initial=0)), _LONGEST_WAIT)


def reference_run(model: StepModel, u: Array) -> Array:
    """Outputs `(T, p)` of the step model in NumPy and double precision, sample by sample."""
    z, outputs = model.start, []
    for k, sample in enumerate(u):
        if k:
            z = model.advanced(z) + model.Gamma0 @ u[k - 1] + model.Gamma1 @ sample
        outputs.append(model.C @ z + model.D @ sample)
    return np.array(outputs).reshape(len(u), model.n_outputs)


def _inputs(n_inputs: int, settings: ExportSettings, *, around: Array | None = None, n_steps: int = _STEPS) -> Array:
    """Noise that the precision holds exactly."""
    drawn = np.random.default_rng(_SEED).standard_normal((n_steps, n_inputs))
    drawn = drawn if around is None else drawn + around
    return drawn.astype(PRECISIONS[settings.dtype]).astype(np.float64)


def _allowed(model: StepModel | TappedModel, settings: ExportSettings, u: Array) -> Array:
    """The bounds of the exported code and of the reference; the largest number where none is known."""
    peak, n_steps = np.abs(u).max(axis=0, initial=0.0), float(len(u))
    own, reference = (
        tapped_bound(model, precision, n_steps=n_steps, peak=peak).drift
        if isinstance(model, TappedModel)
        else rounding_bound(model, precision, n_steps=n_steps, peak=peak).drift
        for precision in (PRECISIONS[settings.dtype], np.float64)
    )
    largest, tiny = np.finfo(np.float64).max, np.finfo(np.float64).tiny
    return np.clip(np.nan_to_num(own + reference, nan=largest, posinf=largest), tiny, largest)


def _rows(values: Array, dtype: str) -> str:
    lines = [
        "    {" + listed((number(value, dtype) for value in row), indent=" ").strip() + "}" for row in values.tolist()
    ]
    return ",\n".join(lines)
