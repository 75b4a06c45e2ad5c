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
    for start, stop, n_real in zip([0, *stops[:-1]], stops, form.reals_per_block, strict=True) if stops else ():
        block, B_l = form.A[start:stop, start:stop], B[start:stop]
        layers.append(HorizontalLayer(*m_lti(block, B_l, n_real=n_real)))
        values, rates, feedthrough = m_o(block, B_l, C[:, start:stop], n_real=n_real)
        Phi.append(np.hstack([values, rates]))
        Psi += feedthrough
    return Network(layers, Phi, Psi)
