"""The way back: a network as z' = F z + G u, in coordinates in which no derivative of the input appears.

At a jump of u the layer equations M ξ̈ + C ξ̇ + K ξ = E u + V u̇ move ξ̇ of second-order neurons (and ξ of first-order ones
that see u̇) by J times the jump. What is left, z = (ξ, ξ̇) − J u, is continuous and starts at zero when the system does.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import solve_upper
from ltinet.network.network import Network


class LayerRealisation(NamedTuple):
    """z' = F z + G u with (ξ, ξ̇ of second-order neurons) = z + J u."""

    F: Matrix
    G: Matrix
    J: Matrix


def realise_layer(layer: HorizontalLayer) -> LayerRealisation:
    """Write the equations of a layer, first and second order in any arrangement, as a first-order system.

    With f and s the first- and second-order neurons, C_ff ξ̇_f = E_f u + V_f u̇ − K_f ξ − C_fs ξ̇_s and
    M_s ξ̈_s = E_s u + V_s u̇ − K_s ξ − C_ss ξ̇_s − C_sf ξ̇_f; C_ff is upper triangular. Cost O(n_l³).
    """
    n = layer.n_neurons
    s = np.flatnonzero(layer.is_second_order)
    f = np.flatnonzero(~layer.is_second_order)
    masses = layer.M.diagonal()[s][:, None]
    C_ff, C_fs = layer.C[f[:, None], f], layer.C[f[:, None], s]
    C_sf, C_ss = layer.C[s[:, None], f], layer.C[s[:, None], s]
    J = np.zeros((n + len(s), layer.n_inputs))
    J[f] = solve_upper(C_ff, layer.V[f])
    J[n:] = (layer.V[s] - C_sf @ J[f]) / masses
    # Columns of the right-hand sides: z = (ξ, ξ̇_s), then u. Replacing (ξ, ξ̇_s) by z + J u adds what multiplies J u.
    first = np.hstack([-layer.K[f], -C_fs, layer.E[f]])
    first = solve_upper(C_ff, first)
    second = np.hstack([-layer.K[s], -C_ss, layer.E[s]]) - C_sf @ first
    F = np.zeros((n + len(s), n + len(s)))
    G = np.zeros((n + len(s), layer.n_inputs))
    F[f], G[f] = first[:, : n + len(s)], first[:, n + len(s) :]
    F[s, n + np.arange(len(s))] = 1.0
    F[n:], G[n:] = second[:, : n + len(s)] / masses, second[:, n + len(s) :] / masses
    return LayerRealisation(F, G + F @ J, J)


def to_state_space(network: Network) -> SystemMatrices:
    """The network as (A, B, C, D), block diagonal, its states the ξ of each layer followed by their ξ̇ − J u."""
    parts = [realise_layer(layer) for layer in network.layers]
    C = network.output_weights
    J = np.vstack([np.zeros((0, network.n_inputs)), *(part.J for part in parts)])
    A = linalg.block_diag(*(part.F for part in parts)) if parts else np.zeros((0, 0))
    B = np.vstack([np.zeros((0, network.n_inputs)), *(part.G for part in parts)])
    return SystemMatrices(A, B, C, network.Psi + C @ J)
