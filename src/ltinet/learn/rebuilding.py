"""The way back: the network of a model's linear part, in the states of the user that it began with."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ltinet.arrays import Array
from ltinet.construction import Construction, construct_network
from ltinet.decompose.choose.choice import BlockChoice
from ltinet.decompose.transformation import Product
from ltinet.learn.system import System
from ltinet.model.names import SignalNames
from ltinet.model.system_matrices import SystemMatrices
from ltinet.threads import threads_for

_ANY_CONDITION = 1e4  # as `ltinet.construct` has it


def rebuilt(
    system: System,
    *,
    to_user: Tensor,
    from_user: Tensor,
    names: SignalNames,
    max_condition: float = _ANY_CONDITION,
) -> Construction:
    """Algorithms 1 and 2 in the model's own coordinates, which are sparse already; T then leads on to the user's.

    A, B and C of the user's states are products with the maps between the two, and stand beside the network only to be
    looked at: it runs in its blocks, whose digits they do not touch.
    """
    A, B, C, D = dense_matrices(system)
    own = SystemMatrices(A, B, C, D)
    with threads_for(len(A)):
        found = construct_network(own, BlockChoice(max_condition, None, None, called="n_layers"), balance=None)
    T, T_inv = to_user.detach().cpu().numpy(), from_user.detach().cpu().numpy()
    given = SystemMatrices(T @ A @ T_inv, T @ B, C @ T_inv, D, names=names)
    transformation = Product(T @ found.form.T, found.form.T_inv @ T_inv)
    form = replace(found.form, transformation=transformation, original=given.A, scaling=np.ones(len(A)))
    return Construction(found.network, form, given, found.blocks)


def dense_matrices(system: System) -> tuple[Array, Array, Array, Array]:
    """A, B, C and D in the model's own coordinates, as arrays."""
    with torch.no_grad():
        layout = system.layout
        n, pairs = layout.n_states, layout.n_pairs
        A = np.zeros((n, n))
        re, im = np.arange(pairs), pairs + np.arange(pairs)
        A[re, re] = A[im, im] = _array(system.pair_rates)
        A[im, re] = _array(system.frequencies)
        A[re, im] = -A[im, re]
        reals = 2 * pairs + np.arange(layout.n_reals)
        A[reals, reals] = _array(system.real_rates)
        start = 2 * pairs + layout.n_reals
        for group in system.blocks:
            for block in _array(group):
                stop = start + len(block)
                A[start:stop, start:stop] = block
                start = stop
        return A, _array(system.B), _array(system.C), _array(system.D)


def _array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)
