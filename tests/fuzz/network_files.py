"""Valid network files, and changes to what they hold, with a checksum that matches again."""

import hashlib
import json
import struct

import numpy as np
from safetensors.numpy import load, save

import ltinet
from fuzz.mutations import TEXT, Generator, mutate, pick
from network_examples import random_network

_NUMBERS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e-300, 1e300, 1.7e308, np.nan, np.inf, -np.inf, 0.5, 3.0, 2.0**-1000)
_COUNTS = (0, 1, 2, 3, -1, 5, 100, 2**31, 2**40, 2**62, -(2**63))
_VALUES = (
    None,
    True,
    0,
    -1,
    0.5,
    1e4,
    "1e4",
    "<script>",
    [],
    {},
    [[1, 2.0]],
    [[1.5, 2.0]],
    ["\x1b"],
    {"inputs": ["a", "b"]},
    {"inputs": ["a", "a"]},
    {"outputs": ["\x1b"], "states": None},
    {"inputs": "ab"},
    {"more": ["a"]},
    10**400,
    float("nan"),
)


def network_seeds(folder) -> list[bytes]:
    """With a form and without, coupled, with pairs, with names, a static gain."""
    nets = [
        ltinet.construct(ltinet.named_system("triangular")),
        ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2)),
        ltinet.construct(
            ltinet.StateSpace([[-1.0, 2.0], [0.0, -3.0]], [[1.0], [1.0]], np.eye(2), E=[[2.0, 0.0], [1.0, 1.0]])
        ),
        ltinet.construct(
            ltinet.StateSpace([[-1.0]], [[1.0, 2.0]], [[1.0]], inputs=["Force (N)", "Wärme"], outputs=["y \U0001f600"])
        ),
        ltinet.DynamicNetwork(random_network(((1, 2), (2,)), 2, 1)),
        ltinet.construct(ltinet.StateSpace([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, -2.0]])),
    ]
    files = []
    for net in nets:
        net.save(folder / "seed")
        files.append((folder / "seed").read_bytes())
    return files


def change_network(data: bytes, rng: Generator) -> bytes:
    """Half of the changes are bytes, the others forgeries."""
    if not rng.integers(3):
        return mutate(data, rng)
    end = 8 + struct.unpack("<Q", data[:8])[0]
    metadata, tensors = json.loads(data[8:end])["__metadata__"], dict(load(data))
    content = metadata["content"]
    if not rng.integers(6):  # the header as text
        head = mutate(data[8:end], rng, TEXT)
        return struct.pack("<Q", len(head)) + head + data[end:]
    if not rng.integers(3):
        content = _other_description(content, rng)
    else:
        for _ in range(pick((1, 1, 2), rng)):
            _change_tensor(tensors, rng)
    digest = hashlib.sha256(content.encode("utf-8", "replace"))
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode() + array.tobytes())
    return save(tensors, metadata | {"content": content, "sha256": digest.hexdigest()})


def _other_description(content: str, rng: Generator) -> str:
    if rng.integers(2):
        return mutate(content.encode(), rng, TEXT).decode("utf-8", "replace")
    description = json.loads(content)
    description[pick([*description, "names", "more"], rng)] = pick(_VALUES, rng)
    return json.dumps(description, sort_keys=True)


def _change_tensor(tensors: dict, rng: Generator) -> None:
    name = pick(sorted(tensors), rng)
    array = np.array(tensors[name])
    what = int(rng.integers(8))
    if what < 5 and array.size:
        values = (
            (0, 1)
            if array.dtype.kind == "u"
            else _COUNTS
            if array.dtype.kind == "i"
            else (*_NUMBERS, *map(float, rng.standard_normal(3)))
        )
        for _ in range(pick((1, 1, 3), rng)):
            array.flat[int(rng.integers(array.size))] = pick(values, rng)
    elif what == 5:
        array = np.append(array, array.ravel()[:1]) if array.ndim == 1 else array.T.copy()
    elif what == 6:
        array = array[:-1] if len(array) else np.zeros(1)
    elif rng.integers(2):
        with np.errstate(all="ignore"):
            array = array.astype(pick((np.float32, np.int64, np.float64, np.uint8), rng))
    else:
        del tensors[name]
        return
    tensors[name] = np.ascontiguousarray(array)
