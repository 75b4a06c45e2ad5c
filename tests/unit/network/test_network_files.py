"""Hypothesis: a network file restores every bit of the network and of its form."""

import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import ltinet
from ltinet.errors import FileFormatError
from ltinet.network.file_format import checksum
from ltinet.network.network import Network
from ltinet.network.network_file import StoredNetwork, read_network, write_network
from named_signals import NAMES, named, names_of
from network_examples import random_layer, random_network
from support.tiers import n_examples

ARRAYS = ("A", "T", "T_inv", "scaling", "original")


def bits(network):
    """Return all numbers of a network."""
    matrices = [matrix for layer in network.layers for matrix in layer.matrices]
    return [(matrix.shape, matrix.tobytes()) for matrix in (*matrices, *network.Phi, network.Psi)]


def form_bits(form):
    """Return all fields of a form."""
    if form is None:
        return None
    arrays = [getattr(form, name) for name in ARRAYS] + list(form.eigenvalues)
    # −0.0 outside the blocks of A is stored as 0.0; the forms compare equal.
    return [(array.shape, (array + 0.0).tobytes()) for array in arrays], (
        form.block_sizes,
        form.budget,
        form.candidates,
        form.decisions,
    )


SYSTEMS = {
    "first-order": ltinet.named_system("diffusion", points=3),
    "second-order": ltinet.named_system("mass_spring_damper", n_masses=4),
    "coupled": ltinet.named_system("triangular"),
    "static": ltinet.StateSpace([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, -2.0]]),
    "no inputs": ltinet.StateSpace([[-1.0]], np.zeros((1, 0)), [[1.0]]),
    "extreme": ltinet.StateSpace([[-1e-300, 0.0], [0.0, -1e300]], [[5e-324], [1.0]], [[1.0, 1e308]]),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("choice", [{}, {"n_layers": 1}, {"max_condition": 5.0, "balance": False}], ids=str)
def test_round_trip_gives_back_every_bit(tmp_path, name, choice):
    if name == "static" and "n_layers" in choice:
        choice = {}
    net = ltinet.construct(SYSTEMS[name], **choice)
    net.save(tmp_path / "net.safetensors")
    back = ltinet.load(tmp_path / "net.safetensors")
    assert bits(back.network) == bits(net.network)
    assert form_bits(back.form) == form_bits(net.form)
    assert back == net
    assert str(back) == str(net)


orders = st.lists(st.lists(st.sampled_from([1, 2]), min_size=1, max_size=4), max_size=4)


@settings(
    max_examples=n_examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(orders, st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_networks_from_parameters_alone_round_trip(tmp_path, layers, n_inputs, n_outputs, seed):
    network = random_network(layers, n_inputs, n_outputs, seed)
    write_network(tmp_path / "net", StoredNetwork(network))
    back, form, *_ = read_network(tmp_path / "net")
    assert form is None
    assert bits(back) == bits(network)


def test_a_layer_without_neurons_round_trips(tmp_path):
    network = Network([random_layer([], 1)], [np.zeros((1, 0))], [[1.0]])
    write_network(tmp_path / "net", StoredNetwork(network))
    assert read_network(tmp_path / "net")[0] == network


@pytest.mark.parametrize("max_condition", [np.int64(100), np.float32(100.0), 100, np.inf])
def test_condition_limit_of_any_number_type_is_saved(tmp_path, max_condition):
    net = ltinet.construct(SYSTEMS["coupled"], max_condition=max_condition)
    net.save(tmp_path / "net")
    assert ltinet.load(tmp_path / "net").form.budget == float(max_condition)


def test_loaded_arrays_are_read_only(tmp_path):
    net = ltinet.construct(SYSTEMS["coupled"])
    net.save(tmp_path / "net")
    back = ltinet.load(tmp_path / "net")
    arrays = [getattr(back.form, name) for name in ARRAYS] + [back.form.eigenvalues[0], back.Psi, back.layers[0].K]
    assert not any(array.flags.writeable for array in arrays)


def test_the_file_is_plain_safetensors(tmp_path):
    net = ltinet.construct(SYSTEMS["coupled"])
    net.save(tmp_path / "net.safetensors")
    with safe_open(tmp_path / "net.safetensors", framework="numpy") as file:
        metadata = file.metadata()
        np.testing.assert_array_equal(file.get_tensor("Psi"), net.Psi)
        assert file.get_tensor("E").dtype == np.float64
    assert (metadata["format"], metadata["version"]) == ("ltinet-network", "3")
    assert json.loads(metadata["content"])["has_form"] is True


def test_string_path_replaces_existing_file(tmp_path):
    path = str(tmp_path / "net")
    ltinet.construct(SYSTEMS["coupled"]).save(path)
    other = ltinet.construct(SYSTEMS["first-order"])
    other.save(path)
    assert ltinet.load(path) == other
    assert os.listdir(tmp_path) == ["net"]


def test_a_link_stays_a_link(tmp_path):
    net = ltinet.construct(SYSTEMS["coupled"])
    net.save(tmp_path / "target")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    other = ltinet.construct(SYSTEMS["first-order"])
    other.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ltinet.load(tmp_path / "target") == other


@pytest.mark.parametrize("place", ["no/such/folder/net", "."])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    with pytest.raises(FileFormatError, match="choose another place"):
        ltinet.construct(SYSTEMS["coupled"]).save(tmp_path / place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "message"), [("none", "there is no file"), (".", "is a folder, not a file")])
def test_what_is_no_file_is_named(tmp_path, place, message):
    with pytest.raises(FileFormatError, match=message):
        ltinet.load(tmp_path / place)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_non_files_are_refused_without_blocking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(FileFormatError, match=f"{name} is a {name}, not a file"):
                ltinet.load(name)
            with pytest.raises(FileFormatError, match="choose another place"):
                ltinet.construct(SYSTEMS["coupled"]).save(name)
    with pytest.raises(FileFormatError, match="is a device, not a file"):
        ltinet.load(os.devnull)


@pytest.mark.parametrize("name", ["a" * 300, "loop", "nul\0byte", "esc\x1b[2J/net", 5, None, b"bytes"], ids=repr)
def test_impossible_paths_raise(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    path = tmp_path / name if isinstance(name, str) else name
    net = ltinet.construct(SYSTEMS["coupled"])
    for call in (ltinet.load, net.save):
        with pytest.raises(FileFormatError) as caught:
            call(path)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
    assert os.listdir(tmp_path) == ["loop"]


def test_longest_file_name_is_accepted(tmp_path):
    net = ltinet.construct(SYSTEMS["coupled"])
    net.save(tmp_path / ("a" * 255))
    assert ltinet.load(tmp_path / ("a" * 255)) == net


WRITTEN_BY_0_1_0 = sorted((Path(__file__).parent / "written_by_0_1_0").iterdir())


@pytest.mark.parametrize("path", WRITTEN_BY_0_1_0, ids=lambda path: path.stem)
def test_files_of_the_first_release_still_load(path, tmp_path):
    net = ltinet.load(path)
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        description = json.loads(file.metadata()["content"])
    np.testing.assert_array_equal(net.Psi, tensors["Psi"])
    np.testing.assert_array_equal(np.hstack(net.Phi), tensors["Phi"])
    for name in ("E", "V"):
        np.testing.assert_array_equal(np.vstack([getattr(layer, name) for layer in net.layers]), tensors[name])
    for name in ("C", "K"):
        stored = np.concatenate([getattr(layer, name).ravel() for layer in net.layers])
        np.testing.assert_array_equal(stored, tensors[name])
    assert (net.form is not None) == description["has_form"]
    if net.form is not None:
        for name in ("T", "T_inv", "original", "scaling"):
            np.testing.assert_array_equal(getattr(net.form, name), tensors[f"form.{name}"])
        assert [list(pair) for pair in net.form.candidates] == description["seen"]
    net.save(tmp_path / "again")
    assert ltinet.load(tmp_path / "again") == net


def test_file_of_version_1_has_original_transfer_function():
    path = next(path for path in WRITTEN_BY_0_1_0 if path.stem == "mass_spring_damper")
    system = ltinet.named_system("mass_spring_damper", n_masses=2)
    omega = np.logspace(-2, 2, 20)
    expected = np.array([system.C @ np.linalg.solve(1j * w * np.eye(4) - system.A, system.B) for w in omega])
    # Both are solved in double precision, the one through a T of condition 50 at most.
    np.testing.assert_allclose(ltinet.load(path).frequency_response(omega), expected, rtol=1e-11)


def test_infinite_candidate_conditions_are_stored(tmp_path):
    """A rejected partition may have an infinite condition number: the file is not damaged."""
    net = ltinet.construct(SYSTEMS["coupled"])
    form = replace(net.form, candidates=(*net.form.candidates, (6, np.inf)))
    write_network(tmp_path / "net", StoredNetwork(net.network, form))
    assert read_network(tmp_path / "net")[1].candidates == form.candidates


def test_file_stores_the_system_of_error_bounds(tmp_path):
    """With and without E, the loaded network has the outputs and bounds of the saved one."""
    rng = np.random.default_rng(5)
    A, B, C = rng.standard_normal((6, 6)) - 4.0 * np.eye(6), rng.standard_normal((6, 2)), rng.standard_normal((3, 6))
    u, t = rng.standard_normal((50, 2)), 0.1 * np.arange(50)
    for E in (None, np.eye(6) + 0.1 * rng.standard_normal((6, 6))):
        net = ltinet.construct(ltinet.StateSpace(A, B, C, E=E))
        net.save(tmp_path / "net.safetensors")
        back = ltinet.load(tmp_path / "net.safetensors")
        before, after = net.simulate(u, t), back.simulate(u, t)
        np.testing.assert_array_equal(before.y, after.y)
        np.testing.assert_allclose(before.error_bound(), after.error_bound(), rtol=1e-6)
        assert (back.system.descriptor is None) == (E is None)


def content_of(path):
    return json.loads(header_of(path)["content"])


@pytest.mark.parametrize("kinds", [("inputs",), ("outputs",), ("states",), ("inputs", "outputs", "states")])
def test_a_file_keeps_the_names_that_were_given(tmp_path, kinds):
    system = named(**{kind: None for kind in NAMES if kind not in kinds})
    ltinet.construct(system).save(tmp_path / "net")
    back = ltinet.load(tmp_path / "net")
    assert names_of(back.system) == names_of(system)
    assert (back.input_names, back.output_names) == (system.input_names, system.output_names)
    assert set(content_of(tmp_path / "net")["names"]) == set(kinds)


def test_files_without_names_are_unchanged(tmp_path):
    ltinet.construct(SYSTEMS["coupled"]).save(tmp_path / "net")
    assert "names" not in content_of(tmp_path / "net")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"inputs": ["a"]}, "1 name, but the system has 2 inputs"),
        ({"inputs": ["a", "a"]}, "must be unique"),
        ({"inputs": ["a", 1]}, "must be text"),
        ({"inputs": ["a", "\x1b[2J"]}, "printable characters"),
        ({"outputs": ["y \ud83d"]}, "printable characters"),
        ({"outputs": ["y" * 201]}, "1 to 200 printable characters"),
        ({"outputs": "y"}, "not a list"),
        ({"outputs": None}, "not a list"),
        ({"others": ["y"]}, "not a list for inputs"),
        ({}, "not a list for inputs"),
        (["y"], "not a list for inputs"),
        (None, "not a list for inputs"),
    ],
)
def test_forged_names_are_refused(tmp_path, names, message):
    ltinet.construct(named()).save(tmp_path / "net")
    tensors, metadata = load_file(tmp_path / "net"), header_of(tmp_path / "net")
    content = json.dumps(json.loads(metadata["content"]) | {"names": names})
    save_file(tensors, tmp_path / "net", metadata | {"content": content, "sha256": checksum(content, tensors)})
    with pytest.raises(FileFormatError, match=message):
        ltinet.load(tmp_path / "net")


def rewrite(path, tensors):
    """Replace the tensors of a network file, with a checksum that agrees."""
    metadata = header_of(path)
    save_file(tensors, path, metadata | {"sha256": checksum(metadata["content"], tensors)})


def test_missing_and_additional_tensors_are_refused(tmp_path):
    path = tmp_path / "net"
    ltinet.construct(named()).save(path)
    tensors = load_file(path)
    rewrite(path, tensors | {"extra": np.zeros(3)})
    with pytest.raises(FileFormatError, match="the tensor extra is not part of this format"):
        ltinet.load(path)
    del tensors["Psi"]
    rewrite(path, tensors)
    with pytest.raises(FileFormatError, match="the tensor Psi is missing"):
        ltinet.load(path)


@pytest.mark.parametrize("eigenvalues", [[[-1.0]], [[-1.0, 2.0], [-2.0, -1.0]]])
def test_equations_that_cannot_be_divided_by_their_leading_coefficient_are_refused(tmp_path, eigenvalues):
    path, n = tmp_path / "net", len(eigenvalues)
    ltinet.construct((np.array(eigenvalues), np.full((n, 1), 1e10), np.ones((1, n)))).save(path)
    tensors = load_file(path)
    rewrite(path, tensors | {name: np.where(tensors[name] != 0.0, 1e-305, 0.0) for name in ("masses", "C")})
    with pytest.raises(FileFormatError, match="m or c too small"):
        ltinet.load(path)


@pytest.mark.parametrize("length", range(1, 9))
def test_numbers_begin_at_a_multiple_of_eight_bytes(tmp_path, length):
    path = tmp_path / "net"
    ltinet.construct(ltinet.StateSpace([[-1.0]], [1.0], [1.0], inputs=["u" * length])).save(path)
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0


def test_unpaired_surrogates_are_refused(tmp_path):
    path = tmp_path / "net"
    ltinet.construct(ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], outputs=["y 😀"])).save(path)
    whole, half = rb"\\ud83d", rb"x\ud83d"  # a text within a text: the backslash comes twice
    assert path.read_bytes().count(whole) == 1
    path.write_bytes(path.read_bytes().replace(whole, half))
    with pytest.raises(FileFormatError, match="net is not a readable safetensors file"):
        ltinet.load(path)


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def test_names_without_a_system_are_refused(tmp_path):
    write_network(tmp_path / "net", StoredNetwork(random_network(((1,),), 1, 1)))
    tensors, metadata = load_file(tmp_path / "net"), header_of(tmp_path / "net")
    content = json.dumps(json.loads(metadata["content"]) | {"names": {"inputs": ["u"]}})
    save_file(tensors, tmp_path / "net", metadata | {"content": content, "sha256": checksum(content, tensors)})
    with pytest.raises(FileFormatError, match="has the keys"):
        ltinet.load(tmp_path / "net")
