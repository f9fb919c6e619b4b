"""Model files: a loaded model equals the saved one bit for bit, and an invalid file raises a clear error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from scipy import sparse

import vicinal
from vicinal import TSNE, UMAP, ModelFileError
from vicinal.files import models as model_io

Rows = NDArray[np.float32]
FAST = {"n_epochs": 10, "n_neighbors": 8, "random_state": 0}


def manhattan(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


def dense(X: Rows) -> tuple[Any, Any]:
    return UMAP(**FAST).fit(X[:150]), X[150:160]


def labeled(X: Rows) -> tuple[Any, Any]:
    return UMAP(**FAST).fit(X[:150], np.array(["a", "b", None], dtype=object)[np.arange(150) % 3]), X[150:160]


def sparse_rows(X: Rows) -> tuple[Any, Any]:
    return UMAP(metric="cosine", **FAST).fit(sparse.csr_matrix(X[:150])), sparse.csr_matrix(X[150:160])


def distances(X: Rows) -> tuple[Any, Any]:
    D = np.abs(X[:160, None] - X[None, :160]).sum(axis=2)
    return UMAP(metric="precomputed", **FAST).fit(D[:150, :150]), D[150:, :150]


def distinct(X: Rows) -> tuple[Any, Any]:
    return UMAP(unique=True, **FAST).fit(np.concatenate([X[:100], X[:50]])), X[150:160]


def with_keywords(X: Rows) -> tuple[Any, Any]:
    keywords = {"p": 3.0, "w": np.linspace(1, 2, 64)}
    return UMAP(metric="wminkowski", metric_kwds=keywords, **FAST).fit(X[:150]), X[150:160]


def approximate(X: Rows) -> tuple[Any, Any]:
    """Above 6,000 rows, a query uses what the search has learned, which must be saved."""
    many = np.concatenate([X + i for i in range(4)])
    model = UMAP(force_approximation_algorithm=True, init="random", **FAST).fit(many[:6500])
    return model, many[6500:6520]


def grown(X: Rows) -> tuple[Any, Any]:
    return UMAP(**FAST).fit(X[:100]).update(X[100:150]), X[150:160]


def composed(X: Rows) -> tuple[Any, Any]:
    left, right = UMAP(**FAST).fit(X[:150, :32]), UMAP(**FAST).fit(X[:150, 32:])
    return left * right, (X[150:160, :32], X[150:160, 32:])


def tsne(X: Rows) -> tuple[Any, Any]:
    return TSNE(perplexity=10, max_iter=50, random_state=0, callbacks=[lambda *_: None]).fit(X[:150]), X[150:160]


KINDS = [tsne, dense, labeled, sparse_rows, distances, distinct, with_keywords, approximate, grown, composed]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_loaded_model_equals_the_saved_one(kind: Any, digits: Rows, tmp_path: Path) -> None:
    model, new = kind(digits)
    expected = model.transform(new)
    model.save(tmp_path / "model")
    loaded = vicinal.load(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    np.testing.assert_array_equal(loaded.transform(new), expected)
    if kind not in (composed, tsne):
        assert str(loaded.get_params()) == str(model.get_params())
        loaded.update(new if kind is not distances else np.zeros((1, 151)))


def test_another_process_transforms_to_the_same_bits(
    digits: Rows, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    model, new = dense(digits)
    model.save(tmp_path / "model")
    np.save(tmp_path / "new.npy", new)
    script = (
        "import sys, numpy as np, vicinal; folder = sys.argv[1]\n"
        "places = vicinal.load(folder + '/model').transform(np.load(folder + '/new.npy'))\n"
        "np.save(folder + '/places.npy', places)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, env=child_environment)
    np.testing.assert_array_equal(np.load(tmp_path / "places.npy"), model.transform(new))


def test_unfitted_model_and_feature_names_are_saved(digits: Rows, tmp_path: Path) -> None:
    import pandas as pd

    UMAP(n_neighbors=7, init=np.zeros((3, 2))).save(tmp_path / "model")
    assert vicinal.load(tmp_path / "model").n_neighbors == 7
    frame = pd.DataFrame(digits[:50], columns=[f"pixel {i}" for i in range(64)])
    UMAP(**FAST).fit(frame).save(tmp_path / "model")
    assert list(vicinal.load(tmp_path / "model").feature_names_in_) == list(frame.columns)


def test_function_parameter_must_be_given_again_on_load(digits: Rows, tmp_path: Path) -> None:
    model = UMAP(metric=manhattan, callback=lambda *_: None, **FAST).fit(digits[:60])
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="manhattan"):
        vicinal.load(tmp_path / "model")
    loaded = vicinal.load(tmp_path / "model", metric=manhattan)
    np.testing.assert_array_equal(loaded.transform(digits[60:65]), model.transform(digits[60:65]))
    assert loaded.callback is None


@pytest.fixture(scope="module")
def whole(digits: Rows, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "model"
    UMAP(**FAST).fit(digits[:60]).save(path)
    return path.read_bytes()


class TestBrokenFiles:
    def refused(self, content: bytes, folder: Path) -> None:
        path = folder / "broken"
        path.write_bytes(content)
        with pytest.raises(ModelFileError):
            vicinal.load(path)

    def test_truncated_file_is_refused(self, whole: bytes, tmp_path: Path) -> None:
        for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
            self.refused(whole[:length], tmp_path)

    def test_changed_bit_is_refused(self, whole: bytes, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        for at in {*range(16), *map(int, rng.integers(len(whole), size=300))}:
            changed = bytearray(whole)
            changed[at] ^= 1 << int(rng.integers(8))
            self.refused(bytes(changed), tmp_path)

    def test_enormous_header_is_refused(self, whole: bytes, tmp_path: Path) -> None:
        self.refused((2**62).to_bytes(8, "little") + whole[8:], tmp_path)

    def test_files_of_other_formats_are_refused(self, tmp_path: Path) -> None:
        import pickle
        import zipfile

        self.refused(pickle.dumps({"a": 1}), tmp_path)
        self.refused(b"PK" + bytes(1000), tmp_path)
        with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as bomb:
            bomb.writestr("x", bytes(10**7))
        self.refused((tmp_path / "bomb").read_bytes(), tmp_path)
        self.refused(to_bytes({"x": np.zeros(3)}), tmp_path)

    def test_missing_file_raises_file_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            vicinal.load(tmp_path / "nothing")

    @pytest.mark.parametrize(
        "forge",
        [
            lambda tree: {"object": "Popen", "id": "m", "params": {"args": "id"}, "state": {}},
            lambda tree: {"object": "os.system", "id": "m", "params": {}, "state": {}},
            lambda tree: tree | {"state": {"__class__": "x"}},
            lambda tree: tree | {"params": {"no_such_parameter": 1}},
            lambda tree: {"object": "Kernel", "id": "m", "params": {"a": 1.0, "b": 1.0}, "state": {}},
            lambda tree: {"list": [1, 2, 3]},
            lambda tree: 7,
            lambda tree: {"array": "not there"},
            lambda tree: {"same": "not there"},
            lambda tree: json.loads('{"list": [' * 100 + "]}" * 100),
        ],
    )
    def test_valid_container_without_a_model_is_refused(self, whole: bytes, tmp_path: Path, forge: Any) -> None:
        """A forged file with a valid checksum can create only objects of our classes."""
        (tmp_path / "model").write_bytes(whole)
        arrays, document = model_io.read_file(tmp_path / "model")
        model_io.write_file(tmp_path / "forged", arrays, {"model": forge(document["model"])})
        with pytest.raises(ModelFileError):
            vicinal.load(tmp_path / "forged")

    def test_edges_out_of_range_are_refused(self, whole: bytes, tmp_path: Path) -> None:
        (tmp_path / "model").write_bytes(whole)
        arrays, document = model_io.read_file(tmp_path / "model")
        name = "UMAP.map_.graph.indices"
        arrays[name] = arrays[name] + 1_000_000
        model_io.write_file(tmp_path / "forged", arrays, document)
        with pytest.raises(ModelFileError):
            vicinal.load(tmp_path / "forged")

    def test_file_is_plain_safetensors(self, whole: bytes) -> None:
        assert from_bytes(whole)["UMAP.map_.embedding"].shape == (60, 2)

    def test_failed_save_leaves_the_old_file(self, whole: bytes, digits: Rows, tmp_path: Path) -> None:
        path = tmp_path / "model"
        path.write_bytes(whole)
        model = UMAP(**FAST).fit(digits[:60])
        model.extra_ = object()
        with pytest.raises(ModelFileError, match="extra_"):
            model.save(path)
        assert path.read_bytes() == whole
        assert list(tmp_path.iterdir()) == [path]
