"""Of several models of a system the one is taken that gives what the engine gives, whichever comes first."""

import numpy as np
import pytest
import torch

import ltinet
from ball_oracle import respond
from hostile.draw import draw
from learnt_systems import off_by
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.nearest import nearest
from ltinet.learn.packed import packed_in_one_block, packed_system
from ltinet.learn.parameters import tensors_of
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.trials import Trial


def models_of(A, B, C, dt):
    """Models in layers, in the user's states, and in the states of layers with all that is left outside of these."""
    prepared = ltinet.construct((A, B, C, np.zeros((len(C), B.shape[1]))))._prepared
    packed = packed_system(prepared), *map(packed_in_one_block, (prepared.as_given, prepared.whole))
    return [LinearNetwork(tensors_of(own), dt=dt, trainable=False, rebuild=print) for own in packed], prepared.as_given


def path_of(engine, dt, *, steps=256.0):
    """A run of the engine."""
    return ExactPath(engine, Trial(dt, steps, "linear", (1.0,) * engine.system.n_inputs).samples, None)


@pytest.mark.parametrize("index", range(12))
def test_it_is_the_one_that_is_less_far_away(index):
    case = draw(f"17/non_normal/{index}")
    dt = float(np.median(np.diff(case.t)))
    models, engine = models_of(case.A, case.B, case.C, dt)
    path = path_of(engine, dt)
    u, y = torch.from_numpy(np.array(path.samples.u)), path.sampled_outputs(threads=1)
    off = [off_by(model(u).detach().numpy(), y) for model in models]
    for order in (models, models[::-1]):
        found = nearest([path], *order)
        assert off[models.index(found)] <= min(off)


def test_where_outputs_exceed_all_numbers_a_shorter_run_tells_and_else_it_is_the_first():
    one = np.ones((1, 1))
    (own, *_), engine = models_of(9.0 * one, one, one, 1.0)
    (foreign, *_), _ = models_of(8.0 * one, one, one, 1.0)
    long, short = path_of(engine, 1.0), path_of(engine, 1.0, steps=8.0)
    assert nearest([long], foreign, own) is foreign
    assert nearest([long, short], foreign, own) is own


@pytest.mark.parametrize("seed", range(12))
def test_small_entries_outside_of_layers_are_what_long_chains_tell(seed):
    """A chain of integrators in states that are turned against it: rounding of its zeros shows with time⁵."""
    rng = np.random.default_rng([51, seed])
    n, dt = int(rng.integers(5, 8)), 1.0
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q @ np.diag(rng.uniform(0.2, 0.8, n - 1), 1) @ Q.T
    B, C, u = rng.standard_normal((n, 2)), rng.standard_normal((2, n)), rng.standard_normal((300, 2))
    models, _ = models_of(A, B, C, dt)
    truth = respond(A, B, C, np.zeros((2, 2)), u=u, t=dt * np.arange(300.0), hold="linear")
    layers, _, whole = (
        np.max(truth.y.distance(own(torch.from_numpy(u)).numpy()).max(axis=0) / truth.y.peak) for own in models
    )
    # A rounding of each entry of F, and one for each of the n powers of time that it passes.
    assert whole <= 1e-13 < layers
