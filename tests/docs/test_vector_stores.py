"""The examples of the guide to vector stores run, and write the positions back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vicinal

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "vector_stores.md"
N = 40


def example(store: str) -> str:
    """Return the Python example below a heading."""
    found = re.search(rf"^### {store}\n.*?^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert found is not None
    assert len(found[1].splitlines()) <= 5
    return found[1]


def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(3, 4))[rng.integers(3, size=N)] * 5 + rng.normal(size=(N, 4))).astype(np.float32)


def test_every_store_has_an_example_of_five_lines() -> None:
    for store in ("DuckDB", "Lance", "pgvector", "Qdrant"):
        compile(example(store), store, "exec")


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    con, X = duckdb.connect(), vectors()
    con.execute("CREATE TABLE papers (id INTEGER, vector FLOAT[4], title VARCHAR)")
    con.executemany("INSERT INTO papers VALUES (?, ?, 'a')", [(i, X[i].tolist()) for i in reversed(range(N))])
    exec(example("DuckDB"), {"con": con, "vicinal": vicinal})
    stored = con.sql("SELECT x, y FROM papers JOIN places USING (id) ORDER BY id").fetchnumpy()
    expected = vicinal.UMAP(random_state=0).fit_transform(X)
    np.testing.assert_array_equal(np.stack([stored["x"], stored["y"]], axis=1), expected)


def test_lance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X = vectors()
    monkeypatch.chdir(tmp_path)
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.reshape(-1)), 4)
    lance.write_dataset(pyarrow.table({"id": np.arange(N), "vector": column}), "papers.lance")
    exec(example("Lance"), {"lance": lance, "pyarrow": pyarrow, "vicinal": vicinal})
    stored = lance.dataset("papers.lance").to_table()
    expected = vicinal.UMAP(random_state=0).fit_transform(X)
    np.testing.assert_array_equal(np.stack([stored["x"], stored["y"]], axis=1), expected)


def test_qdrant() -> None:
    qdrant: Any = pytest.importorskip("qdrant_client", reason="qdrant_client is not installed")
    client, X = qdrant.QdrantClient(":memory:"), vectors()
    models = qdrant.models
    client.create_collection("papers", vectors_config=models.VectorParams(size=4, distance=models.Distance.EUCLID))
    client.upsert("papers", [models.PointStruct(id=i, vector=X[i].tolist()) for i in range(N)])
    exec(example("Qdrant"), {"client": client, "vicinal": vicinal})
    points, _ = client.scroll("papers", limit=N, with_vectors=True)
    given = np.array([point.vector for point in points])
    stored = np.array([[point.payload["x"], point.payload["y"]] for point in points], dtype=np.float32)
    np.testing.assert_array_equal(stored, vicinal.UMAP(random_state=0).fit_transform(given))
