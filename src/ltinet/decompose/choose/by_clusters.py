"""The blocks that a clustering of the eigenvalues gives, as the paper chooses them."""

import numpy as np

from ltinet.decompose.choose.choice import ClusteringAlgorithm, Found
from ltinet.decompose.partition import agglomerate
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import separate
from ltinet.errors import PartitionError
from ltinet.tolerances import EPS


def by_clustering(schur: SchurForm, clustering: ClusteringAlgorithm, *, factor: float) -> Found:
    """The blocks that a clustering of the eigenvalues gives; clusters that cannot be told apart are merged."""
    points = factor * np.column_stack([schur.eigenvalues.real, schur.eigenvalues.imag])
    labels = np.asarray(clustering.fit_predict(points))
    if labels.shape != (len(points),) or not np.issubdtype(labels.dtype, np.integer):
        raise PartitionError(
            f"fit_predict returned {labels.dtype} labels of shape {labels.shape}; expected one integer for each of the "
            f"{len(points)} points"
        )
    in_no_cluster = labels < 0  # scikit-learn's mark: each such point is a block of its own
    labels = np.unique(labels, return_inverse=True)[1]
    labels = np.where(in_no_cluster, len(labels) + np.arange(len(labels)), labels)
    separation, remarks = separate(schur, labels), []
    while separation.condition > 1.0 / EPS and separation.n_blocks > 1:
        remarks.append("two clusters share eigenvalues that cannot be told apart in double precision; they were merged")
        separation = separation.merged(next(agglomerate(separation.atoms, power=0.0)).partition)
    return Found(separation, remarks=tuple(remarks))
