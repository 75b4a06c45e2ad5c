"""Measured outputs beside those of a model, for records that it was found in or others."""

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.linear_part import all_outputs, fitted_start
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.record import Record
from ltinet.identification.sequences import sequences


def compared(model: ModalModel, records: tuple[Record, ...], offsets: Array) -> tuple[tuple[Array, Array], ...]:
    """For every record its outputs and the simulated ones, `(T, p)`, states fitted at the first sample.

    Records come without offsets; both outputs have them again.
    """
    pairs = []
    for own in records:
        start, _ = fitted_start(model, own, trend="none", scale=np.ones(model.n_outputs))
        simulated = all_outputs(sequences(model, own), model, start)
        pairs.append((own.y + offsets, simulated + offsets))
    return tuple(pairs)
