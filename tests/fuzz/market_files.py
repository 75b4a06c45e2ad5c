"""Valid folders of Matrix Market files, and changes to their text."""

import gzip

from fuzz.mutations import TEXT, Generator, mutate, pick

_HEAD = "%%MatrixMarket matrix "
_DENSE = _HEAD + "array real general\n% a comment\n3 3\n-1.0\n0\n1e-3\n2.0\n-3.5E0\n.25\n0.0\n5.\n-2.0\n"
_SPARSE = _HEAD + "coordinate real general\n%\n3 3 4\n1 1 -1.0\n2 2 -3.5\n3 3 -2.25\n1 3 1e-300\n"
_INTEGER = _HEAD + "coordinate integer general\n3 2 3\n1 1 1\n2 2 -2\n3 1 7\n"
_PATTERN = _HEAD + "coordinate pattern general\n3 1 2\n1 1\n3 1\n"
_ROW = _HEAD + "array integer general\n1 3\n1\n0\n-5\n"
_SYMMETRIC = _HEAD + "array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"
_SKEW = _HEAD + "array real skew-symmetric\n3 3\n1.5\n2.5\n3.5\n"
_SPARSE_SYMMETRIC = _HEAD + "coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 0.5\n3 3 4\n"
_SPARSE_SKEW = _HEAD + "coordinate real skew-symmetric\n3 3 2\n2 1 2\n3 1 -0.5\n"
_NOTHING = _HEAD + "array real general\n0 3\n"
_COLUMN = _HEAD + "array real general\n3 1\n1\n2\n3\n"
_ZERO = _HEAD + "array real general\n1 1\n0.0\n"


def market_seeds() -> list[dict[str, bytes]]:
    """Every layout, type and symmetry that is known, plain and gzipped."""
    texts = [
        {"A": _DENSE, "B": _INTEGER, "C": _ROW, "Ts": _ZERO},
        {"A": _SPARSE, "B": _PATTERN, "C": _ROW},
        {"A": _SYMMETRIC, "B": _COLUMN, "C": _NOTHING},
        {"A": _SKEW, "B": _COLUMN, "C": _ROW.replace("\n", "\r\n")},
        {"A": _SPARSE_SYMMETRIC, "B": _COLUMN, "C": _ROW},
        {"A": _SPARSE_SKEW, "B": _PATTERN, "C": _ROW, "E": _SYMMETRIC},
    ]
    plain = [{f"{name}.mtx": text.encode() for name, text in folder.items()} for folder in texts]
    packed = [{f"{name}.gz": gzip.compress(text) for name, text in folder.items()} for folder in plain]
    return plain + packed


def change_market(folder: dict[str, bytes], rng: Generator) -> dict[str, bytes]:
    """The text of one file, and of gzipped ones sometimes the packed bytes."""
    name = pick(sorted(folder), rng)
    data = folder[name]
    if not name.endswith(".gz"):
        data = mutate(data, rng, TEXT)
    elif rng.integers(4):
        data = gzip.compress(mutate(gzip.decompress(data), rng, TEXT))
    else:
        data = mutate(data, rng)
    return folder | {name: data}
