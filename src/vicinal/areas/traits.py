"""What sets clusters apart: words of texts, categories, and numbers, with effect sizes; and names made from them.

Words are ranked by class-based TF-IDF (Grootendorst 2022, arXiv:2203.05794), counted by rows so that a single long text
does not name its cluster:

    score(word, cluster) = p log(1 + A / f)

p is the share of the cluster's rows that have the word, f the sum of these shares over all clusters of the layer, and A
the mean number of distinct words per cluster, weighted by these shares. Words of the majority come first. Effects are
Cohen's h for shares, 2 asin sqrt(p) - 2 asin sqrt(q), and Cohen's d for numbers; both compare the rows of a cluster
with all other rows, and 0.2, 0.5 and 0.8 are small, medium and large.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.runtime.cached import cached

Floats = NDArray[np.float64]

WORDS_OF_A_NAME = 3
SHORTEST_WORD = 3
# A column with more distinct texts than this has no categories.
MOST_CATEGORIES = 64
MOST_WORDS = 20_000
# A name must set its cluster apart by this much: ratio of shares for words and categories, Cohen's d for numbers.
LEAST_LIFT, LEAST_EFFECT = 1.5, 0.5
# A word must occur in this share of a cluster's rows to be in its name. If no word does, one word of the second share
# is the name; after words of the parent's name, one of the third share is added.
LEAST_SHARE, ALONE_SHARE, RAREST_SHARE = 0.2, 0.1, 0.05
# A word of the parent's name is used again only if its share is this much larger than in the parent.
ABOVE_PARENT = 1.15
# Two words replace one of them if at least this share of its rows have both, side by side.
PAIR_SHARE = 0.8
# Words of shares above this come before all others, if they set the cluster apart.
MAJORITY = 0.5
# Words that are considered for the name of a cluster.
MOST_CANDIDATES = 12
TRUTH_VALUES = frozenset(("true", "false", "yes", "no"))
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about above after again against all also although always am among an and another any are around as at "
        "away back base based be became because become becomes been before behind being below beside besides "
        "between beyond both but by can cannot could did do does doing done down due during each either else enough "
        "etc even ever every few first for from further get gets getting give given gives go goes got had has have "
        "having he hence her here hers herself him himself his how however i if in indeed instead into is it its "
        "itself just keep last least less let like made main mainly make makes making many may me might mine more "
        "moreover most mostly much must my myself near need needs neither never nevertheless new next no nobody "
        "none nor not nothing now of off often on once one only onto or other others otherwise our ours ourselves "
        "out over own per perhaps please provide provided provides providing put quite rather really same say see "
        "seem seems several she should since so some somehow someone something sometimes still such take than that "
        "the their theirs them themselves then there thereby therefore these they this those though three through "
        "throughout thus to together too toward towards two under unless until up upon us use used useful user "
        "users uses using various very via was way we well were what whatever when where whereas whether which "
        "while who whole whom whose why will with within without would yet you your yours yourself",
    )
)


class Trait(NamedTuple):
    """One property in which the rows of a cluster differ from all other rows.

    ``inside`` and ``outside`` are shares of rows that have a word or a category, or means of a number.
    """

    kind: Literal["word", "category", "number"]
    column: str
    value: str
    inside: float
    outside: float
    effect: float


@dataclass(frozen=True)
class Terms:
    """Words or categories of a column: which row has which, as a matrix of zeros and ones."""

    column: str
    kind: Literal["word", "category"]
    names: list[str]
    rows: csr_matrix

    def shares(self, labels: NDArray[np.int32], n_clusters: int) -> tuple[Floats, Floats]:
        """Return the share of the rows of each cluster that have each term, and the same of all rows."""
        known = np.flatnonzero(labels >= 0)
        sizes = np.bincount(labels[known], minlength=n_clusters)
        member = csr_matrix((np.ones(len(known)), (labels[known], known)), shape=(n_clusters, len(labels)))
        counts = np.asarray((member @ self.rows).todense(), dtype=np.float64)
        overall = np.asarray(self.rows.sum(axis=0), dtype=np.float64).ravel()
        return counts / np.maximum(sizes, 1)[:, None], overall / max(1, len(labels))


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; missing values are NaN."""

    column: str
    values: Floats


Described = Terms | Numbers


def describe_columns(columns: Mapping[str, Any], n: int) -> list[Described]:
    """Return columns of ``n`` rows as words, categories or numbers; columns of other content are left out.

    Texts with more than two words on average, most of them different, have words. Texts and truth values with at most
    64 distinct entries are categories.
    """
    found: list[Described] = []
    for name, given in columns.items():
        convert = getattr(given, "to_list", None) or getattr(given, "tolist", None)
        entries = list(given if convert is None else convert())
        if len(entries) != n:
            raise ValueError(f"column {name!r} must have one entry for each of the {n} rows, got {len(entries)}")
        described = _described(str(name), entries)
        if described is not None:
            found.append(described)
    return found


def _described(name: str, entries: list[Any]) -> Described | None:
    known = [one for one in entries if one is not None and one == one]
    if known and all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
        values = np.array([np.nan if one is None else one for one in entries], dtype=np.float64)
        return Numbers(name, np.where(np.isfinite(values), values, np.nan))
    texts = ["" if one is None or one != one else str(one) for one in entries]
    distinct = set(texts) - {""}
    if 2 <= len(distinct) <= MOST_CATEGORIES:
        return _categories(name, texts, sorted(distinct))
    words = sum(text.count(" ") + 1 for text in texts if text) / max(1, len(known))
    if len(distinct) > MOST_CATEGORIES and words >= 2:
        return word_table(name, texts)
    return None


def _categories(name: str, texts: list[str], names: list[str]) -> Terms:
    number = {one: a for a, one in enumerate(names)}
    rows = np.array([a for a, text in enumerate(texts) if text], dtype=np.int64)
    codes = np.array([number[text] for text in texts if text], dtype=np.int64)
    return Terms(
        name, "category", names, csr_matrix((np.ones(len(rows)), (rows, codes)), shape=(len(texts), len(names)))
    )


def word_table(name: str, texts: Sequence[str]) -> Terms | None:
    """Return the words of texts, and pairs of adjacent words, that occur in at least two rows."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=words_of, binary=True, min_df=2, max_features=MOST_WORDS, dtype=np.float64)
    try:
        rows = counter.fit_transform(texts)
    except ValueError:  # no word occurs twice
        return None
    return Terms(name, "word", counter.get_feature_names_out().tolist(), rows)


def words_of(text: str) -> list[str]:
    """Return the words of a text without stop words, in lower case, and the pairs of words that are adjacent in it."""
    found: list[str] = []
    before = ""
    for word in re.findall(r"[^\W\d_][\w'+-]*|[^\w\s]|\d\S*", text.lower()):
        word = word.rstrip("'-")
        usable = len(word) >= SHORTEST_WORD and word[0].isalpha() and word not in STOP_WORDS
        if usable:
            found.append(word)
            if before:
                found.append(f"{before} {word}")
        before = word if usable else ""
    return found


def traits(
    described: Sequence[Described], labels: NDArray[np.int32], n_clusters: int, most: int = 10
) -> list[list[Trait]]:
    """Return for each cluster the ``most`` properties with the largest effects, the largest first."""
    found: list[list[Trait]] = [[] for _ in range(n_clusters)]
    n, sizes = len(labels), np.bincount(labels[labels >= 0], minlength=n_clusters)
    for one in described:
        if isinstance(one, Numbers):
            for cluster, trait in _number_traits(one, labels, n_clusters):
                found[cluster].append(trait)
            continue
        inside, overall = one.shares(labels, n_clusters)
        outside = (overall * n - inside * sizes[:, None]) / np.maximum(n - sizes, 1)[:, None]
        effect = 2.0 * (np.arcsin(np.sqrt(np.clip(inside, 0, 1))) - np.arcsin(np.sqrt(np.clip(outside, 0, 1))))
        for cluster in range(n_clusters):
            for term in np.argsort(-effect[cluster], kind="stable")[:most]:
                if effect[cluster, term] > 0:
                    values = (float(values[cluster, term]) for values in (inside, outside, effect))
                    found[cluster].append(Trait(one.kind, one.column, one.names[term], *values))
    return [sorted(some, key=lambda trait: (-abs(trait.effect), trait.value))[:most] for some in found]


def _number_traits(numbers: Numbers, labels: NDArray[np.int32], n_clusters: int) -> Iterator[tuple[int, Trait]]:
    known = np.isfinite(numbers.values)
    values, labels = numbers.values[known], labels[known]
    total, squares, count = values.sum(), np.square(values - values.mean()).sum() if len(values) else 0.0, len(values)
    for cluster in range(n_clusters):
        own = values[labels == cluster]
        if not 0 < len(own) < count or squares <= 0:
            continue
        inside, outside = own.mean(), (total - own.sum()) / (count - len(own))
        between = len(own) * (count - len(own)) / count * (inside - outside) ** 2
        spread = np.sqrt(max(squares - between, 0.0) / max(count - 2, 1))
        effect = (inside - outside) / max(spread, 1e-9 * np.sqrt(squares / count))
        word = f"{'high' if effect > 0 else 'low'} {numbers.column}"
        yield cluster, Trait("number", numbers.column, word, float(inside), float(outside), float(effect))


class Namer:
    """Names clusters of one layer after the other, from coarse to fine, by the columns of their rows.

    Texts give the names if there are any; otherwise categories, then numbers.
    """

    def __init__(self, described: Sequence[Described]) -> None:
        self.described = list(described)
        texts = [one for one in self.described if isinstance(one, Terms) and one.kind == "word"]
        self.words = max(texts, key=lambda one: one.rows.nnz, default=None)

    def names(
        self,
        labels: NDArray[np.int32],
        n_clusters: int,
        parent: NDArray[np.int32] | None = None,
        parents: tuple[NDArray[np.int32], Sequence[str]] | None = None,
        kept: Mapping[int, str] | None = None,
        around: Sequence[Collection[str]] = (),
    ) -> list[str]:
        """Return a name for each cluster, or "" if nothing sets it apart.

        ``parent`` is the number of the coarser cluster around each cluster, or -1; ``parents`` are the labels and names
        of those. ``kept`` are names that some clusters keep as long as their rows have the words. ``around`` are the
        names of all areas around each cluster. Names differ within a layer, and from those of the areas around.
        """
        sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
        above = np.full(n_clusters, -1, np.int32) if parent is None else parent
        if self.words is not None:
            candidates = self._words(labels, n_clusters, above, parents)
        else:
            candidates = self._others(labels, n_clusters)
        names = [(kept or {}).get(cluster, "") for cluster in range(n_clusters)]
        if self.words is not None:
            names = self._still_true(names, self.words.shares(labels, n_clusters)[0])
        taken = set(names)
        for cluster in np.lexsort((np.arange(n_clusters), -sizes)):
            if names[cluster]:
                continue
            for name in candidates[cluster]:
                if name not in taken and not (around and name in around[cluster]):
                    names[cluster] = name
                    taken.add(name)
                    break
        return names

    def _still_true(self, names: Sequence[str], inside: Floats) -> list[str]:
        """Leave out names with words that hardly any row of the cluster has; other names may come from anywhere."""
        assert self.words is not None
        number = {name: term for term, name in enumerate(self.words.names)}
        kept = []
        for name, share in zip(names, inside, strict=True):
            terms = [number[word] for word in name.split(", ") if word in number]
            kept.append(name if (share[terms] >= RAREST_SHARE).all() else "")
        return kept

    def _words(
        self,
        labels: NDArray[np.int32],
        n_clusters: int,
        above: NDArray[np.int32],
        parents: tuple[NDArray[np.int32], Sequence[str]] | None,
    ) -> list[list[str]]:
        """Return names of words, with alternatives by further words."""
        assert self.words is not None
        inside, overall = self.words.shares(labels, n_clusters)
        coarse = None if parents is None else self.words.shares(parents[0], len(parents[1]))[0]
        single = np.array([" " not in word for word in self.words.names])
        frequency = inside.sum(axis=0)
        mean_words = float(inside[:, single].sum()) / max(n_clusters, 1)
        score = inside * np.log1p(mean_words / np.maximum(frequency, 1e-12))
        found = []
        for cluster in range(n_clusters):
            share = inside[cluster]
            apart = single & (share >= RAREST_SHARE) & (share >= LEAST_LIFT * overall)
            again: list[int] = []  # frequent words of the parent's name
            if coarse is not None and parents is not None and above[cluster] >= 0:
                known = set(re.split(r", | ", parents[1][above[cluster]]))
                for term in np.flatnonzero(apart):
                    if self.words.names[term] in known:
                        apart[term] = share[term] >= ABOVE_PARENT * coarse[above[cluster], term]
                        if not apart[term] and share[term] >= LEAST_SHARE:
                            again.append(int(term))
            order = np.lexsort((np.arange(len(share)), -score[cluster], share < MAJORITY))
            chosen = order[apart[order]][:MOST_CANDIDATES].tolist()
            frequent = [term for term in chosen if share[term] >= LEAST_SHARE]
            # words of the parent tell clusters of one name apart; a rare word comes last and never stands for them
            again.sort(key=lambda term: -share[term])
            names = self._joined(frequent, share) + (self._joined(frequent[:2] + again, share) if frequent else [])
            first = (frequent or again)[: WORDS_OF_A_NAME - 1]
            for term in chosen:
                if first or share[term] >= ALONE_SHARE:
                    names += self._joined([*first, term], share)
            found.append(names)
        return found

    def _joined(self, chosen: Sequence[int], share: Floats) -> list[str]:
        """Return names of the first words, and then with other words in the last place."""
        assert self.words is not None
        used: list[str] = []
        for term in chosen:
            word = self._with_partner(self.words.names[term], share[term], share)
            if not any(_alike(word, other) for other in used):
                used.append(word)
        first, last = used[: WORDS_OF_A_NAME - 1], used[WORDS_OF_A_NAME - 1 :]
        return [", ".join([*first, word]) for word in last] if last else [", ".join(first)] if first else []

    def _with_partner(self, word: str, own: float, share: Floats) -> str:
        """Return two adjacent words instead of one of them if they nearly always occur together."""
        terms = [term for term in self._pairs.get(word, ()) if share[term] >= PAIR_SHARE * own]
        best = max(terms, key=lambda term: (share[term], -term), default=None)
        assert self.words is not None
        return word if best is None else self.words.names[best]

    @cached
    def _pairs(self) -> dict[str, list[int]]:
        """The pairs of adjacent words by word."""
        pairs: dict[str, list[int]] = {}
        for term, name in enumerate(self.words.names if self.words is not None else []):
            for word in name.split() if " " in name else ():
                pairs.setdefault(word, []).append(term)
        return pairs

    def _others(self, labels: NDArray[np.int32], n_clusters: int) -> list[list[str]]:
        """Return the most enriched category of each cluster, then the numbers that differ most."""
        scored: list[list[tuple[float, str]]] = [[] for _ in range(n_clusters)]
        for one in self.described:
            if isinstance(one, Terms) and one.kind == "category":
                inside, overall = one.shares(labels, n_clusters)
                for cluster, term in np.argwhere((inside >= MAJORITY) & (inside >= LEAST_LIFT * overall)):
                    lift = np.log(inside[cluster, term] / overall[term])
                    scored[cluster].append((-inside[cluster, term] * lift, _category_name(one.column, one.names[term])))
        found = [[name for _, name in sorted(some)] for some in scored]
        differing: list[list[tuple[float, str]]] = [[] for _ in range(n_clusters)]
        for one in self.described:
            if isinstance(one, Numbers):
                for cluster, trait in _number_traits(one, labels, n_clusters):
                    if abs(trait.effect) >= LEAST_EFFECT:
                        differing[cluster].append((-abs(trait.effect), trait.value))
        for names, some in zip(found, differing, strict=True):
            numbers = [name for _, name in sorted(some)]
            # a second property tells clusters apart that share the first
            names += [f"{a}, {b}" for a in names[:1] for b in numbers[:3]]
            names += numbers[:1] + [f"{numbers[0]}, {other}" for other in numbers[1:4]]
        return found


def _category_name(column: str, category: str) -> str:
    """Return a category as a name: numbers, single letters and truth values mean nothing without their column."""
    telling = re.search(r"[^\W\d_]{2}", category) and category.lower() not in TRUTH_VALUES
    return category if telling else f"{column} {category}"


def _alike(word: str, other: str) -> bool:
    """Return whether two terms share a word, or are forms of one word."""
    for a in re.split(r"[\s-]+", word):
        for b in re.split(r"[\s-]+", other):
            short, long = sorted((a, b), key=len)
            if long.startswith(short[: max(4, len(short) - 2)]) and len(long) - len(short) <= 4:
                return True
    return False
