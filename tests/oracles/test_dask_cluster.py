"""Hypothesis: layers solved by the processes of a Dask cluster give what one process gives.

Not bit for bit: another process may have another kernel of BLAS, or its arrays at other places. But both say how wrong
they may be at most, and may not differ by more than both together.
"""

import os

import joblib
import numpy as np
import pytest

import ltinet
from network_examples import random_network

distributed = pytest.importorskip("distributed", reason="a Dask cluster needs dask.distributed")

T = np.linspace(0.0, 2.0, 9)
U = np.random.default_rng(0).standard_normal((3, 9, 2))


@pytest.fixture(scope="module")
def client():
    """Two worker processes on this machine; the dashboard's port is not needed, nor is any port known beforehand."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.usefixtures("client")
def test_a_cluster_gives_the_same_result(engine):
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1], [2, 2], [2]], 2, 2, seed=4))
    rates = {"method": lambda neuron: "Radau" if neuron.order == 2 else "DOP853", "rtol": {0: 1e-6}}
    alone = net.simulate(U, T, engine=engine, **rates)
    with joblib.parallel_config("dask"):
        together = net.simulate(U, T, engine=engine, n_jobs=2, **rates)
    allowed = together.error_bound(T) + alone.error_bound(T)
    assert np.all(np.abs(together.y - alone.y) <= allowed)
    assert np.max(allowed) <= 1e-2 * np.max(np.abs(alone.y))  # which says something, at a tolerance of 1e-3
    assert together.states.shape == alone.states.shape
    counts = together.stats["evaluations"]
    assert [len(layer) for layer in counts] == [len(layer) for layer in alone.stats["evaluations"]]
    assert min(min(layer) for layer in counts) > 0


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
@pytest.mark.usefixtures("client")
def test_a_reduction_does_not_depend_on_who_computes_its_shifts(n_jobs):
    """Shifts come in batches of one size, so that the basis is the same but for rounding, whatever the workers."""
    system = ltinet.named_system("convection_diffusion_plate", n=900, V=20.0)
    alone = ltinet.reduce(system, order=8)
    with joblib.parallel_config("dask"):
        together = ltinet.reduce(system, order=8, n_jobs=n_jobs)
    assert together.order == alone.order
    assert together.error_bound == pytest.approx(alone.error_bound, rel=1e-6)
    omega = np.geomspace(0.1, 1e4, 30)
    gap = together.system.frequency_response(omega) - alone.system.frequency_response(omega)
    assert np.abs(gap).max() <= 1e-9 * alone.gain  # models of bases that differ by rounding


@pytest.mark.slow
def test_the_backend_that_the_user_chose_is_used(client):
    """A method chosen by a function of the neuron tells where neurons are solved: in the workers, nowhere else."""
    net = ltinet.DynamicNetwork(random_network([[1], [2], [1]], 2, 2, seed=1))
    workers = tuple(client.run(os.getpid).values())

    def method(_):
        if os.getpid() not in workers:
            raise RuntimeError("not in a worker of the cluster")
        return "DOP853"

    with joblib.parallel_config("dask"):
        net.simulate(U, T, engine="per_neuron", method=method, n_jobs=2)
    with pytest.raises(RuntimeError, match="not in a worker"):
        net.simulate(U, T, engine="per_neuron", method=method)
