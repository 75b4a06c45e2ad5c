"""Poles and frequency response straight from the neurons, at a cost linear in the number of connections."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import InvalidNetworkError
from ltinet.model.matrices import as_real_matrix, shape_of
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network

Response = NDArray[np.complex128]
_CHUNK = 1 << 22  # complex numbers held at a time, 64 MB


def poles(network: Network) -> NDArray[np.complex128]:
    """The poles of all neurons, layer by layer; of a pair, that with positive imaginary part first."""
    values = [pole for layer in network.layers for neuron in layer.neurons for pole in neuron.poles]
    return np.array(values, dtype=np.complex128)


def frequency_response(network: Network, omega: ArrayLike) -> Response:
    """H(jω), shape (len(omega), p, m), for angular frequencies ω in radians per unit of time.

    Single neurons are summed by matrix products, coupled layers solved by back substitution from their last neuron.
    Where jω is a pole of a neuron H does not exist: every entry there is complex(inf, nan), of infinite magnitude.
    """
    if len(shape_of(omega, "omega")) > 1:
        raise InvalidNetworkError(f"omega has shape {np.shape(omega)}; give a list of frequencies")
    frequencies = as_real_matrix(omega, "omega", vector="row")[0]
    n_io = (network.n_outputs + network.n_inputs + 1) * max(network.n_neurons, 1)
    pieces = np.array_split(frequencies, max(1, -(-len(frequencies) * n_io // _CHUNK)))
    with np.errstate(divide="ignore", invalid="ignore"):  # at a pole; marked below
        H = np.concatenate(
            [_response(network, np.multiply(1j, piece[:, None, None], dtype=np.complex128)) for piece in pieces]
        )
    H[~np.isfinite(H).all(axis=(1, 2))] = complex(np.inf, np.nan)
    return H


def _response(network: Network, s: Response) -> Response:
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
    """Σ (φ + s φ̇)(e + s v) / (m s² + c s + k) over layers of one neuron."""
    layers = [network.layers[index] for index in single]
    m, c, k = np.array([(layer.M[0, 0], layer.C[0, 0], layer.K[0, 0]) for layer in layers]).T
    E, V = np.vstack([layer.E for layer in layers]), np.vstack([layer.V for layer in layers])
    phi = np.column_stack([network.Phi[index][:, 0] for index in single])
    rate = np.zeros_like(phi)
    pairs = [place for place, layer in enumerate(layers) if layer.n_second_order]
    if pairs:
        rate[:, pairs] = np.column_stack([network.Phi[single[place]][:, 1] for place in pairs])
    gain = 1.0 / ((m * s + c) * s + k)
    return np.asarray(((phi + s * rate) * gain) @ (E + s * V), dtype=np.complex128)


def _solve_layer(layer: HorizontalLayer, s: Response) -> Response:
    """(M s² + C s + K)⁻¹ (E + V s), shape (frequencies, neurons, inputs), from the last neuron to the first."""
    X = layer.E + s * layer.V
    diagonal = (layer.M.diagonal() * s + layer.C.diagonal()) * s + layer.K.diagonal()
    for i in layer.solving_order:
        if i + 1 < layer.n_neurons:
            after = X[:, i + 1 :]
            X[:, i] -= layer.K[i, i + 1 :] @ after + s[:, 0] * (layer.C[i, i + 1 :] @ after)
        X[:, i] /= diagonal[:, 0, i, None]
    return X
