"""Algorithm 2: from a block-diagonal form to a network, block by block."""

import numpy as np

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.state_space import StateSpace
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import m_lti, m_o
from ltinet.network.network import Network


def synthesise(system: StateSpace, form: BlockDiagonalForm) -> Network:
    """The network with the input–output map of the system (Theorem 1), one horizontal layer per block of the form."""
    B, C = form.T_inv @ system.B, system.C @ form.T
    layers, Phi, Psi = [], [], system.D.copy()
    stops = np.cumsum(form.block_sizes).tolist()
    for index, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        n_real = int(np.count_nonzero(form.eigenvalues[index].imag == 0.0))
        block, B_l = form.A[start:stop, start:stop], B[start:stop]
        layers.append(HorizontalLayer(*m_lti(block, B_l, n_real=n_real)))
        values, rates, feedthrough = m_o(block, B_l, C[:, start:stop], n_real=n_real)
        Phi.append(np.hstack([values, rates]))
        Psi += feedthrough
    return Network(layers, Phi, Psi)
