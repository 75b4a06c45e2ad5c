"""Network files by the library of their format, and their checksum by the rule that the format states."""

import hashlib
import itertools
import json
import struct

import numpy as np
from safetensors.numpy import load


def contents(data: bytes) -> tuple[dict, dict]:
    """The tensors and the description of a file whose checksum is right."""
    tensors = load(data)
    metadata = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]
    assert metadata["format"] == "ltinet-network"
    assert metadata["version"] in ("1", "2", "3")
    digest = hashlib.sha256(metadata["content"].encode())
    for name, array in sorted(tensors.items()):
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode() + np.ascontiguousarray(array).tobytes())
    assert digest.hexdigest() == metadata["sha256"]
    return tensors, json.loads(metadata["content"])


def is_held_by(net, tensors: dict, description: dict) -> bool:
    """Return whether a network holds exactly these numbers."""
    layers = net.layers
    held = {
        "n_neurons": [len(layer.M) for layer in layers],
        "masses": [mass for layer in layers for mass in layer.M.diagonal()],
        "C": [entry for layer in layers for entry in layer.C.ravel()],
        "K": [entry for layer in layers for entry in layer.K.ravel()],
        "E": [row for layer in layers for row in layer.E],
        "V": [row for layer in layers for row in layer.V],
        "Phi": np.hstack([*net.Phi, np.zeros((net.n_outputs, 0))]),
        "Psi": net.Psi,
    }
    form, system = net.form, net.system
    if net.signal_settings.facts != description.get("signal_settings", {}) and not net.signal_settings.is_default:
        return False
    parts = [form is not None, system is not None, system is not None and system.descriptor is not None]
    if parts != [description.get(name, False) for name in ("has_form", "has_system", "has_descriptor")]:
        return False
    if form is not None:
        ends = np.cumsum([0, *form.block_sizes])
        values = np.array([value for part in form.eigenvalues for value in part], dtype=complex)
        held |= {
            "form.block_sizes": form.block_sizes,
            "form.blocks": [x for i, j in itertools.pairwise(ends) for x in form.A[i:j, i:j].ravel()],
            "form.T": form.T,
            "form.T_inv": form.T_inv,
            "form.original": form.original,
            "form.scaling": form.scaling,
            "form.eigenvalues": np.stack([values.real, values.imag], axis=1),
        }
        held |= _system(net)
        if _names(net) != description.get("names", {}):
            return False
        facts = [form.budget, [list(pair) for pair in form.candidates], list(form.decisions)]
        if facts != [description[name] for name in ("budget", "seen", "remarks")]:
            return False
    return set(held) == set(tensors) and all(
        np.array_equal(np.array(held[name], tensors[name].dtype).reshape(tensors[name].shape), tensors[name])
        for name in tensors
    )


def _names(net) -> dict:
    """The names that somebody gave, by kind, as JSON has them."""
    given = {} if net.system is None else net.system.matrices.names.by_kind
    return {kind: list(names) for kind, names in given.items()}


def _system(net) -> dict:
    """The system as it was given, and its B and C in the coordinates of the blocks."""
    if net.system is None:
        return {}
    E, A, B = net.system.descriptor or (None, net.system.A, net.system.B)
    held = {"system.A": A, "system.B": B, "system.C": net.system.C, "system.D": net.system.D}
    return held | {"blocks.B": net.blocks.B, "blocks.C": net.blocks.C} | ({} if E is None else {"system.E": E})
