"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

from ltinet.decompose.block_diagonal import block_diagonalize
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.dynamic_network import DynamicNetwork, construct, load
from ltinet.errors import (
    FileFormatError,
    InvalidNetworkError,
    InvalidSignalError,
    InvalidSystemError,
    LtinetError,
    MissingDependencyError,
    PartitionError,
    PlottingError,
    SimulationError,
)
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.network.network import NetworkParameters
from ltinet.network.neuron import Neuron
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.solution import Solution
from ltinet.solver_tolerances import tolerances_for
from ltinet.state_space import StateSpace, as_state_space, load_system, named_system, save_system

__version__ = "0.1.0"

__all__ = [
    "BlockDiagonalForm",
    "DynamicNetwork",
    "FileFormatError",
    "FunctionSignal",
    "HorizontalLayer",
    "InvalidNetworkError",
    "InvalidSignalError",
    "InvalidSystemError",
    "LayerParameters",
    "LtinetError",
    "MissingDependencyError",
    "NetworkParameters",
    "Neuron",
    "PartitionError",
    "PlottingError",
    "SampledSignal",
    "SimulationError",
    "Solution",
    "StateSpace",
    "as_state_space",
    "block_diagonalize",
    "construct",
    "load",
    "load_system",
    "named_system",
    "save_system",
    "tolerances_for",
]
