"""Files of models and networks with products: exact round trips, files of other programs, and damaged files."""

import json

import numpy as np
import pytest
import scipy.io
from safetensors.numpy import load_file, save_file
from scipy import sparse

import ltinet


def models():
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(3, 3)) - 4.0 * np.eye(3), rng.normal(size=(3, 2)), rng.normal(size=(1, 3))
    N, H = [rng.normal(size=(3, 3)), None], rng.normal(size=(3, 9))
    return {
        "bilinear": ltinet.Bilinear(A, B, C, N=N, inputs=["a", "b"], input_delay=0.5, u0=[1.0, 0.0], hold="zero"),
        "lpv": ltinet.LPV(A, B, C, A_p=[H[:, :3], None], C_p=[None, C], scheduling=["speed", "load"]),
        "quadratic": ltinet.QuadraticBilinear(sparse.csr_array(A), B, C, N=N, H=H),
    }


@pytest.mark.parametrize("suffix", ["npz", "mat"])
@pytest.mark.parametrize("kind", ["bilinear", "lpv", "quadratic"])
def test_models_are_restored(kind, suffix, tmp_path):
    model = models()[kind]
    path = tmp_path / f"model.{suffix}"
    ltinet.save_system(model, path)
    restored = ltinet.load_system(path)
    assert restored == model
    assert restored.linear.input_names == model.linear.input_names
    assert restored.scheduling_names == model.scheduling_names
    assert restored.linear.signal_settings == model.linear.signal_settings


def test_files_of_other_programs(tmp_path):
    model = models()["quadratic"]
    H = model.H.toarray()
    matrices = {"A": model.A, "B": model.B, "C": model.C}
    stacked = np.hstack([N.toarray() for N in model.N])
    three_axes = np.stack([N.toarray() for N in model.N])
    np.savez(tmp_path / "stacked.npz", **matrices, N=stacked, H=H)
    np.savez(tmp_path / "axes.npz", **matrices, N=three_axes, H=H)
    scipy.io.savemat(tmp_path / "model.mat", {**matrices, "N": stacked, "H": sparse.csc_array(H)})
    for name in ("stacked.npz", "axes.npz", "model.mat"):
        other = ltinet.load_system(tmp_path / name)
        assert np.allclose(other.H.toarray(), H, rtol=1e-14)
        assert all((one != two).nnz == 0 for one, two in zip(other.N, model.N, strict=True))
    np.savez(tmp_path / "bilinear.npz", **matrices, N=stacked)
    assert isinstance(ltinet.load_system(tmp_path / "bilinear.npz"), ltinet.Bilinear)
    np.savez(tmp_path / "lpv.npz", **matrices, A_p=stacked)
    assert ltinet.load_system(tmp_path / "lpv.npz").n_scheduling == 2


def test_faulty_model_files(tmp_path):
    model = models()["bilinear"]
    matrices = {"A": model.A, "B": model.B, "C": model.C}
    stacked = np.ones((3, 6))
    for more, message in (
        ({"N": np.ones((3, 5)), "H": np.ones((3, 9))}, "N has shape"),
        ({"H": np.ones((3, 5)), "N": stacked}, "H has shape"),
        ({"A_p": stacked, "B_p": np.ones((3, 5))}, "B_p has shape"),
        ({"N": np.full((3, 6), np.nan)}, "not finite"),
        ({"ModelClass": np.array(["Other"])}, "class is 'Other'"),
    ):
        np.savez(tmp_path / "model.npz", **matrices, **more)
        with pytest.raises(ltinet.FileFormatError, match=message):
            ltinet.load_system(tmp_path / "model.npz")


@pytest.mark.parametrize("kind", ["bilinear", "lpv", "quadratic"])
def test_networks_are_restored(kind, tmp_path):
    net = ltinet.construct(models()[kind])
    net.save(tmp_path / "net.safetensors")
    restored = ltinet.load(tmp_path / "net.safetensors")
    assert restored == net
    t, rng = np.linspace(0.0, 1.0, 11), np.random.default_rng(1)
    u, p = rng.normal(size=(11, 2)), rng.normal(size=(11, 2)) if net.n_scheduling else None
    assert np.array_equal(restored.simulate(u, t, p=p).y, net.simulate(u, t, p=p).y)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("products.N0.indices", lambda array: array + 7),
        ("products.N0.indptr", lambda array: array[::-1]),
        ("products.N0.shape", lambda array: array * 1_000_000),
        ("products.N0.data", lambda array: array * np.nan),
        ("products.S.shape", lambda array: array + 1),
        ("products.J.data", lambda _: None),
        ("products.Q.data", lambda _: np.ones(1)),
        ("Psi", lambda array: array + np.inf),
    ],
)
def test_damaged_networks_are_refused_even_with_a_valid_checksum(name, damage, tmp_path):
    path = tmp_path / "net.safetensors"
    ltinet.construct(models()["quadratic"]).save(path)
    tensors = load_file(path)
    changed = damage(tensors.get(name, np.zeros(0)))
    if changed is None:
        del tensors[name]
    else:
        tensors[name] = np.ascontiguousarray(changed)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    from ltinet.network.file_format import checksum

    save_file(tensors, path, metadata={**metadata, "sha256": checksum(metadata["content"], tensors)})
    with pytest.raises(ltinet.FileFormatError, match="does not hold a complete network"):
        ltinet.load(path)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize(
    ("others", "kind"),
    [
        ({"N": np.eye(2)}, "Bilinear"),
        ({"H": np.ones((2, 4))}, "QuadraticBilinear"),
        ({"A_p": np.ones((2, 6))}, "LPV"),
        ({"N": 100.0}, "StateSpace"),
        ({"H": np.eye(2)}, "StateSpace"),
        ({"N": "a note", "A_p": np.ones((2, 3))}, "StateSpace"),
    ],
)
def test_shapes_tell_products_from_other_variables(tmp_path, suffix, others, kind):
    path = tmp_path / f"model{suffix}"
    content = {"A": -np.eye(2), "B": np.ones((2, 1)), "C": np.ones((1, 2)), **others}
    if suffix == ".npz":
        np.savez(path, **content)
    else:
        scipy.io.savemat(path, content)
    assert type(ltinet.load_system(path)).__name__ == kind


def test_products_in_a_struct(tmp_path):
    content = {"A": -np.eye(2), "B": np.ones((2, 1)), "C": np.ones((1, 2)), "N": [[0.0, 1.0], [2.0, 3.0]]}
    scipy.io.savemat(tmp_path / "model.mat", {"sys": content})
    assert ltinet.load_system(tmp_path / "model.mat").N[0].toarray().tolist() == content["N"]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", ["bilinear", "lpv", "quadratic"])
def test_descriptor_matrix_multiplies_products(kind, is_sparse, tmp_path):
    rng, model = np.random.default_rng(2), models()[kind]
    E = np.diag([2.0, 3.0, 5.0]) + 0.1 * rng.normal(size=(3, 3))
    kept = sparse.csc_array if is_sparse else np.asarray
    content = {"A": kept(E @ model.A), "B": E @ model.B, "C": np.array(model.C), "E": kept(E)}
    for name in ("N", "A_p", "B_p", "C_p"):
        parts = [np.asarray(part.toarray() if sparse.issparse(part) else part) for part in getattr(model.terms, name)]
        if parts:
            content[name] = np.hstack(parts if name == "C_p" else [E @ part for part in parts])
    if kind == "quadratic":
        content["H"] = E @ model.H.toarray()
    scipy.io.savemat(tmp_path / "model.mat", content)
    restored = ltinet.load_system(tmp_path / "model.mat")
    x, u = rng.normal(size=3), rng.normal(size=2)
    p = rng.normal(size=2) if kind == "lpv" else None
    expected = ltinet.Bilinear(model.A, model.B, model.C, N=list(model.N)) if kind == "bilinear" else model
    assert np.allclose(restored.derivative(x, u, p), expected.derivative(x, u, p), rtol=1e-13)


def test_commands_refuse_models_with_products(tmp_path):
    from ltinet.cli.sources import read_any_model, read_system, read_system_or_network

    path = tmp_path / "model.npz"
    ltinet.save_system(models()["lpv"], path)
    ltinet.construct(models()["lpv"]).save(tmp_path / "net.safetensors")
    for read in (read_system, read_system_or_network):
        for name in (str(path), "example:burgers,n_states=5"):
            with pytest.raises(ltinet.FileFormatError, match=r"for linear models; use Python"):
                read(name)
    with pytest.raises(ltinet.FileFormatError, match="for linear models"):
        read_system_or_network(str(tmp_path / "net.safetensors"))
    assert read_any_model(str(path)) == models()["lpv"]
