"""Valid `.npz` archives, and changes to the arrays inside of them."""

import io
import zipfile

import numpy as np

from fuzz.mat_files import PLAIN, A, B, C
from fuzz.mutations import BINARY, TEXT, Generator, mutate


def npz_seeds() -> list[bytes]:
    """Of many types and orders, compressed and not, with things beside the matrices."""
    every = [PLAIN, {"A": np.asfortranarray(A), "B": B.astype(">f8"), "C": C.astype(np.float32), "dt": np.array(0)}]
    every.append(
        {"A": np.int32([[-1, 2], [3, -4]]), "B": np.array([True, False]), "C": np.uint8([1, 2]), "D": np.array(0)}
    )
    every.append({"A": A, "B": B, "C": C, "note": np.array("text"), "z": np.array([1j])})
    return [_saved(np.savez_compressed if packed else np.savez, arrays) for arrays in every for packed in (False, True)]


def change_npz(data: bytes, rng: Generator) -> bytes:
    """Two of three changes are made inside of an array, whose archive is then made anew with the right checksum."""
    if not rng.integers(3):
        return mutate(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    at = int(rng.integers(len(members)))
    name, content, packing = members[at]
    if rng.integers(2):  # the header, which is text
        end = 10 + int.from_bytes(content[8:10], "little")
        head = mutate(content[10:end], rng, TEXT)
        head = head.ljust(end - 10) if rng.integers(4) else head
        length = len(head) if rng.integers(4) else int(rng.integers(2**16))
        content = content[:8] + min(length, 65535).to_bytes(2, "little") + head + content[end:]
    else:
        content = mutate(content, rng, BINARY)
    members[at] = (name, content, packing)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content, packing in members:
            archive.writestr(name, content, compress_type=packing)
    return stream.getvalue()


def _saved(save, arrays) -> bytes:
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()
