"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

import importlib
import sys
import typing

from ltinet._util.other_names import missing_attribute as _missing_attribute
from ltinet._version import __version__ as __version__
from ltinet.analysis.characteristics import StepInfo
from ltinet.analysis.frequency_response import frequencies_for
from ltinet.analysis.margins import DiskMargin, Margins
from ltinet.analysis.norms import SystemNorm
from ltinet.analysis.poles import Damping
from ltinet.analysis.stability import NyquistResult, Sensitivities
from ltinet.blockdiag.block_diagonalization import block_diagonalize
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.construction import construct
from ltinet.constructors import pid, ss, tf, zpk
from ltinet.conversion import as_state_space, eliminate_algebraic
from ltinet.dynamic_network import DynamicNetwork
from ltinet.error_bounds.output_bounds import Certificate
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
from ltinet.explorer.api import explore
from ltinet.export.manifest import Export
from ltinet.files import load, load_system, named_system, save_system
from ltinet.interconnection.algebra import append, feedback, lft, parallel, series
from ltinet.interconnection.delays import pade, pade_error
from ltinet.interconnection.interconnect import interconnect, summing_junction
from ltinet.interconnection.rational_functions import TransferFunction, ZerosPolesGain
from ltinet.loop_analysis import disk_margin, isstable, margin, norm, nyquist, pzmap, sensitivity
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.network.network import NetworkParameters
from ltinet.network.neuron import Neuron, NeuronEquation
from ltinet.plotting.plots import BlockDiagonalPlots, NetworkPlots, SystemPlots
from ltinet.second_order import SecondOrder
from ltinet.signals.function import FunctionSignal
from ltinet.signals.polynomial import PolynomialSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal, SignalBatch
from ltinet.simulation.delayed_stepper import DelayedStepper
from ltinet.simulation.solution import Solution
from ltinet.simulation.solver_errors import NeuronTolerances
from ltinet.simulation.stepper import Stepper
from ltinet.solver_tolerances import tolerances_for
from ltinet.state_space import StateSpace
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.system_matrices import Descriptor
from ltinet.tradeoff import TradeoffCurve, TradeoffPoint, condition_tradeoff

# Packages that few programs need are imported on first use of one of their names; a test compares both lists.
if typing.TYPE_CHECKING:
    from ltinet.identification.api import identify, identify_frequency
    from ltinet.identification.residual_analysis import ResidualTests
    from ltinet.identification.result import IdentificationPlots, IdentificationResult
    from ltinet.identification.uncertainty import FrequencyBand, PoleUncertainty, StepBand
    from ltinet.nonlinear.models import LPV, Bilinear, QuadraticBilinear
    from ltinet.nonlinear.network import NonlinearNetwork
    from ltinet.nonlinear.reduction import ProductReduction, reduce_products
    from ltinet.reduction.api import LiftedField, ReductionPlots, ReductionResult, reduce
    from ltinet.tables.table import Table, read_table
_LAZY_IMPORTS = {
    "Bilinear": "ltinet.nonlinear.models",
    "LPV": "ltinet.nonlinear.models",
    "QuadraticBilinear": "ltinet.nonlinear.models",
    "NonlinearNetwork": "ltinet.nonlinear.network",
    "ProductReduction": "ltinet.nonlinear.reduction",
    "reduce_products": "ltinet.nonlinear.reduction",
    "FrequencyBand": "ltinet.identification.uncertainty",
    "StepBand": "ltinet.identification.uncertainty",
    "PoleUncertainty": "ltinet.identification.uncertainty",
    "ResidualTests": "ltinet.identification.residual_analysis",
    "IdentificationResult": "ltinet.identification.result",
    "identify": "ltinet.identification.api",
    "identify_frequency": "ltinet.identification.api",
    "IdentificationPlots": "ltinet.identification.result",
    "LiftedField": "ltinet.reduction.api",
    "ReductionPlots": "ltinet.reduction.api",
    "ReductionResult": "ltinet.reduction.api",
    "reduce": "ltinet.reduction.api",
    "Table": "ltinet.tables.table",
    "read_table": "ltinet.tables.table",
}

__all__ = [
    "LPV",
    "Bilinear",
    "BlockDiagonalForm",
    "BlockDiagonalPlots",
    "Certificate",
    "Damping",
    "DelayedStepper",
    "Descriptor",
    "DiskMargin",
    "DynamicNetwork",
    "Export",
    "FileFormatError",
    "FrequencyBand",
    "FunctionSignal",
    "HorizontalLayer",
    "IdentificationPlots",
    "IdentificationResult",
    "InvalidNetworkError",
    "InvalidSignalError",
    "InvalidSystemError",
    "LayerParameters",
    "LiftedField",
    "LtinetError",
    "Margins",
    "MissingDependencyError",
    "NetworkParameters",
    "NetworkPlots",
    "Neuron",
    "NeuronEquation",
    "NeuronTolerances",
    "NonlinearNetwork",
    "NyquistResult",
    "PartitionError",
    "PlottingError",
    "PoleUncertainty",
    "PolynomialSignal",
    "ProductReduction",
    "QuadraticBilinear",
    "ReductionPlots",
    "ReductionResult",
    "ResidualTests",
    "SampledSignal",
    "SecondOrder",
    "Sensitivities",
    "Signal",
    "SignalBatch",
    "SignalSettings",
    "SimulationError",
    "Solution",
    "SparseDescriptor",
    "StateSpace",
    "StepBand",
    "StepInfo",
    "Stepper",
    "SystemNorm",
    "SystemPlots",
    "Table",
    "TradeoffCurve",
    "TradeoffPoint",
    "TransferFunction",
    "ZerosPolesGain",
    "append",
    "as_state_space",
    "block_diagonalize",
    "condition_tradeoff",
    "construct",
    "disk_margin",
    "eliminate_algebraic",
    "explore",
    "feedback",
    "frequencies_for",
    "identify",
    "identify_frequency",
    "interconnect",
    "isstable",
    "lft",
    "load",
    "load_system",
    "margin",
    "named_system",
    "norm",
    "nyquist",
    "pade",
    "pade_error",
    "parallel",
    "pid",
    "pzmap",
    "read_table",
    "reduce",
    "reduce_products",
    "save_system",
    "sensitivity",
    "series",
    "ss",
    "summing_junction",
    "tf",
    "tolerances_for",
    "zpk",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> typing.Any:
    """Import a public name of a package that is loaded on first use."""
    if name not in _LAZY_IMPORTS:
        raise _missing_attribute(sys.modules[__name__], name)
    globals()[name] = value = getattr(importlib.import_module(_LAZY_IMPORTS[name]), name)
    return value
