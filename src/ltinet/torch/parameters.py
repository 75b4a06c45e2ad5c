"""Trainable parameters of a network and the constants that place them in its system.

Decay rates are e^p with p clamped around its initial value, so that stable modes stay stable under any optimizer.
Modes that do not decay (integrators, undamped and unstable poles) are separate parameters named `held_rates`. All
values are stored relative to the start: e^{p − p₀} times a constant gives exactly the original values as long as
p = p₀.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltinet._util.floating_point import EPS, Array
from ltinet._util.text import format_count
from ltinet.torch.packed_system import PackedSystem
from ltinet.torch.propagators import TensorSystem

LOG_RANGE = 16.0
"""Limit on the change of log decay rates and log couplings of pairs: a factor of nine million either way."""

PARAMETER_NAMES = (
    "log_decay", "held_rates", "frequency", "log_above", "log_below", "couplings", "B", "C", "D",
)  # fmt: skip
_BLOCK_INDEX_PREFIX = "block_entries_"
Result = TypeVar("Result")


class NetworkTensors(NamedTuple):
    """Parameters and constants by name, float64 except for indices.

    The names are also those of tensors in model files.
    """

    parameters: dict[str, Tensor]
    constants: dict[str, Tensor]


def initial_tensors(packed: PackedSystem) -> NetworkTensors:
    """Return the initial parameters of a network and its constants."""
    rates, sizes = _diagonal_entries(packed)
    is_stable = -rates > EPS * np.maximum(sizes, np.abs(rates))
    # Position of each rate in [stable rates, other rates].
    position = np.argsort(np.argsort(~is_stable, kind="stable")).astype(np.int64)
    above, below, couplings, entries = _block_entries(packed)
    parameters = {
        "log_decay": np.log(-rates[is_stable]),
        "held_rates": rates[~is_stable],
        "frequency": packed.pair_rates.imag,
        "log_above": np.log(np.abs(above)),
        "log_below": np.log(np.abs(below)),
        "couplings": couplings,
        "B": packed.B,
        "C": packed.C,
        "D": packed.D,
    }
    constants: dict[str, NDArray[Any]] = {}
    for name, values in (("decay", -rates[is_stable]), ("above", above), ("below", below)):
        constants |= {f"{name}_at_start": values, f"log_{name}_at_start": parameters[f"log_{name}"]}
    constants |= {"from_user": packed.from_user, "to_user": packed.to_user, "place_of_rates": position}
    constants |= {f"{_BLOCK_INDEX_PREFIX}{number}": index for number, index in enumerate(entries)}
    return NetworkTensors(_as_tensors(parameters), _as_tensors(constants))


def parameters_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a system by name; pruning and parametrizations replace some of them by other tensors."""
    return {name: getattr(module, name) for name in PARAMETER_NAMES}


@final
class ParameterCache(Generic[Result]):
    """A result that is kept while the parameters that it was computed from have the same values.

    Values are compared, because version counters of tensors do not count the updates of fused optimizers and writes
    through `.data`. Nothing is kept where derivatives are required, or a transform or parametrization replaces a parameter.
    """

    def __init__(self) -> None:
        self._values: list[Tensor] = []
        self._result: Result | None = None

    def get(self, parameters: list[Tensor], compute: Callable[[], Result]) -> Result:
        """Return the result for the parameters."""
        is_constant = all(type(values) is torch.nn.Parameter for values in parameters)
        if not is_constant or (torch.is_grad_enabled() and any(values.requires_grad for values in parameters)):
            return compute()
        if self._result is None or not all(map(torch.equal, parameters, self._values)):
            with torch.inference_mode(False), torch.no_grad():  # tensors of inference mode cannot be used outside of it
                self._result, self._values = compute(), [values.detach().clone() for values in parameters]
        return self._result


def build_system(tensors: Mapping[str, Tensor]) -> TensorSystem:
    """Build the system of the parameters; differentiable in all of them."""
    decays = tensors["decay_at_start"] * relative_exp(tensors["log_decay"], tensors["log_decay_at_start"])
    above = tensors["above_at_start"] * relative_exp(tensors["log_above"], tensors["log_above_at_start"])
    below = tensors["below_at_start"] * relative_exp(tensors["log_below"], tensors["log_below_at_start"])
    rates = torch.cat([-decays, tensors["held_rates"]]).index_select(0, tensors["place_of_rates"])
    n_pairs = tensors["frequency"].shape[-1]
    indices = [tensors[f"{_BLOCK_INDEX_PREFIX}{number}"] for number in range(n_block_sizes(tensors))]
    n_reals = tensors["B"].shape[-2] - 2 * n_pairs - sum(index.shape[0] * index.shape[1] for index in indices)
    pool = torch.cat([rates[n_pairs + n_reals :], above, below, tensors["couplings"], torch.zeros_like(rates[:1])])
    return TensorSystem(
        pair_rates=rates[:n_pairs],
        frequencies=tensors["frequency"],
        real_rates=rates[n_pairs : n_pairs + n_reals],
        blocks=tuple(pool[index] for index in indices),
        B=tensors["B"],
        C=tensors["C"],
        D=tensors["D"],
    )


def poles_of(system: TensorSystem) -> Tensor:
    """Return the poles as complex numbers, both of each pair, without derivatives."""
    with torch.no_grad():
        pairs = torch.complex(system.pair_rates, system.frequencies)
        blocks = [torch.linalg.eigvals(F).flatten(-2) for F in system.blocks]
        return torch.cat([pairs, pairs.conj(), system.real_rates.to(pairs.dtype), *blocks], -1)


def describe_poles(system: TensorSystem, n_systems: int = 1) -> str:
    """Return the kinds and the range of the poles in words, for several systems side by side those of each."""
    layout, poles = system.layout, poles_of(system)
    kinds = {"pair": layout.n_pairs, "real": layout.n_reals}
    kinds |= {f"coupled {size}×{size} block": count for count, size in layout.groups}
    parts = [format_count(count // n_systems, kind) for kind, count in kinds.items() if count]
    states = format_count(layout.n_states // n_systems, "state")
    if not parts:
        return states
    low, high, fastest = float(poles.real.min()), float(poles.real.max()), float(poles.imag.max())
    return f"{states} ({', '.join(parts)}), poles with real parts {low:.3g} … {high:.3g}, frequencies up to {fastest:.3g} rad/s"


def describe_parameters(module: torch.nn.Module) -> str:
    """Return the numbers of parameters and of those that are trained."""
    count = sum(values.numel() for values in module.parameters())
    trained = sum(values.numel() for values in module.parameters() if values.requires_grad)
    return f"{count:,} parameters, {'all' if trained == count else f'{trained:,}'} trained"


def n_block_sizes(tensors: Mapping[str, Tensor]) -> int:
    """Return the number of different sizes of coupled blocks."""
    return sum(name.startswith(_BLOCK_INDEX_PREFIX) for name in tensors)


def relative_exp(log: Tensor, log_at_start: Tensor) -> Tensor:
    """Return e^{p − p₀}, with the change of p limited to ±LOG_RANGE."""
    return torch.exp((log - log_at_start).clamp(-LOG_RANGE, LOG_RANGE))


def _diagonal_entries(packed: PackedSystem) -> tuple[Array, Array]:
    """Return Re λ of all poles, pairs once, and the magnitudes |λ|: pairs, reals, then those of blocks."""
    blocks = [block for group in packed.groups for block in group]
    rates = [block.F.diagonal()[np.array(block.starts, dtype=np.intp)] for block in blocks]
    sizes = [np.repeat(np.abs(np.linalg.eigvals(block.F)).max(), len(block.starts)) for block in blocks]
    pairs = packed.pair_rates
    return (
        np.concatenate([pairs.real, packed.real_rates, *rates]),
        np.concatenate([np.abs(pairs), np.abs(packed.real_rates), *sizes]),
    )


def _block_entries(packed: PackedSystem) -> tuple[Array, Array, Array, list[NDArray[np.int64]]]:
    """Return b and c of pairs [[a, b], [c, a]], couplings, and for each size the index of every entry in the pool.

    The pool consists of the diagonals of all blocks (pairs once), the b and the c of all pairs, couplings, and a zero.
    """
    blocks = [block for group in packed.groups for block in group]
    n_items = sum(len(block.starts) for block in blocks)
    n_pairs = sum(block.sizes.count(2) for block in blocks)
    is_coupling = [_couplings(block.F, block.starts) for block in blocks]
    couplings = np.concatenate([np.zeros(0), *(block.F[mask] for block, mask in zip(blocks, is_coupling, strict=True))])
    zero = n_items + 2 * n_pairs + len(couplings)
    item, pair, coupling = 0, 0, n_items + 2 * n_pairs
    above, below, entries = [], [], []
    for block, mask in zip(blocks, is_coupling, strict=True):
        index = np.full(block.F.shape, zero, dtype=np.int64)
        index[mask] = coupling + np.arange(mask.sum())
        coupling += int(mask.sum())
        for start, size in zip(block.starts, block.sizes, strict=True):
            for row in range(start, start + size):
                index[row, row] = item
            item += 1
            if size == 2:
                index[start, start + 1], index[start + 1, start] = n_items + pair, n_items + n_pairs + pair
                above.append(block.F[start, start + 1])
                below.append(block.F[start + 1, start])
                pair += 1
        entries.append(index)
    counts = np.cumsum([0, *(len(group) for group in packed.groups)])
    grouped = [np.stack(entries[start:stop]) for start, stop in pairwise(counts)]
    return np.array(above), np.array(below), couplings, grouped


def _couplings(F: Array, starts: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a mask of the entries above the diagonal pieces; of all entries if there are no pieces."""
    if not starts:
        return np.ones(F.shape, dtype=np.bool_)
    piece = np.searchsorted(starts, np.arange(len(F)), side="right")
    return np.asarray(piece[:, None] < piece[None, :])


def _as_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}
