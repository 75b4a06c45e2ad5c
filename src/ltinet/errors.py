"""Exceptions raised by ltinet.

Every message states the value received, the value expected and what to do. `LtinetError` is their common base class.
"""


# MERGED ltinet.errors
# The errors that ltinet raises on purpose; each message says what came, what was expected and what to do.


class LtinetError(Exception):
    """Base of every error that ltinet raises on purpose, so that one `except` catches them all."""


class InvalidSystemError(LtinetError, ValueError):
    """A matrix or a model cannot be used as it came: wrong shape, complex, not finite, singular E, discrete time."""


class FileFormatError(LtinetError, ValueError):
    """A file cannot be read as what it claims to be, or cannot be written where it was asked for."""


class PartitionError(LtinetError, ValueError):
    """The blocks that were asked for do not exist: too many of them, or labels that do not fit the eigenvalues."""


class InvalidNetworkError(LtinetError, ValueError):
    """Parameters do not make a network: wrong shapes, a neuron without an equation, a forbidden connection."""


class InvalidSignalError(LtinetError, ValueError):
    """An input or its times cannot be used: wrong shape, not finite, times that descend, a missing derivative."""


class SimulationError(LtinetError, RuntimeError):
    """A simulation could not be carried out to the accuracy asked for; the message says where and what to change."""


class PlottingError(LtinetError, ValueError):
    """A drawing cannot be made of what came: shapes that do not fit, outputs that do not exist, no Axes to draw on."""


class MissingDependencyError(LtinetError, ImportError):
    """An optional library is needed for this call; the message names the extra that brings it."""
