"""A basis for each single neuron of a Schur form: where every partition starts."""

from ltinet.decompose.decouple import decouple
from ltinet.decompose.eigenvectors import decouple_neurons
from ltinet.decompose.orthonormal import BlockBases, orthonormalise
from ltinet.decompose.schur import SchurForm


def neuron_bases(schur: SchurForm) -> BlockBases:
    """Orthonormal bases of the invariant subspaces of all diagonal blocks, by eigenvectors where they are accurate."""
    decoupled = decouple_neurons(schur) or decouple(schur.R, schur.starts)
    return orthonormalise(decoupled, schur, schur.starts)
