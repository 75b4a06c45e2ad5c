"""A damped Newton pass over a window: the steps Δ that bring all states nearer to their recursion, and stay small.

With A_k = ∂w_{k+1}/∂w_k and r_k = f(w_k) − w_{k+1}, the Δ_1 … Δ_T with the least

    Σ |Δ_{k+1} − A_k Δ_k − r_k|² + λ Σ |Δ_k|²,   Δ_0 = 0.

λ = 0 is Newton's method, which explodes where the A_k of a poor guess do; λ > 0 is a trust region (ELK, Gonzalez et al.
2024, who find the same Δ by a Kalman smoother). The normal equations are block tridiagonal and positive definite:
here they are solved by cyclic reduction, log₂ T rounds of T/2, T/4, … solves side by side, parallel in time.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class _Chain(NamedTuple):
    """U_{k−1}ᵀ x_{k−1} + D_k x_k + U_k x_{k+1} = g_k for K blocks, each tensor `(B, K, n, …)`; the last U is zero."""

    D: Tensor
    U: Tensor
    g: Tensor


def damped_steps(A: Tensor, r: Tensor, damping: float) -> Tensor:
    """Δ_1 … Δ_T `(B, T, n)` from A `(B, T, n, n)`, whose first is not used, and residuals `(B, T, n)`; cost O(T n³)."""
    n = r.shape[-1]
    later = A[:, 1:]
    identity = torch.eye(n, dtype=A.dtype, device=A.device)
    last = torch.zeros_like(A[:, :1])
    D = (1.0 + damping) * identity + torch.cat([later.mT @ later, last], 1)
    U = torch.cat([-later.mT, last], 1)
    g = torch.cat([r[:, :-1] - (later.mT @ r[:, 1:].unsqueeze(-1)).squeeze(-1), r[:, -1:]], 1)
    return _solved(_Chain(D, U, g.unsqueeze(-1))).squeeze(-1)


def _solved(chain: _Chain) -> Tensor:
    """All x of a chain: every other block is put into its neighbours, until one is left."""
    D, U, g = chain
    count, n = D.shape[1], D.shape[-1]
    if count == 1:
        return torch.linalg.solve_ex(D, g).result
    if count % 2 == 0:  # one more that is not coupled to any: each that stays then has two neighbours that go
        identity = torch.eye(n, dtype=D.dtype, device=D.device).expand(len(D), 1, n, n)
        nothing = torch.zeros_like(g[:, :1])
        D, U, g = torch.cat([D, identity], 1), torch.cat([U, 0.0 * identity], 1), torch.cat([g, nothing], 1)
    before = torch.cat([torch.zeros_like(U[:, :1]), U[:, :-1].mT], 1)  # the blocks left of the diagonal
    # Blocks 0, 2, 4 … go: x = own − right x_next − left x_before.
    gone = torch.linalg.solve_ex(D[:, ::2], torch.cat([U[:, ::2], before[:, ::2], g[:, ::2]], -1)).result
    right, left, own = gone.split([n, n, 1], -1)
    U_before, U_after = before[:, 1::2], U[:, 1::2]
    kept = _solved(
        _Chain(
            D[:, 1::2] - U_before @ right[:, :-1] - U_after @ left[:, 1:],
            -U_after @ right[:, 1:],
            g[:, 1::2] - U_before @ own[:, :-1] - U_after @ own[:, 1:],
        )
    )
    nothing = torch.zeros_like(kept[:, :1])
    found = own - right @ torch.cat([kept, nothing], 1) - left @ torch.cat([nothing, kept], 1)
    both = torch.stack([found[:, :-1], kept], 2).flatten(1, 2)
    return torch.cat([both, found[:, -1:]], 1)[:, :count]
