"""Records as evidence: what a model of them says of these and of others."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.evidence import Compared
from ltinet.identification.given import given_records
from ltinet.identification.linear_part import Trend, all_outputs, fitted_start
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.record import Record
from ltinet.identification.residual_tests import ResidualTests
from ltinet.identification.residuals import deviations, feedback_warning, fits_of, residuals_of
from ltinet.identification.seen import Seen
from ltinet.identification.sequences import sequences
from ltinet.identification.units import Units


@final
@dataclass(frozen=True, eq=False)
class RecordEvidence:
    """A model at samples, the records that it was found in, and from where channels are counted."""

    modes: ModalModel
    seen: Seen
    units: Units
    dt: float
    delay: tuple[int, ...]
    trend: Trend
    input_offsets: Array
    output_offsets: Array
    """What the model adds to its outputs."""
    levels: Array
    """What outputs were counted from while the model was found, `(p,)`."""

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters, in units of the records."""
        return self.seen.covariance()

    def doubts(self) -> tuple[str, ...]:
        """Whether the records seem to come from a closed loop."""
        return feedback_warning(self.seen.linear, self.seen.records)

    def fit(self, first: Any, second: Any) -> Array:
        """100 (1 − ‖y − ŷ‖/‖y − mean‖) % of every output, states at the first sample fitted."""
        return fits_of(self.modes, self._prepared(first, second))

    def residuals(self, first: Any, second: Any) -> ResidualTests:
        """With starts fitted, and trends where they belong to the model."""
        return residuals_of(self.modes, self._prepared(first, second), self.trend)

    def compared(self, first: Any, second: Any) -> tuple[Compared, ...]:
        """Outputs `(T, p)` of every record and the simulated ones, states fitted at the first sample."""
        found = []
        for own in self._prepared(first, second):
            start, _ = fitted_start(self.modes, own, trend="none", scale=deviations(own))
            simulated = all_outputs(sequences(self.modes, own), self.modes, start)
            times = np.asarray(self.dt * np.arange(len(own)), dtype=np.float64)
            found.append(Compared(times, own.y + self.output_offsets, simulated + self.output_offsets))
        return tuple(found)

    def _prepared(self, u: Any, y: Any) -> tuple[Record, ...]:
        """Records without offsets and delays; those that the model was found in where none are given."""
        if u is None and y is None:
            moved = self.levels - self.output_offsets
            return tuple(
                Record(own.u * self.units.inputs, own.y * self.units.outputs + moved) for own in self.seen.records
            )
        records = given_records(u, y).records
        self._require_channels(records[0])
        return tuple(
            Record(own.u - self.input_offsets, own.y - self.output_offsets).shifted(self.delay) for own in records
        )

    def _require_channels(self, record: Record) -> None:
        wanted = self.modes.n_inputs, self.modes.n_outputs
        if (record.u.shape[1], record.y.shape[1]) != wanted:
            raise InvalidSignalError(
                f"u and y have {record.u.shape[1]} and {record.y.shape[1]} channels; the model has {wanted[0]} inputs "
                f"and {wanted[1]} outputs"
            )
