"""Fits of Dask arrays on threads: the local map, whatever the chunks; refusals; results in parts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from cluster.conftest import Rows
from scipy.sparse import csr_matrix

import vicinal
from vicinal import TSNE, UMAP, find_neighbors
from vicinal.cluster import fitted, start, store
from vicinal.cluster import layout as edges
from vicinal.cluster import neighbors as sizes
from vicinal.cluster.graph import component_labels, joined_labels
from vicinal.cluster.store import Stored
from vicinal.neighbors.metrics import METRICS

EPOCHS = 4


def array(rows: Any, chunk: int = 700) -> Any:
    return da.from_array(rows, chunks=(chunk, -1))


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({}, ()),
        ({"metric": "cosine"}, ()),
        ({"init": "random", "n_components": 3}, ()),
        ({"n_epochs": [2, EPOCHS]}, ()),
        ({}, ("y",)),
        ({}, ("sample_weight",)),
    ],
    ids=str,
)
def test_small_data_has_the_local_map(grouped: Any, parameters: dict[str, Any], arguments: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    given = {"y": rng.integers(-1, 3, size=1300), "sample_weight": rng.uniform(0.5, 2, size=1300)}
    given = {name: given[name] for name in arguments}
    rows, made = grouped(1300, 6), {"n_epochs": EPOCHS, "random_state": 1, **parameters}
    local, spread = UMAP(**made).fit(rows, **given), UMAP(**made).fit(array(rows, 600), **given)
    assert spread.embedding_.chunks[0] == (600, 600, 100)
    np.testing.assert_array_equal(spread.embedding_.compute(), local.embedding_)
    assert (spread.graph_.compute() != local.graph_).nnz == 0
    np.testing.assert_array_equal(
        np.asarray(spread.embedding_list_[0]) if "n_epochs" in parameters else 0,
        local.embedding_list_[0] if "n_epochs" in parameters else 0,
    )
    assert (spread.n_epochs_, spread.init_used_) == (local.n_epochs_, local.init_used_)


@pytest.mark.usefixtures("many_cells")
def test_chunks_parts_and_threads_do_not_matter(clustered: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(chunk: int, **parameters: Any) -> list[Any]:
        model = UMAP(n_epochs=EPOCHS, random_state=1, **parameters).fit(array(clustered, chunk))
        found = model.map_.neighbors
        return [found.index, found.distance, model.graph_.compute().data, model.embedding_]

    expected = fitted(1000)
    monkeypatch.setattr(sizes, "PART_WORK", 5e6)  # three parts
    monkeypatch.setattr(edges, "SWEEP_ROWS", 8192)  # two of them are swept together
    for chunk, parameters in ((777, {"n_jobs": 1}), (9000, {"memory_limit": "1GB"})):
        for ours, theirs in zip(fitted(chunk, **parameters), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    places = np.asarray(expected[3])
    assert np.isfinite(places).all()
    assert (places[[17, 4500]] == places[5]).all()


@pytest.mark.usefixtures("many_cells")
def test_map_by_cells_is_as_good_as_the_local_one(clustered: Rows) -> None:
    from vicinal.quality import trustworthiness

    rows, made = clustered[:3000], {"n_epochs": 50, "random_state": 1}
    local, spread = UMAP(**made).fit(rows), UMAP(**made).fit(array(rows, 2000))
    assert (local.init_used_, spread.init_used_) == ("pca", "pca of groups")
    scores = [trustworthiness(rows, np.asarray(model.embedding_)) for model in (local, spread)]
    assert scores[1] > scores[0] - 0.01
    exact = find_neighbors(rows, 15, method="exact")
    assert np.mean(np.asarray(spread.map_.neighbors.distance) <= exact.distance[:, -1:] * 1.0001) > 0.98


@pytest.mark.usefixtures("many_cells")
def test_groups_of_many_rows_are_laid_out_first(clustered: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    from vicinal.pipeline import arrangement, recipe
    from vicinal.quality.losses import effective_loss

    for module in (arrangement, recipe):
        monkeypatch.setattr(module, "LARGE_ROWS", 2000)
    rows = clustered[:3000]
    local, spread = (UMAP(random_state=1).fit(given) for given in (rows, array(rows, 2000)))
    assert (local.init_used_, spread.init_used_) == ("spectral", "spectral of groups")
    assert local.n_epochs_ == spread.n_epochs_ == recipe.ARRANGED_EPOCHS
    graph, kernel = local.map_.graph, local.map_.recipe.plan.forces.kernel
    losses = [effective_loss(graph, np.asarray(model.embedding_), kernel).value for model in (local, spread)]
    assert losses[1] < 1.015 * losses[0]


@pytest.mark.usefixtures("many_cells")
def test_separate_clusters_start_apart() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(12, size=3000)
    rows = (100 * rng.normal(size=(12, 30))[label] + rng.normal(size=(3000, 30))).astype(np.float32)
    places = np.asarray(UMAP(n_epochs=0, random_state=1).fit(array(rows)).embedding_)
    near = find_neighbors(places, 2, method="exact").index[:, 1]
    assert np.mean(label[near] == label) > 0.99


@pytest.mark.usefixtures("many_cells")
def test_a_sheet_starts_in_its_proportions(rolled: Any) -> None:
    rows, _ = rolled(6000)
    places = np.asarray(UMAP(n_epochs=0, random_state=1).fit(array(rows)).embedding_)
    local = UMAP(n_epochs=0, random_state=1).fit(rows).embedding_
    assert np.ptp(local[:, 0]) > 2 * np.ptp(local[:, 1])
    np.testing.assert_allclose(np.ptp(places, axis=0), np.ptp(local, axis=0), rtol=0.02)
    for axis in range(2):
        assert abs(np.corrcoef(places[:, axis], local[:, axis])[0, 1]) > 0.9


def test_groups_do_not_join_components() -> None:
    table = [Stored({"landmark": np.zeros(6, np.int32)})]

    def part(first: int, tails: list[list[int]]) -> tuple[Stored, int, int]:
        ends = np.array([len(row) for row in tails])
        indices = np.array([tail for row in tails for tail in row], np.int32)
        arrays = {"indptr": np.concatenate([[0], np.cumsum(ends)]), "indices": indices}
        return Stored(arrays | dict.fromkeys(("weights", "rho", "sigma"), indices)), first, first + len(tails)

    parts = [part(0, [[1], [0, 2]]), part(2, [[1], []]), part(4, [[5], [4]])]
    whole = component_labels(parts, 6)
    assert whole.tolist() == [0, 0, 0, 3, 4, 4]
    folded = joined_labels(component_labels(parts[::2], 6), component_labels(parts[1:2], 6))
    assert folded.tolist() == whole.tolist()
    assert start._groups(table, whole, None).of_row.tolist() == [0, 0, 0, 1, 2, 2]


def test_sparse_blocks(grouped: Any) -> None:
    dense = grouped(900, 20)
    rows = csr_matrix(np.where(np.abs(dense) > 1, dense, 0))
    blocks = [da.from_delayed(dask.delayed(rows[a : a + 300]), shape=(300, 20), meta=rows[:0]) for a in (0, 300, 600)]
    made = {"n_epochs": EPOCHS, "random_state": 1}
    spread = UMAP(**made).fit(da.concatenate(blocks))
    np.testing.assert_array_equal(spread.embedding_.compute(), UMAP(**made).fit(rows).embedding_)


def test_graph_only(grouped: Any) -> None:
    rows = grouped(800, 5)
    model = UMAP(transform_mode="graph", random_state=0)
    spread = model.fit_transform(array(rows, 300))
    assert (spread.compute() != UMAP(transform_mode="graph", random_state=0).fit_transform(rows)).nnz == 0


def test_find_neighbors(grouped: Any) -> None:
    rows = grouped(1200, 5)
    found, expected = find_neighbors(array(rows, 500), 7, metric="cosine"), find_neighbors(rows, 7, metric="cosine")
    np.testing.assert_array_equal(found.index.compute(), expected.index)
    np.testing.assert_array_equal(found.distance.compute(), expected.distance)
    with pytest.raises(ValueError, match="method must be"):
        find_neighbors(array(rows), 7, method="exact")


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_neighbors_transformer(grouped: Any, mode: str) -> None:
    rows, unseen = grouped(900, 5), grouped(40, 5, seed=1)
    local, spread = (vicinal.KNeighborsTransformer(n_neighbors=6, mode=mode) for _ in range(2))
    expected = local.fit_transform(rows)
    graph = spread.fit_transform(array(rows, 400))
    assert graph.chunks[0] == (400, 400, 100)
    assert (graph.compute() != expected).nnz == 0
    assert (spread.transform(unseen) != local.transform(unseen)).nnz == 0
    assert (spread.transform(array(unseen, 15)).compute() != local.transform(unseen)).nnz == 0
    with pytest.raises(ValueError, match="algorithm"):
        vicinal.KNeighborsTransformer(algorithm="exact").fit(array(rows))


def test_transform_maps_over_blocks(grouped: Any) -> None:
    rows, unseen = grouped(1200, 5), grouped(330, 5, seed=1)
    for model in (UMAP(n_epochs=EPOCHS, random_state=0), vicinal.TSNE(max_iter=20, random_state=0)):
        model.fit(rows)
        placed = model.transform(array(unseen, 77))
        assert placed.chunks[0][:2] == (77, 77)
        np.testing.assert_array_equal(placed.compute(), model.transform(unseen))
    spread = UMAP(n_epochs=EPOCHS, random_state=0).fit(array(rows, 500))
    local = UMAP(n_epochs=EPOCHS, random_state=0).fit(rows)
    np.testing.assert_array_equal(spread.transform(array(unseen, 77)).compute(), local.transform(unseen))
    assert "gathered" not in vars(spread.map_)  # a task has joined the parts, this process has not
    np.testing.assert_array_equal(spread.transform(unseen), local.transform(unseen))
    np.testing.assert_array_equal(spread.transform(rows[:5]), local.embedding_[:5])


def test_saved_model_is_a_local_one(grouped: Any, tmp_path: Path) -> None:
    rows = grouped(800, 5)
    model = UMAP(n_epochs=EPOCHS, random_state=0).fit(array(rows, 300))
    model.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_.compute())
    np.testing.assert_array_equal(loaded.transform(rows[:3] + 0.1), model.transform(rows[:3] + 0.1))


def test_callback_sees_the_map_and_can_stop(grouped: Any) -> None:
    seen = []

    def watch(stage: str, epoch: int, n_epochs: int, embedding: Any) -> bool:
        if stage == "layout":
            seen.append((epoch, n_epochs, embedding.shape))
        return stage == "layout" and epoch == 2

    model = UMAP(n_epochs=20, random_state=0, callback=watch).fit(array(grouped(800, 5), 300))
    assert seen == [(1, 20, (800, 2)), (2, 20, (800, 2))]
    assert model.n_epochs_ == 2


def bad_row(value: float) -> Any:
    rows = np.zeros((1000, 4), np.float32)
    rows[612, 2] = value
    return array(rows, 300)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_values_are_named_by_chunk_and_row(value: float, what: str) -> None:
    with pytest.raises(ValueError, match=rf"{what}.* row 612 \(chunk 2, row 12 of it\)"):
        UMAP(n_epochs=1).fit(bad_row(value))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"metric": "jaccard"}, "metric must be"),
        ({"metric": "precomputed"}, "metric must be"),
        ({"unique": True}, "unique"),
        ({"device": "cuda"}, "device must be"),
        ({"update_negatives": True}, "update_negatives"),
        ({"output_metric": "haversine"}, "output_metric"),
        ({"precomputed_knn": (np.zeros((4, 2)), np.zeros((4, 2)))}, "precomputed_knn"),
    ],
)
def test_what_needs_all_rows_is_refused_before_any_work(parameters: dict[str, Any], words: str) -> None:
    never = da.from_delayed(dask.delayed(lambda: 1 / 0)(), shape=(1000, 4), dtype=np.float32)
    with pytest.raises(ValueError, match=words):
        UMAP(**parameters).fit(never)


def test_bad_arrays_are_refused_before_any_work() -> None:
    def never(shape: Any, dtype: Any = np.float32) -> Any:
        return da.from_delayed(dask.delayed(lambda: 1 / 0)(), shape=shape, dtype=dtype)

    for X, words in (
        (never((1000,)), "2-D"),
        (never((np.nan, 3)), "compute_chunk_sizes"),
        (never((10, 3), np.complex64), "real numbers"),
        (never((2**31, 3)), "at most 2147483647"),
        (never((1, 3)), "at least two rows"),
    ):
        with pytest.raises(ValueError, match=words):
            UMAP().fit(X)
    with pytest.raises(ValueError, match="lay_out: t-SNE"):
        TSNE().fit(never((1000, 3)))
    with pytest.raises(ValueError, match=r"sample_weight .* row 3"):
        UMAP().fit(never((10, 3)), sample_weight=[1, 2, 1, 0, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="target_metric"):
        UMAP(target_metric="euclidean").fit(never((10, 3)), np.arange(10))
    for shape, limit in (((10**6, 3), "100MB"), ((10**5, 4000), "900MB")):  # too many rows, cells of too wide rows
        with pytest.raises(MemoryError, match="memory_limit"):
            UMAP(memory_limit=limit).fit(da.rechunk(never(shape), (100, -1)))


def test_files_are_removed_with_the_results_and_after_errors(grouped: Any, tmp_path: Path) -> None:
    rows = grouped(600, 4)
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        model = UMAP(n_epochs=1).fit(array(rows, 300))
        graph = model.graph_
        del model
        assert graph.compute().nnz
        del graph
        assert os.listdir(tmp_path) == []
        with pytest.raises(ValueError, match="NaN"):
            UMAP(n_epochs=1).fit(bad_row(np.nan))
        assert os.listdir(tmp_path) == []


def test_full_disk_is_one_clear_error(grouped: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.np, "save", full)
    model = UMAP(n_epochs=1)
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        pytest.raises(OSError, match=r"vicinal-.*could not be written: No space left"),
    ):
        model.fit(array(grouped(600, 4), 300))
    assert os.listdir(tmp_path) == []
    assert not hasattr(model, "map_")


def test_accepted_metrics_exist() -> None:
    assert set(fitted.CLUSTER_METRICS) <= set(METRICS)
