"""What sets clusters apart, and the names made from it."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.areas.traits import Namer, describe_columns, traits, words_of

ANIMALS, TOOLS = ("cat", "dog", "horse"), ("hammer", "saw", "drill")


def texts(rng: np.random.Generator, labels: np.ndarray) -> list[str]:
    """Texts of two clusters: a frequent word, two less frequent ones, rare words, and words of all texts."""
    out = []
    for label in labels:
        own = (ANIMALS, TOOLS)[label]
        words = [own[0]] * (rng.random() < 0.9) + [own[1]] * (rng.random() < 0.45) + [own[2]] * (rng.random() < 0.3)
        words += [f"rare{rng.integers(60)}", "common", "the"]
        out.append(" ".join(rng.permutation(words)))
    return out


@pytest.fixture
def labels() -> np.ndarray:
    return np.repeat([0, 1], 150).astype(np.int32)


def test_words_without_stop_words_and_pairs_of_adjacent_words() -> None:
    assert words_of("The Shared library, of C++ users") == ["shared", "library", "shared library", "c++"]
    assert words_of("") == []


def test_words_of_the_majority_come_first_and_rare_words_are_left_out(
    labels: np.ndarray, global_random_seed: int
) -> None:
    columns = {"text": texts(np.random.default_rng(global_random_seed), labels)}
    names = Namer(describe_columns(columns, len(labels))).names(labels, 2)
    assert names == ["cat, dog, horse", "hammer, saw, drill"]


def test_names_differ_from_the_parent_and_from_each_other(global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    fine = np.repeat([0, 1, 2, 3], 100).astype(np.int32)
    coarse = (fine // 2).astype(np.int32)
    kinds = (("python", "web"), ("python", "numbers"), ("perl", "web"), ("perl", "numbers"))
    entries = [f"{' '.join(rng.permutation(kinds[one]))} word{rng.integers(80)} tool" for one in fine]
    namer = Namer(describe_columns({"text": entries}, len(fine)))
    above = namer.names(coarse, 2)
    assert [name.split(", ")[0] for name in above] == ["python", "perl"]
    parent = np.array([0, 0, 1, 1], np.int32)
    below = namer.names(fine, 4, parent, (coarse, above), around=[{above[a]} for a in parent])
    assert len(set(below)) == 4
    assert not set(below) & set(above)
    assert below == ["web", "numbers", "web, perl", "numbers, perl"]


def test_names_of_areas_around_and_names_that_are_kept_are_not_given_again(labels: np.ndarray) -> None:
    entries = [("cat, dog" if label else "hammer, saw") + f" filler{a}" for a, label in enumerate(labels)]
    entries = [f"{one}, hammer, saw" if a >= 150 and a % 10 == 0 else one for a, one in enumerate(entries)]
    namer = Namer(describe_columns({"text": entries}, len(labels)))
    free = namer.names(labels, 2)
    assert free == ["hammer, saw", "cat, dog"]
    assert namer.names(labels, 2, around=[{free[0], "tools"}, {"animals"}]) == ["", "cat, dog"]
    assert namer.names(labels, 2, kept={1: free[0]}) == ["", free[0]]


def test_a_word_of_few_rows_names_nothing(labels: np.ndarray) -> None:
    # every tenth row of the first cluster says cat, every fifteenth of the second says dog
    entries = [f"filler{a} " + ("cat" if a % (15 if label else 10) == 0 else "") for a, label in enumerate(labels)]
    entries = [one.replace("cat", "dog") if label else one for one, label in zip(entries, labels, strict=True)]
    assert Namer(describe_columns({"text": entries}, len(labels))).names(labels, 2) == ["cat", ""]


def test_two_words_that_always_stand_together_are_one_name(labels: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    entries = [
        ("support vector machine" if label else "random forest") + f" filler{rng.integers(80)} method"
        for label in labels
    ]
    names = Namer(describe_columns({"text": entries}, len(labels))).names(labels, 2)
    assert names[0] == "random forest"
    assert names[1] in ("support vector", "vector machine")


def test_categories_and_numbers_name_clusters_without_texts(labels: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "kind": np.where(labels == 0, "left", "right"),
        "height": labels + rng.normal(size=len(labels)) / 9,
        "id": [f"a{i}" for i in range(len(labels))],
    }
    assert Namer(describe_columns(columns, len(labels))).names(labels, 2) == ["left", "right"]
    del columns["kind"]
    assert Namer(describe_columns(columns, len(labels))).names(labels, 2) == ["low height", "high height"]


def test_effects_are_those_of_cohen(labels: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    heights = labels * 2.0 + rng.normal(size=len(labels))
    kinds = np.where((np.arange(300) % 10 < 7) == (labels == 1), "a", "b")
    found = traits(describe_columns({"height": heights, "kind": kinds}, len(labels)), labels, 2)
    number = next(one for one in found[1] if one.kind == "number")
    own, other = heights[labels == 1], heights[labels == 0]
    pooled = np.sqrt((own.var() * len(own) + other.var() * len(other)) / (len(labels) - 2))
    assert number.effect == pytest.approx((own.mean() - other.mean()) / pooled)
    assert number.value == "high height"
    category = next(one for one in found[1] if one.kind == "category")
    assert (category.value, category.inside, category.outside) == ("a", pytest.approx(0.7), pytest.approx(0.3))
    assert category.effect == pytest.approx(2 * np.arcsin(np.sqrt(0.7)) - 2 * np.arcsin(np.sqrt(0.3)))


def test_missing_entries_and_columns_without_content_are_no_traits(labels: np.ndarray) -> None:
    columns = {"empty": [None] * 300, "same": ["x"] * 300, "some": [None, 1.0, float("nan")] * 100}
    described = describe_columns(columns, 300)
    assert [one.column for one in described] == ["some"]
    assert traits(described, labels, 2) == [[], []]
    assert Namer(described).names(labels, 2) == ["", ""]


def test_columns_must_have_an_entry_for_each_row() -> None:
    with pytest.raises(ValueError, match="column 'text' must have one entry for each of the 5 rows, got 3"):
        describe_columns({"text": ["a", "b", "c"]}, 5)


def test_numbers_letters_and_truth_values_are_named_with_their_column(labels: np.ndarray) -> None:
    for given, names in (
        (("0", "1"), ["louvain 0", "louvain 1"]),
        (("True", "False"), ["louvain True", "louvain False"]),
        (("B", "T"), ["louvain B", "louvain T"]),
        (("G1 phase", "NK"), ["G1 phase", "NK"]),
    ):
        columns = {"louvain": np.where(labels == 0, *given).tolist()}
        assert Namer(describe_columns(columns, len(labels))).names(labels, 2) == names


def test_a_rare_word_does_not_stand_for_what_nearly_all_rows_have() -> None:
    fine = np.repeat([0, 1, 2, 3, 3, 3], 100).astype(np.int32)
    coarse = (fine == 3).astype(np.int32)
    # three clusters say python; of the third, a tenth says code
    kinds = ("python, web", "python, numbers", "python", "perl, old")
    entries = [
        f"{kinds[one]}, filler{a}, tool" + (", code" if one == 2 and a % 10 == 0 else "") for a, one in enumerate(fine)
    ]
    namer = Namer(describe_columns({"text": entries}, len(fine)))
    parents, above = np.array([0, 0, 0, 1], np.int32), ["python", "perl"]
    assert namer.names(fine, 4, parents, (coarse, above), {3: "perl"}) == ["web", "numbers", "python, code", "perl"]


def test_spellings_of_one_word_are_not_repeated_in_a_name(labels: np.ndarray) -> None:
    entries = [
        ("command line command-line" if label else "desktop window") + f" filler{a}" for a, label in enumerate(labels)
    ]
    names = Namer(describe_columns({"text": entries}, len(labels))).names(labels, 2)
    assert names[1] in ("command line", "command-line")


def test_a_name_is_kept_only_while_the_rows_have_its_words(labels: np.ndarray) -> None:
    entries = [("cat" if label else "hammer") + f" filler{a}" for a, label in enumerate(labels)]
    namer = Namer(describe_columns({"text": entries}, len(labels)))
    assert namer.names(labels, 2, kept={0: "hammer", 1: "hammer"}) == ["hammer", "cat"]
    assert namer.names(labels, 2, kept={1: "given by a person"}) == ["hammer", "given by a person"]
