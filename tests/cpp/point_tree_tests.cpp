// Exact neighbors of map points, compared with brute force.
#include "checks.hpp"
#include "data.hpp"
#include "neighbors/point_tree.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

Table brute_force(Matrix points, Matrix queries, Size k) {
    Table out(queries.rows, k);
    std::vector<std::pair<double, Index>> all(static_cast<std::size_t>(points.rows));
    for (Size i = 0; i < queries.rows; ++i) {
        for (Size j = 0; j < points.rows; ++j) {
            double d2 = 0.0;
            for (Size c = 0; c < points.cols; ++c) {
                const double apart = static_cast<double>(queries.row(i)[c]) - points.row(j)[c];
                d2 += apart * apart;
            }
            all[j] = {d2, static_cast<Index>(j)};
        }
        std::sort(all.begin(), all.end());
        for (Size e = 0; e < k; ++e) {
            out.index[i * k + e] = all[e].second;
            out.distance[i * k + e] = static_cast<float>(std::sqrt(all[e].first));
        }
    }
    return out;
}

Table tree_search(Matrix points, Matrix queries, Size k, int threads) {
    ThreadTeam team(threads);
    Table out(queries.rows, k);
    PointTree(points, team).query(queries, k, out.index.data(), out.distance.data(), team);
    return out;
}

void tree_equals_brute_force() {
    for (std::uint32_t seed = 0; seed < 120; ++seed) {
        Draws draws(7000 + seed);
        const Size n = draws.size(1, 500), m = draws.size(0, 60);
        const Size d = std::vector<Size>{1, 2, 3, 8}[draws.below(4)];
        // Coarse values make most of these data sets full of ties and duplicates.
        const auto points = random_rows(draws, n, d), others = random_rows(draws, m, d);
        const Matrix tree{points.data(), n, d}, unseen{others.data(), m, d};
        for (Size k : {Size{1}, std::min<Size>(n, 15), n}) {
            const Table own = brute_force(tree, tree, k), other = brute_force(tree, unseen, k);
            for (int threads : {1, 3}) {
                CHECK(tree_search(tree, tree, k, threads) == own);
                CHECK(tree_search(tree, unseen, k, threads) == other);
            }
        }
    }
}

void ties_go_to_the_lower_row() {
    // A grid in descending order: every inner point has four neighbors at distance 1.
    std::vector<float> points;
    for (int x = 29; x >= 0; --x)
        for (int y = 29; y >= 0; --y) points.insert(points.end(), {static_cast<float>(x), static_cast<float>(y)});
    const Matrix grid{points.data(), 900, 2};
    for (Size k : {2, 3, 4, 7}) CHECK(tree_search(grid, grid, k, 2) == brute_force(grid, grid, k));
}

void searches_among_equal_points_compare_few_of_them() {
    const Size n = 10000, k = 15;
    std::vector<float> points(static_cast<std::size_t>(2 * n), 3.0f);
    points[2 * 7000] = 4.0f;
    const Matrix equal{points.data(), n, 2};
    ThreadTeam team(2);
    Table found(n, k);
    const Size compared = PointTree(equal, team).query(equal, k, found.index.data(), found.distance.data(), team);
    CHECK(compared <= 100 * n);
    for (Size i = 0; i < n; ++i)
        for (Size e = 0; e < k; ++e) {
            const Index wanted = static_cast<Index>(i == 7000 ? (e == 0 ? 7000 : e - 1) : e);
            CHECK(found.index[i * k + e] == wanted);
        }
    // With k = n every point is reported, in order.
    const Table all = tree_search(equal, {points.data(), 1, 2}, n, 1);
    CHECK(all.index[n - 1] == 7000 && all.distance[n - 1] == 1.0f && all.distance[n - 2] == 0.0f);
}

void large_trees_do_not_depend_on_threads() {
    const Size n = 20000, k = 15;
    const auto points = random_points(n, 2, 10.0f);
    const Matrix view{points.data(), n, 2};
    const Table one = tree_search(view, view, k, 1);
    CHECK(one == tree_search(view, view, k, 4));
    const Matrix some{points.data(), 200, 2};
    const Table wanted = brute_force(view, some, k);
    CHECK(std::equal(wanted.index.begin(), wanted.index.end(), one.index.begin()));
}

void points_that_are_not_finite_are_rejected() {
    std::vector<float> points{0.0f, 1.0f, std::nanf(""), 2.0f};
    CHECK(throws<std::invalid_argument>([&] { tree_search({points.data(), 2, 2}, {points.data(), 1, 2}, 1, 1); }));
    points[2] = std::numeric_limits<float>::infinity();
    CHECK(throws<std::invalid_argument>([&] { tree_search({points.data(), 1, 2}, {points.data(), 2, 2}, 1, 1); }));
}

void searches_can_be_interrupted() {
    const Size n = 100000, k = 15;
    const auto points = random_points(n, 2, 10.0f);
    ThreadTeam team(2);
    const PointTree tree({points.data(), n, 2}, team);
    ThreadTeam interrupted(1, [] { return true; }, std::chrono::milliseconds(0));  // polls after the first chunk
    Table out(n, k);
    CHECK(throws<Interrupted>(
        [&] { tree.query({points.data(), n, 2}, k, out.index.data(), out.distance.data(), interrupted); }));
}

constexpr Test tests[] = {
    TEST(tree_equals_brute_force),
    TEST(ties_go_to_the_lower_row),
    TEST(searches_among_equal_points_compare_few_of_them),
    TEST(large_trees_do_not_depend_on_threads),
    TEST(points_that_are_not_finite_are_rejected),
    TEST(searches_can_be_interrupted),
};

}  // namespace

int main() { return run_all(tests); }
