"""What a result keeps of its records, so that confidence is computed when somebody asks for it and not before."""

from dataclasses import dataclass, replace

from ltinet.identification.covariance import ParameterCovariance, parameter_covariance
from ltinet.identification.linear_part import Linear, Trend
from ltinet.identification.record import Record, n_samples
from ltinet.identification.sensitivities import beginning
from ltinet.model.matrices import Matrix


@dataclass(frozen=True, eq=False)
class Seen:
    """A model in units of its records, with their beginnings."""

    linear: Linear
    records: tuple[Record, ...]
    share: float
    """Of all samples."""
    feedthrough: bool
    trend: Trend
    gain: Matrix
    """Units of outputs by units of inputs, `(p, m)`."""

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters; samples that were not kept are taken to say as much each."""
        found = parameter_covariance(self.linear, self.records, feedthrough=self.feedthrough, trend=self.trend)
        return None if found is None else replace(found, matrix=self.share * found.matrix, gain=self.gain)


def seen_of(linear: Linear, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, gain: Matrix) -> Seen:
    """Copies of the beginnings, so that long records can be forgotten."""
    found = [beginning(own, start) for own, start in zip(records, linear.starts, strict=True)]
    parts = tuple(Record(own.u.copy(), own.y.copy()) for own, _ in found)
    model = replace(linear, starts=tuple(start for _, start in found))
    return Seen(model, parts, n_samples(parts) / n_samples(records), feedthrough, trend, gain)
