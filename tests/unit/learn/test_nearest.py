"""Of two models of a system the one is taken that gives what the engine gives, whichever comes first."""

import numpy as np
import pytest
import torch

import ltinet
from hostile.draw import draw
from learnt_systems import off_by
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.nearest import nearest
from ltinet.learn.packed import packed_as_given, packed_system
from ltinet.learn.parameters import tensors_of
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.trials import Trial


def models_and_path(A, B, C, dt):
    """A model in layers, one in the user's states, and a run of the engine in these."""
    prepared = ltinet.construct((A, B, C, np.zeros((len(C), B.shape[1]))))._prepared
    direct = prepared.as_given
    path = ExactPath(direct, Trial(dt, 256.0, "linear", (1.0,) * B.shape[1]).samples, None)
    packed = packed_system(prepared), packed_as_given(direct.blocks)
    return [LinearNetwork(tensors_of(own), dt=dt, trainable=False, rebuild=print) for own in packed], path


@pytest.mark.parametrize("index", range(12))
def test_it_is_the_one_that_is_less_far_away(index):
    case = draw(f"17/non_normal/{index}")
    models, path = models_and_path(case.A, case.B, case.C, float(np.median(np.diff(case.t))))
    u, y = torch.from_numpy(np.array(path.samples.u)), path.sampled_outputs(threads=1)
    off = [off_by(model(u).detach().numpy(), y) for model in models]
    for order in (models, models[::-1]):
        found = nearest(path, *order)
        assert off[models.index(found)] <= min(off)


def test_where_outputs_exceed_all_numbers_it_is_the_first():
    models, path = models_and_path(np.array([[9.0]]), np.ones((1, 1)), np.ones((1, 1)), 1.0)
    assert nearest(path, *models) is models[0]
    assert nearest(path, *models[::-1]) is models[1]
