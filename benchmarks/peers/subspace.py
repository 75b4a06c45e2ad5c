"""Libraries that identify discrete models of a given order by subspace methods; each call gives A, B, C and D."""

import importlib.util
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Model = tuple[Array, Array, Array, Array]


class SubspacePeer(NamedTuple):
    """What it is called, the library that it needs, and how it identifies u, y with an order and block rows."""

    name: str
    library: str
    identify: Callable[[Array, Array, int, int], Model]

    @property
    def is_installed(self) -> bool:
        """Whether its library is here."""
        return importlib.util.find_spec(self.library) is not None


def slicot(u: Array, y: Array, order: int, block_rows: int, *, algorithm: Literal["C", "F", "Q"] = "C") -> Model:
    """MOESP of SLICOT, B and D by least squares on the simulated output: IB01AD, IB01BD and IB01CD of ctrlsys.

    Algorithm "C" goes by a Cholesky factor of the correlations, "Q" by a QR decomposition of the data.
    """
    import ctrlsys

    n, s, m, p = order, block_rows, u.shape[1], y.shape[1]

    def copies() -> tuple[Array, Array]:  # the library writes into what it is given
        return np.asfortranarray(u.copy()), np.asfortranarray(y.copy())

    r = ctrlsys.ib01ad("M", algorithm, "N", "O", "N", "N", s, m, p, *copies(), 0.0, -1.0)[1]
    A, C = ctrlsys.ib01bd("M", "C", "N", s, n, m, p, len(u), r.copy(order="F"), 0.0)[:2]
    zeros = np.zeros((n, m), order="F"), np.zeros((p, m), order="F")
    given = np.asfortranarray(A.copy()), zeros[0], np.asfortranarray(C.copy()), zeros[1]
    _, B, D = ctrlsys.ib01cd("X", "C", "D", n, m, p, *given, *copies(), 0.0)[:3]
    return A, B, C, D


def slicot_by_rotations(u: Array, y: Array, order: int, block_rows: int) -> Model:
    """The same by a QR decomposition of the data."""
    return slicot(u, y, order, block_rows, algorithm="Q")


def nfoursid(u: Array, y: Array, order: int, block_rows: int) -> Model:
    """N4SID of nfoursid."""
    import pandas
    from nfoursid.nfoursid import NFourSID

    inputs, outputs = [f"u{j}" for j in range(u.shape[1])], [f"y{i}" for i in range(y.shape[1])]
    table = pandas.DataFrame(np.hstack([u, y]), columns=[*inputs, *outputs])
    method = NFourSID(table, output_columns=outputs, input_columns=inputs, num_block_rows=block_rows)
    method.subspace_identification()
    found, _ = method.system_identification(rank=order)
    return found.a, found.b, found.c, found.d


def sippy(u: Array, y: Array, order: int, block_rows: int) -> Model:
    """MOESP of SIPPY."""
    from sippy_unipi import system_identification

    found = system_identification(
        y.T, u.T, "MOESP", SS_fixed_order=order, SS_f=block_rows, SS_p=block_rows, SS_D_required=True
    )
    return found.A, found.B, found.C, found.D


PEERS = (
    SubspacePeer('SLICOT, algorithm "C"', "ctrlsys", slicot),
    SubspacePeer('SLICOT, algorithm "Q"', "ctrlsys", slicot_by_rotations),
    SubspacePeer("SIPPY, MOESP", "sippy_unipi", sippy),
    SubspacePeer("nfoursid", "nfoursid", nfoursid),
)
