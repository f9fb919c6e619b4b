"""The reference against finite differences, the laws of fuzzy sets and umap-learn's golden files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
from measured import assert_equation

GOLDEN = Path(__file__).parent / "golden"
GRAPHS = ("iris", "digits", "repeated")
KERNELS = ((1.577, 0.8951), (1.929, 0.7915), (1.0, 1.0), (0.3, 1.4), (5.0, 0.55))
DIMENSIONS = (1, 2, 3, 7)
# A central difference has half the digits of float64 at best, and a truncation error.
FINITE_DIFFERENCE_TOLERANCE = 2e-7


def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def finite_difference(cost, head: np.ndarray, tail: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the derivative of cost(d2) by the head, by central differences."""
    gradient = np.empty_like(head)
    for axis in range(len(head)):
        shift = np.zeros_like(head)
        shift[axis] = step
        above = cost(((head + shift - tail) ** 2).sum())
        below = cost(((head - shift - tail) ** 2).sum())
        gradient[axis] = (above - below) / (2.0 * step)
    return gradient


def random_pairs(dimension: int, count: int = 20):
    """Yield pairs at distances from 0.05 to 20, from the flat top of the kernel to its tail."""
    rng = np.random.default_rng(dimension)
    for distance in np.geomspace(0.05, 20.0, count):
        head, direction = rng.normal(size=(2, dimension))
        yield head, head + distance * direction / np.linalg.norm(direction)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_attract_gradient_is_the_derivative_of_its_cost(a: float, b: float, dimension: int) -> None:
    for head, tail in random_pairs(dimension):
        expected = finite_difference(lambda d2: reference.attract_cost(d2, a, b), head, tail)
        actual = reference.attract_gradient(head, tail, a, b)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=FINITE_DIFFERENCE_TOLERANCE * (1 + abs(actual).max()))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_repel_gradient_without_eps_is_the_derivative_of_its_cost(a: float, b: float, dimension: int) -> None:
    for head, tail in random_pairs(dimension):
        expected = finite_difference(lambda d2: reference.repel_cost(d2, a, b), head, tail)
        actual = reference.repel_gradient(head, tail, a, b, eps=0.0)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=FINITE_DIFFERENCE_TOLERANCE * (1 + abs(actual).max()))


@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_gradients_equal_those_of_the_chain_rule(a: float, b: float) -> None:
    for head, tail in random_pairs(3):
        assert_equation(
            "14",
            reference.attract_gradient(head, tail, a, b),
            reference.attract_gradient_by_chain_rule(head, tail, a, b),
            rtol=1e-12,
        )
        assert_equation(
            "15",
            reference.repel_gradient(head, tail, a, b, eps=0.0),
            reference.repel_gradient_by_chain_rule(head, tail, a, b),
            rtol=1e-9,
        )


def test_eps_multiplies_the_repulsion_by_d2_over_d2_plus_eps() -> None:
    for head, tail in random_pairs(2):
        d2 = ((head - tail) ** 2).sum()
        exact = reference.repel_gradient(head, tail, 1.577, 0.8951, eps=0.0)
        damped = reference.repel_gradient(head, tail, 1.577, 0.8951)
        np.testing.assert_allclose(damped, exact * d2 / (d2 + 0.001), rtol=1e-12)


def test_gradients_have_the_right_sign_are_antisymmetric_and_are_zero_at_distance_zero() -> None:
    head, tail = np.array([1.0, 2.0]), np.array([0.0, -1.0])
    for gradient, sign in ((reference.attract_gradient, 1.0), (reference.repel_gradient, -1.0)):
        value = gradient(head, tail, 1.577, 0.8951)
        assert sign * (value @ (head - tail)) > 0.0
        np.testing.assert_array_equal(value, -gradient(tail, head, 1.577, 0.8951))
        np.testing.assert_array_equal(gradient(head, head, 1.577, 0.8951), np.zeros(2))


def test_costs_are_logarithms_of_the_kernel() -> None:
    d2 = np.geomspace(1e-3, 1e3, 50)
    for a, b in KERNELS:
        q = reference.kernel(d2, a, b)
        np.testing.assert_allclose(reference.attract_cost(d2, a, b), -np.log(q), rtol=1e-9)
        np.testing.assert_allclose(reference.repel_cost(d2, a, b), -np.log1p(-q), rtol=1e-9)


def small_problem() -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(3)
    graph = reference.fuzzy_graph(*reference.exact_neighbors(rng.normal(size=(40, 4)), 8))
    return graph, [scale * rng.normal(size=(40, 2)) for scale in (0.1, 1.0, 10.0)]


@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_full_and_reduced_cross_entropy_differ_by_the_same_constant_for_every_embedding(a: float, b: float) -> None:
    graph, embeddings = small_problem()
    full = np.array([reference.cross_entropy(graph, y, a, b) for y in embeddings])
    reduced = np.array([reference.reduced_cross_entropy(graph, y, a, b) for y in embeddings])
    p = graph[~np.eye(len(graph), dtype=bool)]
    inner = p[(p > 0.0) & (p < 1.0)]
    constant = (inner * np.log(inner) + (1.0 - inner) * np.log1p(-inner)).sum()
    np.testing.assert_allclose(full - reduced, constant, rtol=1e-10)
    assert np.ptp(reduced) > 1.0


def test_sum_over_unordered_pairs_equals_the_double_sum() -> None:
    graph, embeddings = small_problem()
    for y in embeddings:
        assert reference.reduced_cross_entropy_by_pairs(graph, y, 1.577, 0.8951) == pytest.approx(
            reference.reduced_cross_entropy(graph, y, 1.577, 0.8951), rel=1e-12
        )


def test_cross_entropy_is_zero_only_if_the_graphs_are_equal() -> None:
    _, embeddings = small_problem()
    q = reference.kernel(reference.squared_distances(embeddings[1]), 1.577, 0.8951)
    assert reference.cross_entropy(q, embeddings[1], 1.577, 0.8951) == pytest.approx(0.0, abs=1e-9)
    assert reference.cross_entropy(q, embeddings[2], 1.577, 0.8951) > 1.0


@pytest.mark.parametrize("name", GRAPHS)
def test_exact_neighbors_equal_the_golden_table(name: str) -> None:
    arrays = golden(name)
    index, distance = reference.exact_neighbors(arrays["data"], 15)
    np.testing.assert_array_equal(index[:, 0], np.arange(len(index)))
    np.testing.assert_array_equal(index, arrays["index"])
    np.testing.assert_allclose(distance, arrays["distance"], rtol=1e-6)


def test_exact_neighbors_break_ties_by_index() -> None:
    index, distance = reference.exact_neighbors(np.array([[0.0], [1.0], [-1.0], [0.0], [1.0]]), 5)
    np.testing.assert_array_equal(index[0], [0, 3, 1, 2, 4])
    np.testing.assert_array_equal(index[3], [3, 0, 1, 2, 4])
    np.testing.assert_array_equal(distance[3], [0.0, 0.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("name", ["iris", "digits"])
@pytest.mark.parametrize("tolerance", [reference.SMOOTH_K_TOLERANCE, 1e-12])
def test_sigma_solves_its_equation(name: str, tolerance: float) -> None:
    distance = golden(name)["distance"].astype(np.float64)
    rho = reference.nearest_distances(distance)
    sigma = reference.smooth_scales(distance, rho, tolerance)
    sums = np.array([reference.membership_sum(*row) for row in zip(distance, rho, sigma, strict=True)])
    np.testing.assert_allclose(sums, np.log2(15), rtol=0, atol=2 * tolerance)


def test_sigma_has_a_floor_if_its_equation_has_no_solution() -> None:
    ties = np.array([[0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
    sigma = reference.smooth_scales(ties, reference.nearest_distances(ties))
    assert sigma[0] == pytest.approx(1e-3 * 0.8)
    assert reference.membership_sum(ties[1], 1.0, sigma[1]) == pytest.approx(np.log2(5), abs=1e-5)

    duplicates = np.array([[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
    rho = reference.nearest_distances(duplicates)
    assert rho[0] == 0.0
    assert reference.smooth_scales(duplicates, rho)[0] == pytest.approx(1e-3 * 1.0)


def test_sigma_is_finite_for_rows_with_missing_neighbors() -> None:
    table = np.array([[0.0, 1.0, 2.0, 3.0, np.inf], [0.0, np.inf, np.inf, np.inf, np.inf]])
    rho = reference.nearest_distances(table)
    np.testing.assert_array_equal(rho, [1.0, 0.0])
    sigma = reference.smooth_scales(table, rho)
    assert np.isfinite(sigma).all()
    assert reference.membership_sum(table[0], rho[0], sigma[0]) == pytest.approx(np.log2(5), abs=1e-5)


def test_local_connectivity_interpolates_between_the_nearest_distances() -> None:
    table = np.array([[0.0, 1.0, 2.0, 4.0], [0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    expected = {
        0.0: (0, 0, 0, 0),
        0.5: (0.5, 0.5, 1.5, 0),
        1.0: (1, 1, 3, 0),
        1.5: (1.5, 2, 3, 0),
        2.0: (2, 3, 3, 0),
        2.25: (2.5, 3, 3, 0),
    }
    for connectivity, rho in expected.items():
        np.testing.assert_allclose(reference.nearest_distances(table, connectivity), rho)


@pytest.mark.parametrize("name", GRAPHS)
def test_rho_and_sigma_equal_those_of_umap_learn(name: str) -> None:
    arrays = golden(name)
    for c, connectivity in enumerate(arrays["local_connectivity"]):
        rho = reference.nearest_distances(arrays["distance"], connectivity)
        np.testing.assert_allclose(rho, arrays["rho"][c], rtol=1e-6)
        sigma = reference.smooth_scales(arrays["distance"], rho)
        np.testing.assert_allclose(sigma, arrays["sigma"][c], rtol=2e-5)


def float32_graph(index: np.ndarray, distance: np.ndarray, mix: float, connectivity: float) -> np.ndarray:
    """Return the graph with rho rounded to float32, as umap-learn stores it.

    If sigma has its floor of a thousandth of the mean distance, half a unit in the last place of rho changes the
    membership of a neighbor at nearly the distance rho by 1e-4.
    """
    rho = reference.nearest_distances(distance, connectivity).astype(np.float32)
    sigma = reference.smooth_scales(distance, rho)
    conditional = reference.conditional_memberships(index, distance, rho, sigma)
    return reference.symmetrize(conditional, mix)


def test_fuzzy_graph_combines_eq_1_to_4() -> None:
    arrays = golden("iris")
    whole = reference.fuzzy_graph(arrays["index"], arrays["distance"], 0.5, 2.0)
    np.testing.assert_array_equal(whole, float32_graph(arrays["index"], arrays["distance"], 0.5, 2.0))


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_equals_that_of_umap_learn(name: str) -> None:
    arrays = golden(name)
    rows, cols = arrays["rows"], arrays["cols"]
    for c, connectivity in enumerate(arrays["local_connectivity"]):
        for m, mix in enumerate(arrays["set_op_mix_ratio"]):
            graph = float32_graph(arrays["index"], arrays["distance"], mix, connectivity)
            np.testing.assert_allclose(graph[rows, cols], arrays["weights"][c, m], rtol=0, atol=1e-5)
            outside = graph.copy()
            outside[rows, cols] = outside[cols, rows] = 0.0
            # Memberships below the range of float32 are 0 in umap-learn, and the entry is missing.
            assert outside.max() < 1e-37


def test_memberships_exclude_the_row_itself_and_missing_neighbors() -> None:
    index = np.array([[0, 1, 2], [1, 0, -1], [2, 1, 0]])
    distance = np.array([[0.0, 1.0, 3.0], [0.0, 1.0, np.inf], [0.0, 2.0, 3.0]])
    p = reference.conditional_memberships(index, distance, [1.0, 1.0, 2.5], [2.0, 1.0, 0.5])
    np.testing.assert_allclose(p, [[0.0, 1.0, np.exp(-1.0)], [1.0, 0.0, 0.0], [np.exp(-1.0), 1.0, 0.0]])


def test_symmetric_graphs_obey_the_laws_of_fuzzy_sets() -> None:
    p = np.random.default_rng(0).random((30, 30)) * (np.random.default_rng(1).random((30, 30)) < 0.4)
    np.fill_diagonal(p, 0.0)
    union, mixed, both = (reference.symmetrize(p, mix) for mix in (1.0, 0.5, 0.0))
    for graph in (union, mixed, both):
        np.testing.assert_array_equal(graph, graph.T)
        assert graph.min() >= 0.0
        assert graph.max() <= 1.0
    assert (union >= np.maximum(p, p.T)).all()
    assert (both <= np.minimum(p, p.T)).all()
    np.testing.assert_allclose(mixed, (union + both) / 2.0)
    np.testing.assert_allclose(1.0 - union, (1.0 - p) * (1.0 - p.T))
    np.testing.assert_allclose(union + both, p + p.T)
    certain = np.triu(np.ones((4, 4)), 1)
    np.testing.assert_array_equal(reference.symmetrize(certain), 1.0 - np.eye(4))
    np.testing.assert_array_equal(reference.symmetrize(certain, 0.0), np.zeros((4, 4)))


def test_kernel_parameters_for_the_defaults_and_for_the_value_in_the_survey() -> None:
    assert reference.fit_ab() == pytest.approx((1.577, 0.8951), abs=5e-4)
    assert reference.fit_ab(1.0, 0.001) == pytest.approx((1.929, 0.7915), abs=5e-4)


def test_kernel_parameters_equal_those_of_umap_learn() -> None:
    arrays = golden("kernel")
    for spread, min_dist, a, b in zip(*(arrays[key] for key in ("spread", "min_dist", "a", "b")), strict=True):
        assert reference.fit_ab(spread, min_dist) == pytest.approx((a, b), rel=1e-6)


def test_pairs_fire_if_the_draw_is_at_most_their_membership() -> None:
    p = np.array([[0.0, 0.6, 0.2], [0.6, 0.0, 1.0], [0.2, 1.0, 0.0]])
    assert reference.fired_pairs(p, np.full((3, 3), 0.5)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert reference.fired_pairs(p, np.zeros((3, 3))) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def epoch_arguments(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    return {key: float(arrays[key]) for key in ("a", "b", "gamma", "learning_rate")}


def test_sequential_epoch_equals_that_of_umap_learn() -> None:
    arrays = golden("epoch")
    final = reference.algorithm1_epoch(
        arrays["initial"],
        arrays["edges"].astype(int),
        arrays["negatives"].astype(int),
        **epoch_arguments(arrays),
    )
    assert abs(final - arrays["initial"]).max() > 0.3
    np.testing.assert_allclose(final, arrays["final"], rtol=0, atol=2e-5)


def test_update_negatives_moves_the_negative_by_the_opposite_step() -> None:
    y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    a, b = 1.577, 0.8951
    plain = reference.algorithm1_epoch(y, [(0, 1)], [[2]], a, b, learning_rate=0.1)
    moved = reference.algorithm1_epoch(y, [(0, 1)], [[2]], a, b, learning_rate=0.1, update_negatives=True)
    np.testing.assert_array_equal(plain[:2], moved[:2])
    np.testing.assert_array_equal(plain[2], y[2])
    after_pull = y[0] - 0.1 * reference.attract_gradient(y[0], y[1], a, b)
    push = 0.1 * reference.repel_gradient(after_pull, y[2], a, b)
    np.testing.assert_allclose(moved[2], y[2] + push)
    np.testing.assert_allclose(moved.sum(axis=0), y.sum(axis=0), atol=1e-15)


def test_gradients_are_clipped_per_component() -> None:
    y = np.array([[0.0, 0.0], [0.02, 0.01]])
    free = reference.algorithm1_epoch(y, [(0, 1)], [[1]], 1.0, 1.0, clip=np.inf)
    assert (abs(free - y)[0] > 5.0).all()
    clipped = reference.algorithm1_epoch(y, [(0, 1)], [[1]], 1.0, 1.0)
    pull = reference.attract_gradient(y[0], y[1], 1.0, 1.0)
    np.testing.assert_allclose(clipped[0], y[0] - pull + 4.0)
    owned = reference.row_owned_epoch(y, [[1], []], [[[1, 1]], []], 1.0, 1.0, 1.0, 1.0, pulls=1)
    np.testing.assert_allclose(owned[0], y[0] - pull + 2.0 * 4.0)


def by_row(arrays: dict[str, np.ndarray]) -> tuple[list[list[int]], list[np.ndarray]]:
    heads, tails = arrays["edges"].astype(int).T
    rows = range(len(arrays["initial"]))
    return [tails[heads == i].tolist() for i in rows], [arrays["negatives"][heads == i].astype(int) for i in rows]


def test_row_owned_epoch_equals_the_sequential_epoch_for_small_steps() -> None:
    """To first order in the learning rate, both move every row by the same sum of gradients."""
    arrays = golden("epoch")
    parameters = epoch_arguments(arrays) | {"learning_rate": 1e-6}
    initial = arrays["initial"].astype(np.float64)
    edges, negatives = arrays["edges"].astype(int), arrays["negatives"].astype(int)
    sequential = reference.algorithm1_epoch(initial, edges, negatives, **parameters)
    owned = reference.row_owned_epoch(initial, *by_row(arrays), **parameters)
    assert abs(sequential - initial).max() > 1e-6
    np.testing.assert_allclose(owned - initial, sequential - initial, rtol=0, atol=2e-9)


def test_row_owned_epoch_reads_only_the_snapshot() -> None:
    """The result of a row depends on its own edges only."""
    arrays = golden("epoch")
    edges, negatives = by_row(arrays)
    whole = reference.row_owned_epoch(arrays["initial"], edges, negatives, **epoch_arguments(arrays))
    for row in (0, 77, 149):
        alone_edges = [tails if i == row else [] for i, tails in enumerate(edges)]
        alone_negatives = [drawn if i == row else [] for i, drawn in enumerate(negatives)]
        alone = reference.row_owned_epoch(arrays["initial"], alone_edges, alone_negatives, **epoch_arguments(arrays))
        np.testing.assert_array_equal(alone[row], whole[row])
        others = np.arange(len(whole)) != row
        np.testing.assert_array_equal(alone[others], arrays["initial"][others])


def test_row_owned_epoch_equals_a_step_computed_by_hand() -> None:
    y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
    a, b, gamma, rate = 1.577, 0.8951, 0.5, 0.1
    result = reference.row_owned_epoch(y, [[1], [], [], []], [[[2, 3, 0]], [], [], []], a, b, gamma, rate)
    moved = y[0] - rate * reference.attract_gradient(y[0], y[1], a, b)
    moved = moved - rate * reference.attract_gradient(moved, y[1], a, b)
    push = gamma * sum(reference.repel_gradient(moved, y[negative], a, b) for negative in (2, 3))
    np.testing.assert_allclose(result[0], moved - rate * push)
    np.testing.assert_array_equal(result[1:], y[1:])


def test_learning_rate_falls_linearly() -> None:
    rates = [reference.learning_rate_after(epoch, 4) for epoch in range(5)]
    assert rates == [1.0, 0.75, 0.5, 0.25, 0.0]


@pytest.mark.parametrize("beta", [0.4, 1.0, 2.5])
def test_a_power_law_of_the_radii_has_correlation_one(beta: float) -> None:
    """Eq. 32: R_q = alpha R_p^beta makes the logarithms affine, which is what eq. 33 measures."""
    rng = np.random.default_rng(4)
    r_p = np.log(rng.uniform(0.1, 5.0, size=200))
    r_q = np.log(1.7 * np.exp(r_p) ** beta)
    assert_equation("32", r_q, beta * r_p + np.log(1.7), rtol=1e-9, atol=1e-12)
    assert reference.correlation(r_q, r_p, 0.0) == pytest.approx(1.0, abs=1e-12)
    noisy = r_q + rng.normal(size=200)
    slope = np.polyfit(r_p, noisy, 1)[0]
    assert reference.correlation(noisy, r_p, 0.0) == pytest.approx(slope * r_p.std() / noisy.std(), rel=1e-9)
