"""The clustering algorithm of the paper, from scikit-learn, with its random start fixed."""

from typing import Any

SEED = 0


def kmeans(n_clusters: int) -> Any:
    """K-means for `construct(system, clustering=…)`, which shows it (Re λ, |Im λ|), so that no pair is split."""
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=10, random_state=SEED)
