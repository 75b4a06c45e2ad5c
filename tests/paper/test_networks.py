"""Networks of the paper's four systems."""

import numpy as np
import pytest

import ltinet


def test_diffusion_has_400_layers_of_one_first_order_neuron():
    net = ltinet.construct(ltinet.named_system("diffusion"))
    assert net.n_layers == net.n_neurons == net.n_first_order == 400
    assert net.n_connections == 0
    assert {layer.kind for layer in net.layers} == {"first-order"}
    assert not any(np.any(layer.V) for layer in net.layers)
    # T is orthogonal to rounding: n·eps.
    assert net.form.condition - 1.0 <= 400 * np.finfo(float).eps


@pytest.mark.parametrize("n_layers", range(1, 11))
def test_triangular_gives_networks_of_1_to_10_layers(n_layers):
    net = ltinet.construct(ltinet.named_system("triangular"), n_layers=n_layers)
    assert net.n_layers == n_layers
    assert (net.n_first_order, net.n_second_order) == (10, 0)
    assert sum(layer.n_neurons for layer in net.layers) == 10


def test_weights_and_condition_grow_with_the_number_of_layers():
    # Figure of Example 3.2: more layers cost condition and weight; four layers stay below 15.
    nets = [ltinet.construct(ltinet.named_system("triangular"), n_layers=count) for count in range(1, 11)]
    conditions = [net.form.condition for net in nets]
    assert conditions == sorted(conditions)
    assert conditions[3] <= 15.0
    assert conditions[9] >= 1e6
    assert nets[9].weight_norm > 100 * nets[3].weight_norm
    connections = [net.n_connections for net in nets]
    assert connections[0] == 45
    assert connections[9] == 0


@pytest.mark.parametrize("seed", range(3))
def test_blobs_have_six_layers_of_all_three_kinds(seed):
    net = ltinet.construct(ltinet.named_system("blobs", seed=seed), n_layers=6)
    assert net.n_layers == 6
    assert (net.n_first_order, net.n_second_order) == (44, 45)
    kinds = sorted(layer.kind for layer in net.layers)
    assert kinds == ["first-order"] * 2 + ["mixed"] * 2 + ["second-order"] * 2
    assert net.form.condition <= 15.0  # the paper: about 11


def test_blobs_by_kmeans_are_the_same_six_layers():
    cluster = pytest.importorskip("sklearn.cluster")
    system = ltinet.named_system("blobs")
    net = ltinet.construct(system, clustering=cluster.KMeans(6, n_init=10, random_state=0))
    shapes = sorted((layer.n_first_order, layer.n_second_order) for layer in net.layers)
    assert shapes == [(0, 15), (0, 15), (7, 7), (7, 8), (14, 0), (16, 0)]
    ours = ltinet.construct(system, n_layers=6)
    assert sorted((layer.n_first_order, layer.n_second_order) for layer in ours.layers) == shapes


def test_convection_diffusion_has_199_layers_and_the_largest_40_neurons():
    net = ltinet.construct(ltinet.named_system("convection_diffusion"))
    assert net.n_layers == 199
    assert net.n_second_order == 162
    assert net.n_first_order == 76  # 40 zeros and 36 reals
    sizes = sorted((layer.n_neurons for layer in net.layers), reverse=True)
    assert sizes == [40] + [1] * 198
    boundary = net.layers[0]
    assert boundary.n_neurons == 40
    assert boundary.edges == ()  # two rows of points that nothing but the input moves
    assert not np.any(boundary.K)
    assert net.form.condition <= 6.17  # 3 + √10; the paper has 7.42
