"""Exported FMUs in FMPy: where their library is, and runs over communication steps of any length."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class RunningFmu:
    """An instance of an FMU, initialised; inputs come first among its variables, outputs behind them."""

    def __init__(self, path: Path, *, start: float = 0.0) -> None:
        import fmpy

        self.folder = fmpy.extract(str(path))
        self.description = fmpy.read_model_description(self.folder)
        self.is_fmi3 = self.description.fmiVersion.startswith("3")
        causalities = [variable.causality for variable in self.description.modelVariables]
        self.inputs = list(range(causalities.count("input")))
        self.outputs = list(range(len(self.inputs), len(self.inputs) + causalities.count("output")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # FMPy looks for a folder linux64 on ARM too, which would be false there.
            self.fmu = fmpy.instantiate_fmu(self.folder, self.description, "CoSimulation", library_path=self.library())
        self.initialise(start)

    def library(self) -> str:
        """The library for this machine: the only one in the archive."""
        found = [Path(root) / name for root, _, names in os.walk(Path(self.folder) / "binaries") for name in names]
        return str(found[0])

    def initialise(self, start: float = 0.0) -> None:
        """Go through initialisation."""
        if self.is_fmi3:
            self.fmu.enterInitializationMode(startTime=start)
        else:
            self.fmu.setupExperiment(startTime=start)
            self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def run(self, u: Array, t: Array, *, derivatives: bool = False) -> Array:
        """Outputs at the times t; with derivatives inputs go in straight lines."""
        put: Any = self.fmu.setFloat64 if self.is_fmi3 else self.fmu.setReal
        get: Any = self.fmu.getFloat64 if self.is_fmi3 else self.fmu.getReal
        y = np.zeros((len(t), len(self.outputs)))
        for k, (sample, time) in enumerate(zip(u, t, strict=True)):
            put(self.inputs, sample.tolist())
            y[k] = get(self.outputs)
            if k + 1 < len(t):
                length = t[k + 1] - time
                if derivatives:
                    rates = ((u[k + 1] - sample) / length).tolist()
                    self.fmu.setRealInputDerivatives(self.inputs, [1] * len(self.inputs), rates)
                self.fmu.doStep(currentCommunicationPoint=time, communicationStepSize=length)
        return y


def run_fmu(path: Path, u: Array, t: Array) -> Array:
    """A run from the beginning, for a process of its own."""
    return RunningFmu(path).run(u, t)
