"""Which of two models of a system to take: the one whose outputs are nearer to those of the engine.

The engine knows in which states it keeps more digits. A model's exponentials of long steps are others, and may lose
there what the engine gains.
"""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import peaks

Model = TypeVar("Model", bound="nn.Module")


def nearest(paths: Iterable[ExactPath], *models: Model) -> Model:
    """The model that gives most nearly what a run of the engine gives, the first of them where that is not known.

    Of several runs the first that does not exceed all numbers tells.
    """
    for path in paths:
        try:
            y = np.asarray(path.sampled_outputs(threads=1))
        except SimulationError:
            continue
        u = torch.from_numpy(np.array(path.samples.u))
        with torch.no_grad():
            off = [worst_share(peaks(model(u).numpy() - y), peaks(y)) for model in models]
        return models[int(np.argmin(off))]
    return models[0]
