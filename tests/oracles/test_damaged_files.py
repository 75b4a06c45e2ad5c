"""Hypothesis: a damaged network file loads as what it was or raises ltinet's own error, and saving leaves no half file.

2,000 files: cut off, bits flipped anywhere, in the header and in its length, parts of two files put together, other
metadata, other types, future versions, foreign files, and files whose checksum was forged to match.
"""

import errno
import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

import ltinet
from ltinet._util import atomic_files
from network_examples import random_network


def saved(net, path):
    net.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Three networks and their files: coupled, with pairs, and one without a form."""
    folder = tmp_path_factory.mktemp("originals")
    nets = [
        ltinet.construct(ltinet.named_system("triangular")),
        ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=3)),
        ltinet.DynamicNetwork(random_network(((1, 2), (2,)), 2, 1)),
    ]
    return [(net, saved(net, folder / str(index))) for index, net in enumerate(nets)]


def header_end(data):
    return 8 + struct.unpack("<Q", data[:8])[0]


def header_of(data):
    return json.loads(data[8 : header_end(data)])


def with_header(header, payload):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + payload


def flipped(data, bits):
    damaged = bytearray(data)
    for bit in bits:
        damaged[bit // 8] ^= 1 << (bit % 8)
    return bytes(damaged)


def truncated(data, rng, _):
    return data[: rng.integers(len(data))]


def flipped_anywhere(data, rng, _):
    return flipped(data, rng.integers(8 * len(data), size=rng.integers(1, 4)))


def flipped_in_header(data, rng, _):
    return flipped(data, [rng.integers(8 * header_end(data))])


def flipped_in_header_length(data, rng, _):
    return flipped(data, [rng.integers(64)])


def header_of_another(data, _, other):
    return other[: header_end(other)] + data[header_end(data) :]


def metadata_of_another(data, _, other):
    header = header_of(data) | {"__metadata__": header_of(other)["__metadata__"]}
    return with_header(header, data[header_end(data) :])


def tensors_exchanged(data, rng, _):
    header = header_of(data)
    first, second = rng.choice(sorted(set(header) - {"__metadata__"}), 2, replace=False)
    header[first], header[second] = header[second], header[first]
    return with_header(header, data[header_end(data) :])


def other_metadata(data, rng, _):
    header = header_of(data)
    key = rng.choice([*header["__metadata__"], "author"])
    values = ["", "0", "2", "99999999999999999999", "{}", "[]", "null", "\N{SNOWMAN}", "a" * 64]
    header["__metadata__"][str(key)] = str(rng.choice(values))
    return with_header(header, data[header_end(data) :])


def no_metadata(data, _, __):
    header = header_of(data)
    del header["__metadata__"]
    return with_header(header, data[header_end(data) :])


def other_dtype(data, rng, _):
    header = header_of(data)
    name = rng.choice(sorted(set(header) - {"__metadata__"}))
    header[name]["dtype"] = str(rng.choice(["U64", "F32", "F16", "BF16", "BOOL", "F8_E4M3", "X9", "C64"]))
    return with_header(header, data[header_end(data) :])


def other_shape(data, rng, _):
    header = header_of(data)
    name = rng.choice(sorted(set(header) - {"__metadata__"}))
    shape = header[name]["shape"]
    header[name]["shape"] = ([*shape, 1], [1, *shape], [*shape, 0], [*shape, 2])[rng.integers(4)]  # two of equal size
    return with_header(header, data[header_end(data) :])


def bytes_removed_or_added(data, rng, _):
    at, count = int(rng.integers(len(data))), int(rng.integers(1, 17))
    return data[:at] + (data[at + count :] if rng.integers(2) else rng.bytes(count) + data[at:])


def garbage(data, rng, _):
    return rng.bytes(int(rng.integers(len(data))))


DAMAGES = (
    truncated,
    flipped_anywhere,
    flipped_in_header,
    flipped_in_header_length,
    header_of_another,
    metadata_of_another,
    tensors_exchanged,
    other_metadata,
    no_metadata,
    other_dtype,
    other_shape,
    bytes_removed_or_added,
    garbage,
)
PER_DAMAGE = 154  # 13 × 154 = 2002


def test_there_are_two_thousand():
    assert len(DAMAGES) * PER_DAMAGE >= 2000


def same(found, original):
    """Equal in the network and in everything that the form holds."""
    if found != original or (found.form is None) != (original.form is None):
        return False
    if original.form is None:
        return True
    names = ("A", "T", "T_inv", "scaling", "original")
    mine, theirs = found.form, original.form
    arrays = [(getattr(mine, name), getattr(theirs, name)) for name in names]
    arrays += list(zip(mine.eigenvalues, theirs.eigenvalues, strict=True))
    facts = [(form.block_sizes, form.budget, form.candidates, form.decisions) for form in (mine, theirs)]
    return all(np.array_equal(a, b) for a, b in arrays) and facts[0] == facts[1]


def loads_or_says(path, data, original):
    """True if the file still holds the original, False if ltinet refuses it with a reason; anything else fails."""
    path.write_bytes(data)
    try:
        found = ltinet.load(path)
    except ltinet.FileFormatError:
        return False
    assert same(found, original)
    return True


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_refused_or_harmless(originals, tmp_path, damage):
    rng = np.random.default_rng(DAMAGES.index(damage))
    loaded = 0
    for index in range(PER_DAMAGE):
        (net, data), (_, other) = originals[index % 3], originals[(index + 1) % 3]
        loaded += loads_or_says(tmp_path / "net", damage(data, rng, other), net)
    # A new author, or bits that JSON does not care for, do no harm; nothing else may pass.
    assert loaded == 0 or damage in (other_metadata, flipped_in_header, flipped_anywhere, tensors_exchanged)
    assert loaded < PER_DAMAGE // 3


def test_every_single_bit_of_the_data_is_watched(originals, tmp_path):
    net, data = originals[2]
    for bit in range(8 * header_end(data), 8 * len(data), 7):
        assert not loads_or_says(tmp_path / "net", flipped(data, [bit]), net)


def test_the_file_itself_loads(originals, tmp_path):
    for net, data in originals:
        assert loads_or_says(tmp_path / "net", data, net)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a readable safetensors file"),
        (b"A = [[1, 2], [3, 4]]\n", "not a readable safetensors file"),
        (b"\x80\x04\x95cposix\nsystem\n", "not a readable safetensors file"),
        (struct.pack("<Q", 2**63) + b"{}", "not a readable safetensors file"),
        (struct.pack("<Q", 8) + b"[" * 8, "not a readable safetensors file"),
        (serialise({"weights": np.zeros(3)}), "not an ltinet network"),
        (with_header({"__metadata__": {"format": "pt"}}, b""), "not an ltinet network"),
        (with_header({"__metadata__": {"format": "ltinet-network", "version": "5"}}, b""), "upgrade ltinet"),
        (with_header({"__metadata__": {"format": "ltinet-network"}}, b""), "version ''"),
        (with_header({"__metadata__": {"format": "ltinet-network", "version": "1"}}, b""), "checksum"),
    ],
    ids=["empty", "text", "pickle", "endless", "brackets", "foreign", "pytorch", "future", "no version", "hollow"],
)
def test_other_files_are_refused_for_their_own_reason(tmp_path, data, message):
    (tmp_path / "net").write_bytes(data)
    with pytest.raises(ltinet.FileFormatError, match=message):
        ltinet.load(tmp_path / "net")


def forged(data, change):
    """The file with a change to its content and a checksum that matches, by the rule that the format documents."""
    metadata, tensors = header_of(data)["__metadata__"], parse(data)
    description = json.loads(metadata["content"])
    description = change(description, tensors) or description
    content = json.dumps(description, sort_keys=True)
    digest = hashlib.sha256(content.encode() + hashed(tensors)).hexdigest()
    return serialise(tensors, metadata | {"content": content, "sha256": digest})


def hashed(tensors):
    """What the checksum is taken of, besides the description."""
    arrays = [(name, np.ascontiguousarray(tensors[name])) for name in sorted(tensors)]
    return b"".join(f"|{name}|{array.dtype.str}|{array.shape}|".encode() + array.tobytes() for name, array in arrays)


def assign(tensors, name, value):
    tensors[name] = value


FORGERIES = {
    "single precision": lambda _, t: assign(t, "E", t["E"].astype(np.float32)),
    "counts as floats": lambda _, t: assign(t, "n_neurons", t["n_neurons"].astype(float)),
    "negative counts": lambda _, t: assign(t, "n_neurons", -t["n_neurons"]),
    "huge counts": lambda _, t: assign(t, "n_neurons", np.full_like(t["n_neurons"], 2**40)),
    "huge blocks": lambda _, t: assign(t, "form.block_sizes", np.full_like(t["form.block_sizes"], 2**40)),
    "a tensor too many": lambda _, t: assign(t, "more", np.zeros(1)),
    "a row too many": lambda _, t: assign(t, "E", np.vstack([t["E"], t["E"][:1]])),
    "entries too many": lambda _, t: assign(t, "K", np.append(t["K"], 1.0)),
    "a column too many": lambda _, t: assign(t, "Phi", np.hstack([t["Phi"], t["Phi"][:, :1]])),
    "outputs too many": lambda _, t: assign(t, "Psi", np.vstack([t["Psi"], t["Psi"]])),
    "no axes": lambda _, t: assign(t, "Psi", np.array(1.0)),
    "not a number": lambda _, t: assign(t, "K", t["K"] * np.nan),
    "not a number in T": lambda _, t: assign(t, "form.T", t["form.T"] * np.nan),
    "infinite T⁻¹": lambda _, t: assign(t, "form.T_inv", t["form.T_inv"] + np.inf),
    "another T⁻¹": lambda _, t: assign(t, "form.T_inv", 1.001 * t["form.T_inv"]),
    "T⁻¹ transposed": lambda _, t: assign(t, "form.T_inv", np.ascontiguousarray(t["form.T_inv"].T)),
    "scaling by nothing": lambda _, t: assign(t, "form.scaling", 0.0 * t["form.scaling"]),
    "scaling by NaN": lambda _, t: assign(t, "form.scaling", np.nan * t["form.scaling"]),
    "negative scaling": lambda _, t: assign(t, "form.scaling", -t["form.scaling"]),
    "scaling by three": lambda _, t: assign(t, "form.scaling", 3.0 * t["form.scaling"]),
    "an infinite original": lambda _, t: assign(t, "form.original", t["form.original"] + np.inf),
    "eigenvalues without partners": lambda _, t: assign(t, "form.eigenvalues", t["form.eigenvalues"] + 1.0),
    "blocks of no size": lambda _, t: assign(t, "form.block_sizes", 0 * t["form.block_sizes"]),
    "other blocks": lambda _, t: assign(t, "form.block_sizes", t["form.block_sizes"][::-1].copy()),
    "tiny masses": lambda _, t: assign(t, "masses", np.full_like(t["masses"], 5e-324)),
    "one tiny damping": lambda _, t: assign(t, "C", np.where(t["C"] == 1.0, 1e-310, t["C"])),
    "a loop": lambda _, t: assign(t, "C", np.ones_like(t["C"])),
    "no equation": lambda _, t: assign(t, "C", np.zeros_like(t["C"])),
    "T of another size": lambda _, t: assign(t, "form.T", np.eye(3)),
    "no T": lambda _, t: t.pop("form.T") is None,
    "no K": lambda _, t: t.pop("K") is None,
    "no description": lambda *_: [1, 2, 3],
    "a text": lambda *_: "text",
    "no budget": lambda d, _: {key: d[key] for key in d if key != "budget"},
    "a text as budget": lambda d, _: d | {"budget": "<script>"},
    "a budget below one": lambda d, _: d | {"budget": 0.5},
    "a budget that is no number": lambda d, _: d | {"budget": np.nan},
    "true as budget": lambda d, _: d | {"budget": True},
    "infinitely many blocks seen": lambda d, _: d | {"seen": [[np.inf, 1.0]]},
    "half a block seen": lambda d, _: d | {"seen": [[1.5, 1.0]]},
    "conditions that are no number": lambda d, _: d | {"seen": [[1, np.nan]]},
    "conditions as text": lambda d, _: d | {"seen": [[1, "2"]]},
    "more blocks than memory": lambda d, _: d | {"seen": [[10**400, 2.0]]},
    "remarks for a terminal": lambda d, _: d | {"remarks": ["\x1b[2J"]},
    "endless remarks": lambda d, _: d | {"remarks": ["a" * 10**6]},
    "more facts": lambda d, _: d | {"author": "somebody"},
    "a form or not": lambda d, _: d | {"has_form": 1},
    "no form": lambda d, _: d | {"has_form": False},
    "a strange search": lambda d, _: d | {"seen": [1, 2]},
    "no remarks": lambda d, _: d | {"remarks": None},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_right_checksum_does_not_make_a_network(originals, tmp_path, name):
    (tmp_path / "net").write_bytes(forged(originals[0][1], FORGERIES[name]))
    with pytest.raises(ltinet.FileFormatError, match=r"does not hold a complete network|networks have F64 and I64"):
        ltinet.load(tmp_path / "net")


def test_what_is_said_twice_is_refused(originals, tmp_path):
    """Readers differ in which of two they take, so that one file would be two networks."""
    net, data = originals[0]
    text = data[8 : header_end(data)].decode()
    twice = text.replace('"Psi":', '"Psi":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},"Psi":').encode()
    assert not loads_or_says(tmp_path / "net", struct.pack("<Q", len(twice)) + twice + data[header_end(data) :], net)
    metadata = header_of(data)["__metadata__"]
    content = metadata["content"].replace('{"budget"', '{"budget": 3.0, "budget"')
    digest = hashlib.sha256(content.encode() + hashed(parse(data))).hexdigest()
    forgery = serialise(parse(data), metadata | {"content": content, "sha256": digest})
    (tmp_path / "net").write_bytes(forgery)
    with pytest.raises(ltinet.FileFormatError, match="same key twice"):
        ltinet.load(tmp_path / "net")


def test_gaps_and_overlaps_between_tensors_are_refused(originals, tmp_path):
    net, data = originals[0]
    payload = data[header_end(data) :]
    for change in (8, -8):
        header = header_of(data)
        header["Psi"]["data_offsets"] = [place + change for place in header["Psi"]["data_offsets"]]
        assert not loads_or_says(tmp_path / "net", with_header(header, payload), net)
    assert not loads_or_says(tmp_path / "net", with_header(header_of(data), payload + bytes(8)), net)


def test_a_network_larger_than_allowed_is_refused_with_the_way_out(originals, tmp_path):
    net, data = originals[0]
    (tmp_path / "net").write_bytes(data)
    with pytest.raises(ltinet.FileFormatError, match=r"max_bytes allows 1 kB; .* allow more: max_bytes=\d+") as caught:
        ltinet.load(tmp_path / "net", max_bytes=1000)
    enough = int(str(caught.value).rpartition("=")[2])
    assert enough < 2 * len(data)
    assert same(ltinet.load(tmp_path / "net", max_bytes=enough), net)
    for nonsense in (-1, "2", None, np.nan, True):
        with pytest.raises(ltinet.FileFormatError, match="max_bytes is"):
            ltinet.load(tmp_path / "net", max_bytes=nonsense)


def test_names_of_tensors_are_shown_without_control_characters(originals, tmp_path):
    tensors = {f"\x1b[31m{index}": np.zeros(1, dtype=np.float32) for index in range(3)}
    metadata = header_of(originals[0][1])["__metadata__"]
    for change in ({}, {"version": "\x1b]0;title\x07"}):
        (tmp_path / "net").write_bytes(serialise(tensors, metadata | change))
        with pytest.raises(ltinet.FileFormatError) as caught:
            ltinet.load(tmp_path / "net")
        assert str(caught.value).isprintable()


def test_the_forger_can_forge(originals, tmp_path):
    # Without a change the forged file is the network itself: the tests above refuse what they claim to.
    net, data = originals[0]
    assert loads_or_says(tmp_path / "net", forged(data, lambda *_: None), net)


def fail_in_the_middle(descriptor, data):
    if len(data) > 1000:
        return WRITE(descriptor, data[:1000])
    raise OSError(errno.ENOSPC, "No space left on device")


def refuse(*_, **__):
    raise PermissionError(errno.EACCES, "Permission denied")


def interrupt(*_, **__):
    raise KeyboardInterrupt


WRITE = os.write
NAMELESS = hasattr(os, "O_TMPFILE")
WAYS = pytest.mark.parametrize(
    "nameless", [pytest.param(True, marks=pytest.mark.skipif(not NAMELESS, reason="")), False]
)


def without_nameless_files(patch, nameless):
    """Let the file system know no files without a name, as some do not."""
    if not nameless:
        patch.delattr(atomic_files.os, "O_TMPFILE", raising=False)


@WAYS
@pytest.mark.parametrize(
    ("name", "replacement", "expected"),
    [
        ("write", fail_in_the_middle, ltinet.FileFormatError),
        ("write", interrupt, KeyboardInterrupt),
        ("fsync", refuse, ltinet.FileFormatError),
        ("replace", refuse, ltinet.FileFormatError),
        ("replace", interrupt, KeyboardInterrupt),
        ("open", refuse, ltinet.FileFormatError),
    ],
    ids=["disk full", "interrupted", "flush refused", "rename refused", "rename interrupted", "folder closed"],
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    originals, tmp_path, monkeypatch, name, replacement, expected, nameless
):
    (old, _), (new, _) = originals[:2]
    old.save(tmp_path / "net")
    with monkeypatch.context() as patch:
        without_nameless_files(patch, nameless)
        patch.setattr(atomic_files.os, name, replacement)
        with pytest.raises(expected):
            new.save(tmp_path / "net")
    assert os.listdir(tmp_path) == ["net"]
    assert same(ltinet.load(tmp_path / "net"), old)


# One process for all of them. Those come last that may leave files, and that need a system without nameless files.
STOPS = [("SIGTERM", "nameless"), ("SIGHUP", "nameless"), ("SIGKILL", "nameless"), ("SIGKILL", "named")]
STOPPING = """
import json, os, signal, sys, time
import ltinet
path = sys.argv[1]
net = ltinet.construct(([[-2.0]], [[1.0]], [[1.0]]))
for name, way in json.loads(sys.argv[2]):
    number = getattr(signal, name)
    if way == "named":
        vars(os).pop("O_TMPFILE", None)
    # Signals may be ignored where the tests run in the background, and a child would ignore them too.
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    net.save(path)
    for attempt in range(40):
        child = os.fork()
        if child == 0:
            while True:
                net.save(path)
        time.sleep(0.002 + 0.0003 * attempt)
        os.kill(child, number)
        _, status = os.waitpid(child, 0)
        ltinet.load(path)
        left = sorted(set(os.listdir(os.path.dirname(path))) - {"net"})
        print(json.dumps([name, os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, left]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that can be stopped at any moment are forked")
def test_a_stopped_process_leaves_a_whole_network_and_no_litter(tmp_path):
    """Stopped forty times at any moment of saving, on which it spends nearly all of its time."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", STOPPING, str(tmp_path / "net"), json.dumps(STOPS)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    names, stopped, left = zip(*map(json.loads, done.stdout.splitlines()), strict=True)
    assert list(names) == [name for name, _ in STOPS for _ in range(40)]
    assert all(stopped)
    if NAMELESS:  # a signal that cannot be made to wait may come between two renames
        assert not any(files for name, files in zip(names, left, strict=True) if name != "SIGKILL")


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@WAYS
def test_a_replaced_file_keeps_its_permissions_and_a_new_one_follows_the_umask(
    originals, tmp_path, monkeypatch, nameless
):
    without_nameless_files(monkeypatch, nameless)
    net, path = originals[0][0], tmp_path / "net"
    before = os.umask(0o027)
    try:
        net.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o644, 0o666, 0o400):
            path.chmod(mode)
            net.save(path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_two_saves_are_the_same_bytes(originals, tmp_path):
    for net, data in originals:
        loaded = [saved(net, tmp_path / str(index)) for index in range(6)]
        assert set(loaded) == {data}
        again = ltinet.load(tmp_path / "0")
        assert saved(again, tmp_path / "again") == data


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_not_replaced_by_a_file(originals):
    with pytest.raises(ltinet.FileFormatError, match="choose another place"):
        originals[0][0].save("/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_missing_folder_is_named(originals, tmp_path):
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        originals[0][0].save(tmp_path / "missing" / "net")
    assert os.listdir(tmp_path) == []


def test_nothing_is_pickled(originals):
    for _, data in originals:
        assert b"pickle" not in data
        assert b"numpy" not in data
