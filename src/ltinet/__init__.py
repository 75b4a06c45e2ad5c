"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

from ltinet.decompose.block_diagonal import block_diagonalize
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.dynamic_network import DynamicNetwork, construct, load, tolerances_for
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
from ltinet.model.convert import as_state_space
from ltinet.model.files import load_system, save_system
from ltinet.model.library import named_system
from ltinet.model.state_space import StateSpace
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.network.network import NetworkParameters
from ltinet.network.neuron import Neuron
from ltinet.signals.batch import SignalBatch
from ltinet.signals.function import FunctionSignal
from ltinet.signals.polynomial import PolynomialSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.solve.solution import Solution

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
    "PolynomialSignal",
    "SampledSignal",
    "Signal",
    "SignalBatch",
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
