"""Linear-system view of a network: state equations, block coordinates, poles and frequency response.

State equations z' = F z + G u: at a jump of u the equations M ξ̈ + C ξ̇ + K ξ = E u + V u̇ move ξ̇ of second-order neurons
(and ξ of first-order ones that see u̇) by J times the jump; z = (ξ, ξ̇) − J u is continuous.

Block coordinates: m ξ̈ + c ξ̇ + k ξ has the poles a ± √(a² − k/m), a = −c/2m. With ζ = ξ̇ − J u and η = (ζ − a ξ)/s,
s = √|k/m − a²|, the states (ξ, η) stand as [[a, s], [∓s, a]], a normal matrix in any unit of time. If the form that a
network was made from is known, the maps m_lti and m_o are inverted instead.

Poles and frequency response follow from the neurons at a cost linear in the number of connections.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse

from ltinet._util.floating_point import MAX_AMPLIFICATION
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import InvalidNetworkError
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import m_eta, solve_upper
from ltinet.network.network import Network
from ltinet.systems.matrices import Matrix, as_real_matrix, make_read_only, shape_of
from ltinet.systems.system_matrices import SystemMatrices

# State equations


class LayerRealization(NamedTuple):
    """State equations z′ = F z + G u of a layer with (ξ, ξ̇ of second-order neurons) = z + J u."""

    F: Matrix
    G: Matrix
    J: Matrix


def realize_layer(layer: HorizontalLayer) -> LayerRealization:
    """Return the state equations of a layer with first- and second-order neurons in any order.

    With f and s the first- and second-order neurons, C_ff ξ̇_f = E_f u + V_f u̇ − K_f ξ − C_fs ξ̇_s and M_s ξ̈_s = E_s
    u + V_s u̇ − K_s ξ − C_ss ξ̇_s − C_sf ξ̇_f; C_ff is upper triangular. Cost O(n_l³).
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
    # Columns of the right-hand sides: z = (ξ, ξ̇_s), then u. Replacing (ξ, ξ̇_s) by z + J u adds F J to G.
    first = solve_upper(C_ff, np.hstack([-layer.K[f], -C_fs, layer.E[f]]))
    second = np.hstack([-layer.K[s], -C_ss, layer.E[s]]) - C_sf @ first
    F = np.zeros((n + len(s), n + len(s)))
    G = np.zeros((n + len(s), layer.n_inputs))
    F[f], G[f] = first[:, : n + len(s)], first[:, n + len(s) :]
    F[s, n + np.arange(len(s))] = 1.0
    F[n:], G[n:] = second[:, : n + len(s)] / masses, second[:, n + len(s) :] / masses
    return LayerRealization(F, G + F @ J, J)


def to_state_space(network: Network, dt: float | None = None) -> SystemMatrices:
    """Return the network as (A, B, C, D), block diagonal, its states the ξ of each layer followed by their ξ̇ − J u.

    With a time step dt the network is in discrete time, and ξ[k+1] stands for ξ̇.
    """
    parts = [realize_layer(layer) for layer in network.layers]
    C = network.output_weights
    J = np.vstack([np.zeros((0, network.n_inputs)), *(part.J for part in parts)])
    A = linalg.block_diag(*(part.F for part in parts)) if parts else np.zeros((0, 0))
    B = np.vstack([np.zeros((0, network.n_inputs)), *(part.G for part in parts)])
    return SystemMatrices(A, B, C, network.Psi + C @ J, dt=dt)


class DescriptorForm(NamedTuple):
    """Network as E z′ = A z + B u + V u̇ for z = (ξ, ξ̇) of all layers, its entries parameters of neurons."""

    E: Matrix
    A: Matrix
    B: Matrix
    V: Matrix


def descriptor_form(network: Network) -> DescriptorForm:
    """Return the equations of a network, whose states are those of `to_state_space`, without any arithmetic."""
    parts = []
    for layer in network.layers:
        n, s = layer.n_neurons, np.flatnonzero(layer.is_second_order)
        f, rates = np.flatnonzero(~layer.is_second_order), n + np.arange(len(s))
        E, A = np.zeros((2, n + len(s), n + len(s)))
        B, V = np.zeros((2, n + len(s), layer.n_inputs))
        E[s, s], A[s, rates] = 1.0, 1.0
        E[rates, rates] = layer.M.diagonal()[s]
        for rows, neurons in ((f, f), (rates, s)):
            E[rows[:, None], f] += layer.C[neurons[:, None], f]
            A[rows[:, None], np.arange(n)] -= layer.K[neurons]
            A[rows[:, None], rates] -= layer.C[neurons[:, None], s]
            B[rows], V[rows] = layer.E[neurons], layer.V[neurons]
        parts.append((E, A, B, V))
    none = np.zeros((0, network.n_inputs))
    E, A = (linalg.block_diag(*(part[i] for part in parts)) if parts else np.zeros((0, 0)) for i in range(2))
    B, V = (np.vstack([none, *(part[i] for part in parts)]) for i in (2, 3))
    return DescriptorForm(E, A, B, V)


# Block coordinates of a network without a form


class ModalBlocks(NamedTuple):
    """Network as a system in block coordinates, with (ξ, ξ̇ − J u) = to_neurons · z."""

    system: BlockSystem
    to_neurons: sparse.csr_array
    to_blocks: sparse.csr_array
    """Inverse of `to_neurons`."""
    J: Matrix


def modal_blocks(network: Network) -> ModalBlocks:
    """Return the block coordinates of a network that has no block-diagonal form."""
    parts = [realize_layer(layer) for layer in network.layers]
    maps = [_to_neurons(layer, part.F) for layer, part in zip(network.layers, parts, strict=True)]
    inverses: list[Matrix] = [np.asarray(np.linalg.inv(matrix), dtype=np.float64) for matrix in maps]
    to_neurons, to_blocks = sparse_block_diagonal(maps), sparse_block_diagonal(inverses)
    A = [inverse @ part.F @ matrix for inverse, part, matrix in zip(inverses, parts, maps, strict=True)]
    B = [inverse @ part.G for inverse, part in zip(inverses, parts, strict=True)]
    J = np.vstack([np.zeros((0, network.n_inputs)), *(part.J for part in parts)])
    system = BlockSystem(
        A=make_read_only(linalg.block_diag(*A) if A else np.zeros((0, 0))),
        B=make_read_only(np.vstack([np.zeros((0, network.n_inputs)), *B])),
        C=make_read_only(network.output_weights @ to_neurons),
        D=make_read_only(network.Psi + network.output_weights @ J),
        block_sizes=tuple(layer.n_states for layer in network.layers),
        reals_per_block=tuple(layer.n_first_order for layer in network.layers),
    )
    return ModalBlocks(system, to_neurons, to_blocks, J)


def sparse_block_diagonal(blocks: list[Matrix]) -> sparse.csr_array:
    """Return a sparse block-diagonal matrix, 0×0 for no blocks."""
    if not blocks:
        return sparse.csr_array((0, 0))
    # The type of the first block determines that of the result; converting all blocks would take longer than joining them.
    mixed: list[Any] = [sparse.coo_array(blocks[0]), *blocks[1:]]
    return sparse.csr_array(sparse.block_diag(mixed))


def _to_neurons(layer: HorizontalLayer, F: Matrix) -> Matrix:
    """Return the map of a layer from (ξ of first-order neurons, then ξ and η of each pair) to (all ξ, all ζ)."""
    n = layer.n_neurons
    first, second = np.flatnonzero(~layer.is_second_order), np.flatnonzero(layer.is_second_order)
    zeta = n + np.arange(len(second))
    a, k = 0.5 * F[zeta, zeta], -F[zeta, second]
    # The imaginary part, so that a pair becomes a rotation. For nearly critical damping it is the root of a rounding error,
    # and the map, whose condition number is largest/s, would amplify others. Impulse responses of such pairs err by 600 to
    # 500 eps for all limits from 1e-12 to 0.1.
    largest = np.maximum(np.sqrt(np.abs(k)), np.abs(a))
    s = np.maximum(np.sqrt(np.abs(k - a * a)), largest / MAX_AMPLIFICATION)
    s[s == 0.0] = 1.0  # ξ̈ = 0 has no time scale
    column = len(first) + 2 * np.arange(len(second))
    to_neurons = np.zeros((layer.n_states, layer.n_states))
    to_neurons[first, np.arange(len(first))] = to_neurons[second, column] = 1.0
    to_neurons[zeta, column], to_neurons[zeta, column + 1] = a, s
    return to_neurons


def recover_block_system(network: Network, form: BlockDiagonalForm) -> BlockSystem:
    """Return the system in the coordinates of a form from the network alone, by inverting the maps m_lti and m_o.

    B₂ = V, B₃ = A₂₃⁻¹E_c − A₃₃ Z, B₁ = E_r − A₁₃ Z with Z = −A₂₃⁻¹B₂; C_η = φ̇ A₂₃, C_c = φ_c − C_η W.
    """
    B, C = np.zeros((network.n_states, network.n_inputs)), np.zeros((network.n_outputs, network.n_states))
    D, start = network.Psi.copy(), 0
    for index, (layer, phi, n_real) in enumerate(zip(network.layers, network.Phi, form.reals_per_block, strict=True)):
        A, n = form.block(index), layer.n_states
        r, c, e = slice(0, n_real), slice(n_real, n, 2), slice(n_real + 1, n, 2)
        B_block, C_block = B[start : start + n], C[:, start : start + n]
        B_block[c] = layer.V[n_real:]
        W, _, Z = m_eta(A, B_block, n_real=n_real)
        B_block[e] = solve_upper(A[c, e], layer.E[n_real:]) - A[e, e] @ Z
        B_block[r] = layer.E[:n_real] - A[r, e] @ Z
        C_block[:, e] = phi[:, layer.n_neurons :] @ A[c, e]
        C_block[:, r], C_block[:, c] = phi[:, :n_real], phi[:, n_real : layer.n_neurons] - C_block[:, e] @ W
        D -= C_block[:, e] @ Z
        start += n
    return BlockSystem(
        form.A, make_read_only(B), make_read_only(C), make_read_only(D), form.block_sizes, form.reals_per_block
    )


# Poles and frequency response

Response = NDArray[np.complex128]
_CHUNK_SIZE = 1 << 22  # complex numbers held at a time, 64 MB


def poles(network: Network) -> NDArray[np.complex128]:
    """Return the poles of all neurons, layer by layer; of a pair, the one with positive imaginary part first."""
    values = [pole for layer in network.layers for neuron in layer.neurons for pole in neuron.poles]
    return np.array(values, dtype=np.complex128)


def frequency_response(network: Network, omega: ArrayLike, dt: float | None = None) -> Response:
    """Return H(jω), or H(e^{jω dt}), shape (len(omega), p, m), for angular frequencies ω in radians per unit of time.

    Single neurons are summed by matrix products, coupled layers solved by back substitution from their last neuron.
    Where that is a pole of a neuron, H does not exist, and every entry is complex(inf, nan), of infinite magnitude.
    """
    if len(shape_of(omega, "omega")) > 1:
        raise InvalidNetworkError(f"omega must be a list of frequencies, got shape {np.shape(omega)}")
    frequencies = as_real_matrix(omega, "omega", vector="row")[0]
    n_io = (network.n_outputs + network.n_inputs + 1) * max(network.n_neurons, 1)
    chunks = np.array_split(frequencies, max(1, -(-len(frequencies) * n_io // _CHUNK_SIZE)))
    with np.errstate(divide="ignore", invalid="ignore"):  # at a pole; marked below
        H = np.concatenate(
            [_transfer_function(network, _evaluation_points(chunk, dt)[:, None, None]) for chunk in chunks]
        )
    H[~np.isfinite(H).all(axis=(1, 2))] = complex(np.inf, np.nan)
    return H


def _evaluation_points(frequencies: NDArray[np.float64], dt: float | None) -> Response:
    """Return jω, in discrete time e^{jω dt}."""
    points = np.multiply(1j, frequencies, dtype=np.complex128)
    return points if dt is None else np.exp(points * dt)


def _transfer_function(network: Network, s: Response) -> Response:
    """Return H(s) for s of shape (frequencies, 1, 1)."""
    H = np.broadcast_to(network.Psi.astype(np.complex128), (len(s), *network.Psi.shape)).copy()
    single = [index for index, layer in enumerate(network.layers) if layer.n_neurons == 1]
    if single:
        H += _single_neurons(network, single, s)
    for layer, phi in zip(network.layers, network.Phi, strict=True):
        if layer.n_neurons > 1:
            states = _solve_layer(layer, s)
            rates = s * states[:, layer.is_second_order]
            H += phi[:, : layer.n_neurons] @ states + phi[:, layer.n_neurons :] @ rates
    return H


def _single_neurons(network: Network, single: list[int], s: Response) -> Response:
    """Return Σ (φ + s φ̇)(e + s v) / (m s² + c s + k) over layers of one neuron."""
    layers = [network.layers[index] for index in single]
    m, c, k = np.array([(layer.M[0, 0], layer.C[0, 0], layer.K[0, 0]) for layer in layers]).T
    E, V = np.vstack([layer.E for layer in layers]), np.vstack([layer.V for layer in layers])
    phi = np.column_stack([network.Phi[index][:, 0] for index in single])
    rate = np.zeros_like(phi)
    pairs = [index for index, layer in enumerate(layers) if layer.n_second_order]
    if pairs:
        rate[:, pairs] = np.column_stack([network.Phi[single[index]][:, 1] for index in pairs])
    gain = 1.0 / ((m * s + c) * s + k)
    return np.asarray(((phi + s * rate) * gain) @ (E + s * V), dtype=np.complex128)


def _solve_layer(layer: HorizontalLayer, s: Response) -> Response:
    """Return (M s² + C s + K)⁻¹ (E + V s), shape (frequencies, neurons, inputs), from the last neuron to the first."""
    X = layer.E + s * layer.V
    diagonal = (layer.M.diagonal() * s + layer.C.diagonal()) * s + layer.K.diagonal()
    for i in layer.solving_order:
        if i + 1 < layer.n_neurons:
            after = X[:, i + 1 :]
            X[:, i] -= layer.K[i, i + 1 :] @ after + s[:, 0] * (layer.C[i, i + 1 :] @ after)
        X[:, i] /= diagonal[:, 0, i, None]
    return X
