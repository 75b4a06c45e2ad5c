"""Files of models and networks with products: exact round trips, files of other programs, and damaged files."""

import json
import warnings

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
    restored = ltinet.load_model(path)
    assert restored == model
    assert restored.linear.input_names == model.linear.input_names
    assert restored.scheduling_names == model.scheduling_names
    assert restored.linear.signal_settings == model.linear.signal_settings
    with pytest.raises(ltinet.FileFormatError, match="load_model"):
        ltinet.load_system(path)


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
        other = ltinet.load_model(tmp_path / name)
        assert np.allclose(other.H.toarray(), H, rtol=1e-14)
        assert all((one != two).nnz == 0 for one, two in zip(other.N, model.N, strict=True))
    np.savez(tmp_path / "bilinear.npz", **matrices, N=stacked)
    assert isinstance(ltinet.load_model(tmp_path / "bilinear.npz"), ltinet.Bilinear)
    np.savez(tmp_path / "lpv.npz", **matrices, A_p=stacked)
    assert ltinet.load_model(tmp_path / "lpv.npz").n_scheduling == 2


def test_faulty_model_files(tmp_path):
    model = models()["bilinear"]
    matrices = {"A": model.A, "B": model.B, "C": model.C}
    for more, message in (
        ({}, "load_system"),
        ({"N": np.ones((3, 5))}, "N has shape"),
        ({"H": np.ones((3, 5))}, "H has shape"),
        ({"N": np.full((3, 6), np.nan)}, "not finite"),
        ({"ModelClass": np.array(["Other"])}, "class is 'Other'"),
    ):
        np.savez(tmp_path / "model.npz", **matrices, **more)
        with pytest.raises(ltinet.FileFormatError, match=message):
            ltinet.load_model(tmp_path / "model.npz")


@pytest.mark.parametrize("kind", ["bilinear", "lpv", "quadratic"])
def test_networks_are_restored(kind, tmp_path):
    net = ltinet.construct(models()[kind])
    net.save(tmp_path / "net.safetensors")
    restored = ltinet.load_product_network(tmp_path / "net.safetensors")
    assert restored == net
    t, rng = np.linspace(0.0, 1.0, 11), np.random.default_rng(1)
    u, p = rng.normal(size=(11, 2)), rng.normal(size=(11, 2)) if net.n_scheduling else None
    assert np.array_equal(restored.simulate(u, t, p=p).y, net.simulate(u, t, p=p).y)
    with pytest.raises(ltinet.FileFormatError, match="load_product_network"):
        ltinet.load(tmp_path / "net.safetensors")


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
        ltinet.load_product_network(path)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize(
    ("products", "warns"),
    [({"N": np.eye(2)}, True), ({"H": np.ones((2, 4))}, True), ({"N": 100.0}, False), ({"H": np.eye(2)}, False)],
)
def test_linear_readers_warn_of_products_in_files_of_other_programs(tmp_path, suffix, products, warns):
    path = tmp_path / f"model{suffix}"
    content = {"A": -np.eye(2), "B": np.ones((2, 1)), "C": np.ones((1, 2)), **products}
    if suffix == ".npz":
        np.savez(path, **content)
    else:
        scipy.io.savemat(path, content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ltinet.load_system(path).n_states == 2
    assert [str(warning.message).rpartition("; ")[2] for warning in caught] == (
        ["read the model with ltinet.load_model(path)"] if warns else []
    )
