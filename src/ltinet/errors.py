"""Exceptions raised by ltinet.

Every message states the value received, the value expected and what to do. `LtinetError` is the common base class;
each exception also derives from the built-in one that fits, so `except ValueError` works, too.
"""


class LtinetError(Exception):
    """Base class of all exceptions that ltinet raises deliberately."""


class InvalidSystemError(LtinetError, ValueError):
    """Invalid system: a matrix of the wrong shape, complex or not finite, a singular E, or an unsupported time step."""


class FileFormatError(LtinetError, ValueError):
    """A file that is missing, damaged, too large or of an unsupported format, or that cannot be written."""


class PartitionError(LtinetError, ValueError):
    """Blocks that do not exist: too many, beyond the condition limit, or labels that do not fit the eigenvalues."""


class InvalidNetworkError(LtinetError, ValueError):
    """Invalid network parameters: wrong shapes, a neuron without an equation, or a forbidden connection."""


class InvalidSignalError(LtinetError, ValueError):
    """Invalid input or times: wrong shape, not finite, descending times, or a missing derivative."""


class SimulationError(LtinetError, RuntimeError):
    """A simulation that cannot reach the requested accuracy; the message states where and what to change."""


class PlottingError(LtinetError, ValueError):
    """Data that cannot be plotted: mismatched shapes, outputs that do not exist, or an invalid Axes."""


class MissingDependencyError(LtinetError, ImportError):
    """A missing optional library; the message names the extra that installs it."""
