"""Identification with everything decided: one subspace model of a given order, against the libraries that give one."""

import numpy as np

import ltinet
from benchmarks.identify_monte_carlo import clean_fit, modes, simulated
from benchmarks.peers.subspace import PEERS, Array, Model, SubspacePeer
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import repeat, take_turns

_SAMPLES, _CHANNELS, _ORDER, _BLOCK_ROWS = 4800, 4, 9, 15
_NOISE = 0.1  # of the outputs


def measure(settings: Settings) -> list[Table]:
    """One row per library."""
    u, y, clean = _record(_SAMPLES // 4 if settings.quick else _SAMPLES)
    own = repeat(lambda: _ours(u, y), effort=settings.pair)
    first: dict[str, Cell] = {"peer": "ltinet", "seconds": own.as_cell(), "ratio": 1.0}
    rows = [{**first, "fit": clean_fit(_ours(u, y), u, clean)}]
    rows += [_row(peer, u, y, clean, settings) for peer in PEERS]
    columns = {
        "peer": "library",
        "seconds": "s",
        "ratio": "library / ltinet",
        "fit": "fit to the clean output, %",
    }
    note = (
        f"{len(u):,} samples of {_CHANNELS} inputs and {_CHANNELS} outputs with {100 * _NOISE:.0f} % of white noise, "
        f"order {_ORDER} given, {_BLOCK_ROWS} block rows, MOESP (nfoursid: N4SID), nothing refined; larger ratios: "
        "ltinet is faster. ltinet's time has the way to continuous time in it, which the others do not go. SLICOT is "
        "IB01AD, IB01BD and IB01CD of ctrlsys, as ltinet with B and D from the simulated output; SIPPY and nfoursid "
        "take them from the data matrices."
    )
    return [Table("identification", "Identification", note, columns, rows)]


def _row(peer: SubspacePeer, u: Array, y: Array, clean: Array, settings: Settings) -> dict[str, Cell]:
    if not peer.is_installed:
        return {"peer": peer.name, "seconds": None, "ratio": "not installed", "fit": None}
    model = peer.identify(u, y, _ORDER, _BLOCK_ROWS)
    pair = take_turns(lambda: _ours(u, y), lambda: peer.identify(u, y, _ORDER, _BLOCK_ROWS), effort=settings.slow)
    return {
        "peer": peer.name,
        "seconds": pair.peer.as_cell(),
        "ratio": pair.ratio.as_cell(),
        "fit": clean_fit(model, u, clean),
    }


def _ours(u: Array, y: Array) -> Model:
    found = ltinet.identify(
        u, y, dt=1.0, order=_ORDER, method="moesp", block_rows=_BLOCK_ROWS, trend="none", delay=0, refine=False
    )
    own = found.discrete
    return own.A, own.B, own.C, own.D


def _record(n_samples: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(9)
    A = modes(rng, _ORDER)
    B, C = rng.standard_normal((_ORDER, _CHANNELS)), rng.standard_normal((_CHANNELS, _ORDER))
    u = rng.standard_normal((n_samples, _CHANNELS))
    clean = simulated(A, B, C, np.zeros((_CHANNELS, _CHANNELS)), u)
    return u, clean + _NOISE * clean.std(axis=0) * rng.standard_normal(clean.shape), clean
