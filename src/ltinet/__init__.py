"""Sparse continuous-time neural networks for linear time-invariant systems, constructed without training."""

import importlib
import sys
import typing

from ltinet._version import __version__ as __version__
from ltinet.algebraic import eliminate_algebraic
from ltinet.analysis.damping import Damping
from ltinet.analysis.frequencies import frequencies_for
from ltinet.bounds.certificate import Certificate
from ltinet.conversion import as_state_space
from ltinet.decompose.block_diagonal import block_diagonalize
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.dynamic_network import DynamicNetwork
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
from ltinet.explorer.door import explore
from ltinet.export.manifest import Export
from ltinet.ladders import Ladder, Rung, ladder
from ltinet.loading import load
from ltinet.model.signal_settings import SignalSettings
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.model.system_matrices import Descriptor
from ltinet.network.equation import NeuronEquation
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.network.network import NetworkParameters
from ltinet.network.neuron import Neuron
from ltinet.networks import construct
from ltinet.plotting.doors import FormPlots, NetworkPlots, SystemPlots
from ltinet.responses.step_info import StepInfo
from ltinet.second_order import SecondOrder
from ltinet.signals.batch import SignalBatch
from ltinet.signals.function import FunctionSignal
from ltinet.signals.polynomial import PolynomialSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.solve.delayed_stepper import DelayedStepper
from ltinet.solve.exact.stepper import Stepper
from ltinet.solve.solution import Solution
from ltinet.solve.solvers.tolerance_search import ChosenTolerances
from ltinet.solver_tolerances import tolerances_for
from ltinet.state_space import StateSpace
from ltinet.systems import load_system, named_system, save_system

# Wings that few programs enter are imported when one of their names is first used; a test compares both lists.
if typing.TYPE_CHECKING:
    from ltinet.identification.confidence import FrequencyBand, StepBand
    from ltinet.identification.pole_regions import PoleConfidence
    from ltinet.identification.residual_tests import ResidualTests
    from ltinet.identified import Identified
    from ltinet.identifying import identify, identify_frequency
    from ltinet.plotting.identified_doors import IdentifiedPlots
    from ltinet.plotting.reduced_doors import ReducedPlots
    from ltinet.reduced import Reduced, reduce
    from ltinet.tables.table import Table, read_table
_LATE = {
    "FrequencyBand": "ltinet.identification.confidence",
    "StepBand": "ltinet.identification.confidence",
    "PoleConfidence": "ltinet.identification.pole_regions",
    "ResidualTests": "ltinet.identification.residual_tests",
    "Identified": "ltinet.identified",
    "identify": "ltinet.identifying",
    "identify_frequency": "ltinet.identifying",
    "IdentifiedPlots": "ltinet.plotting.identified_doors",
    "ReducedPlots": "ltinet.plotting.reduced_doors",
    "Reduced": "ltinet.reduced",
    "reduce": "ltinet.reduced",
    "Table": "ltinet.tables.table",
    "read_table": "ltinet.tables.table",
}

__all__ = [
    "BlockDiagonalForm",
    "Certificate",
    "ChosenTolerances",
    "Damping",
    "DelayedStepper",
    "Descriptor",
    "DynamicNetwork",
    "Export",
    "FileFormatError",
    "FormPlots",
    "FrequencyBand",
    "FunctionSignal",
    "HorizontalLayer",
    "Identified",
    "IdentifiedPlots",
    "InvalidNetworkError",
    "InvalidSignalError",
    "InvalidSystemError",
    "Ladder",
    "LayerParameters",
    "LtinetError",
    "MissingDependencyError",
    "NetworkParameters",
    "NetworkPlots",
    "Neuron",
    "NeuronEquation",
    "PartitionError",
    "PlottingError",
    "PoleConfidence",
    "PolynomialSignal",
    "Reduced",
    "ReducedPlots",
    "ResidualTests",
    "Rung",
    "SampledSignal",
    "SecondOrder",
    "Signal",
    "SignalBatch",
    "SignalSettings",
    "SimulationError",
    "Solution",
    "SparsePencil",
    "StateSpace",
    "StepBand",
    "StepInfo",
    "Stepper",
    "SystemPlots",
    "Table",
    "as_state_space",
    "block_diagonalize",
    "construct",
    "eliminate_algebraic",
    "explore",
    "frequencies_for",
    "identify",
    "identify_frequency",
    "ladder",
    "load",
    "load_system",
    "named_system",
    "read_table",
    "reduce",
    "save_system",
    "tolerances_for",
]


def __dir__() -> list[str]:
    """What users may use; the rooms below stay reachable."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> typing.Any:
    """A name of a wing, imported now and kept."""
    if name not in _LATE:
        raise AttributeError(f"module 'ltinet' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    globals()[name] = found = getattr(importlib.import_module(_LATE[name]), name)
    return found
