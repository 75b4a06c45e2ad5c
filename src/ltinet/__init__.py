"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

from ltinet.decompose.block_diagonal import block_diagonalize
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import (
    FileFormatError,
    InvalidSystemError,
    LtinetError,
    MissingDependencyError,
    PartitionError,
)
from ltinet.model.convert import as_state_space
from ltinet.model.files import load_system, save_system
from ltinet.model.library import named_system
from ltinet.model.state_space import StateSpace

__version__ = "0.1.0"

__all__ = [
    "BlockDiagonalForm",
    "FileFormatError",
    "InvalidSystemError",
    "LtinetError",
    "MissingDependencyError",
    "PartitionError",
    "StateSpace",
    "as_state_space",
    "block_diagonalize",
    "load_system",
    "named_system",
    "save_system",
]
