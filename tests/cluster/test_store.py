"""Results that are kept: as files or in memory, whole or in pieces for other tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from vicinal.cluster.engine import picked
from vicinal.cluster.store import Store, joined_piece_rows, joined_pieces

LINES = np.zeros(7, np.dtype([("row", np.int32), ("list", (np.float32, 3))]))
LINES["row"], LINES["list"] = np.arange(7), np.arange(21).reshape(7, 3)
BOUNDS = np.array([0, 3, 3, 7])


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(str(tmp_path) if request.param == "files" else None)


def test_slices_of_an_array(store: Store) -> None:
    whole = np.arange(12, dtype=np.float64).reshape(6, 2)
    kept = store.keep("some", {"whole": whole.T.copy().T, "empty": np.empty((0, 4), np.int32)})
    np.testing.assert_array_equal(kept.load("whole"), whole)
    np.testing.assert_array_equal(kept.load("whole", 2, 5), whole[2:5])
    assert kept.load("whole", 3, 3).shape == (0, 2)
    assert kept.load("empty").shape == (0, 4)
    assert (kept.length("whole"), kept.has("whole"), kept.has("other")) == (6, True, False)


def test_pieces_of_several_tasks_are_joined(store: Store) -> None:
    made = [store.pieces(f"lines-{at}", {"lines": LINES}, BOUNDS) for at in range(2)]
    for at, (first, stop) in enumerate(((0, 3), (3, 3), (3, 7))):
        joined = joined_pieces(picked(made, at), "lines")
        np.testing.assert_array_equal(joined, np.concatenate([LINES[first:stop]] * 2))


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_kept_in_another_order(store: Store, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.cluster.store.WRITTEN_BYTES", 32)  # two rows at a time
    dense = np.random.default_rng(0).integers(0, 3, size=(5, 4)).astype(np.float32)
    order = np.array([4, 0, 0, 3, 1, 2, 2])
    made = store.pieces("rows-0", {"number": order}, BOUNDS, csr_matrix(dense) if sparse else dense, order)
    for at, (first, stop) in enumerate(((0, 3), (3, 3), (3, 7))):
        rows = joined_piece_rows(picked([made, made], at))
        expected = np.concatenate([dense[order[first:stop]]] * 2)
        np.testing.assert_array_equal(rows.toarray() if sparse else rows, expected)


def test_files_are_read_not_mapped(tmp_path: Path) -> None:
    kept = Store(str(tmp_path)).keep("some", {"whole": np.arange(100_000)})
    held = kept.load("whole", 10, 90_000)
    assert held[0] == 10
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_truncated_files_and_discarded_kinds(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    kept, other = (store.keep(name, {"whole": np.arange(100)}) for name in ("some-1", "other-1"))
    file = tmp_path / "some-1.whole.npy"
    kept.load("whole")
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(OSError, match=r"some-1.whole.npy ends before entry 100"):
        kept.load("whole")
    store.discard("some")
    assert not file.exists()
    assert other.length("whole") == 100
