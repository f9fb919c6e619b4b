// Neighbors of streamed rows.
#include "checks.hpp"
#include "data.hpp"

#include "neighbors/neighbor_index.hpp"
#include "neighbors/online_neighbors.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace {

constexpr Size columns = 140;  // long enough to be sketched
constexpr Size k = 8;
constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr Size everything = std::numeric_limits<Size>::max();

OnlineOptions online_options(Size trees, Size exact_rows) {
    return {.k = k, .spare = 6, .trees = trees, .refresh_after = 5, .exact_rows = exact_rows};
}

OnlineNeighbors make_online() {
    return OnlineNeighbors(columns, 0, find_metric("euclidean"), 2.0, 7, online_options(4, 200));
}

void insert(OnlineNeighbors& online, const std::vector<float>& rows, Size begin, Size end) {
    ThreadTeam team(2);
    const Matrix part{rows.data() + begin * columns, end - begin, columns};
    online.insert(part, part, team);
}

OnlineChange step(OnlineNeighbors& online, Size ops, int threads = 2) {
    ThreadTeam team(threads);
    return online.step(ops, no_limit, team);
}

std::vector<Index> table_of(const OnlineNeighbors& online) {
    std::vector<Size> rows(static_cast<std::size_t>(online.searched()));
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<Index> index(rows.size() * k);
    std::vector<float> distance(index.size());
    online.table(rows.data(), online.searched(), index.data(), distance.data());
    return index;
}

void streamed_rows_find_their_neighbors() {
    const Size n = 1200;
    const auto rows = grouped_rows(n, columns, 12, 3);
    OnlineNeighbors online = make_online();
    for (Size begin = 0; begin < n; begin += 300) {
        insert(online, rows, begin, begin + 300);
        const OnlineChange change = step(online, everything);
        CHECK(change.first_new == begin && change.last_new == begin + 300);
    }
    CHECK(online.pending() == 0);
    ThreadTeam team(2);
    NeighborIndex index({rows.data(), n, columns}, find_metric("euclidean"), 0, nullptr, team);
    std::vector<Index> exact(static_cast<std::size_t>(n * k));
    std::vector<float> distance(exact.size());
    index.search_exact(k, exact.data(), distance.data(), team);
    const auto found = table_of(online);
    Size hits = 0;
    for (Size i = 0; i < n; ++i)
        for (Size e = 0; e < k; ++e)
            hits += std::find(found.begin() + i * k, found.begin() + (i + 1) * k, exact[i * k + e]) !=
                    found.begin() + (i + 1) * k;
    CHECK(static_cast<double>(hits) >= 0.95 * static_cast<double>(n * k));
}

void tables_do_not_depend_on_threads_or_on_how_the_work_is_split() {
    const auto rows = grouped_rows(900, columns, 9, 4);
    std::vector<std::vector<Index>> tables;
    for (const auto& [threads, ops] : {std::pair<int, Size>{1, 900}, {3, 900}, {2, 50}, {1, 129}}) {
        OnlineNeighbors online = make_online();
        for (Size begin = 0; begin < 900; begin += 450) {
            insert(online, rows, begin, begin + 450);
            for (Size done = 0; done < 900; done += ops) step(online, std::min(ops, 900 - done), threads);
        }
        tables.push_back(table_of(online));
    }
    for (const auto& table : tables) CHECK(table == tables.front());
}

struct Copy {
    template <class T>
    void append_only(const char* name, T& field) {
        (*this)(name, field);
    }
    template <class T>
    void later(const char* name, T& field) {
        (*this)(name, field);
    }
    template <class T>
    void operator()(const char*, T& field) {
        using Field = std::remove_reference_t<T>;
        if constexpr (requires { field.data(); }) {
            using Value = std::remove_reference_t<decltype(field[0])>;
            if (reading) {
                field.resize(sizes[at] / sizeof(Value));
                if (sizes[at] > 0) std::memcpy(field.data(), bytes[at].data(), sizes[at]);
            } else {
                const auto* begin = reinterpret_cast<const char*>(field.data());
                sizes.push_back(static_cast<std::size_t>(field.size()) * sizeof(Value));
                bytes.emplace_back(begin, begin + sizes.back());
            }
        } else if (reading) {
            std::memcpy(&field, bytes[at].data(), sizeof(Field));
        } else {
            const auto* begin = reinterpret_cast<const char*>(&field);
            sizes.push_back(sizeof(Field));
            bytes.emplace_back(begin, begin + sizeof(Field));
        }
        ++at;
    }
    bool reading = false;
    std::size_t at = 0;
    std::vector<std::size_t> sizes;
    std::vector<std::vector<char>> bytes;
};

void restored_state_continues_with_the_same_results() {
    const auto rows = grouped_rows(800, columns, 9, 5);
    OnlineNeighbors online = make_online(), other = make_online();
    insert(online, rows, 0, 500);
    step(online, 300);
    Copy copy;
    online.visit_state(copy);
    copy.reading = true;
    copy.at = 0;
    other.visit_state(copy);
    ThreadTeam team(2);
    other.restore(team);
    for (OnlineNeighbors* one : {&online, &other}) {
        insert(*one, rows, 500, 800);
        step(*one, everything);
    }
    CHECK(table_of(online) == table_of(other));
    CHECK(online.compared() == other.compared());
    OnlineNeighbors narrow(columns + 1, 0, find_metric("euclidean"), 2.0, 7, online_options(12, 2048));
    copy.at = 0;
    narrow.visit_state(copy);
    CHECK(throws<std::invalid_argument>([&] { narrow.restore(team); }));
}

void equal_rows_do_not_split_leaves() {
    std::vector<float> rows(static_cast<std::size_t>(1000 * columns), 1.0f);
    OnlineNeighbors online = make_online();
    insert(online, rows, 0, 1000);
    step(online, everything);
    const auto table = table_of(online);
    CHECK(online.pending() == 0);
    for (const Index index : table) CHECK(index >= 0);
}

Size polls_left = 0;

// Every try is interrupted some polls later than the one before: in explorations, while a basis is fitted, while a
// chunk is closed. The rows come in batches, so that bases are fitted anew and rows are refreshed.
void interrupts_change_no_results() {
    const auto rows = grouped_rows(600, columns, 9, 6);
    OnlineNeighbors whole = make_online(), stopped = make_online();
    Size interrupts = 0;
    for (const auto& [begin, end] : {std::pair<Size, Size>{0, 150}, {150, 330}, {330, 600}}) {
        insert(whole, rows, begin, end);
        insert(stopped, rows, begin, end);
        const OnlineChange wanted = step(whole, everything);
        OnlineChange change;
        for (Size polls = 0; stopped.pending() > 0; polls += 1 + polls / 16) {
            polls_left = polls;
            ThreadTeam interrupted(1, [] { return --polls_left < 0; }, std::chrono::milliseconds(0));
            try {
                change = stopped.step(everything, no_limit, interrupted);
            } catch (const Interrupted&) {
                ++interrupts;
            }
        }
        CHECK(change.first_new == wanted.first_new && change.last_new == wanted.last_new);
        CHECK(change.updated == wanted.updated);
        CHECK(table_of(whole) == table_of(stopped));
        CHECK(whole.compared() == stopped.compared());
    }
    CHECK(interrupts > 200);
}

void tables_and_queries_do_not_depend_on_threads() {
    const Size n = 3000, d = 12;
    const auto data = grouped_rows(n, d, 10, 31);
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        OnlineNeighbors online(d, 0, find_metric("euclidean"), 2.0, 7, online_options(12, 256));
        for (Size begin = 0; begin < n; begin += 1000) {
            online.insert({data.data() + begin * d, 1000, d}, {}, team);
            while (online.pending() > 0) online.step(700, 1e9, team);
        }
        std::vector<Size> rows(static_cast<std::size_t>(n));
        for (Size i = 0; i < n; ++i) rows[static_cast<std::size_t>(i)] = i;
        Table table(n, k), asked(500, k);
        online.table(rows.data(), n, table.index.data(), table.distance.data());
        online.query({data.data(), 500, d}, {}, nullptr, k, asked.index.data(), asked.distance.data(), team);
        std::vector<float> out(table.distance);
        out.insert(out.end(), table.index.begin(), table.index.end());
        out.insert(out.end(), asked.distance.begin(), asked.distance.end());
        return out;
    }));
}

// Keeps rows in the middle of a chunk, then as a copy would go on, then almost none.
void rows_that_leave_are_in_no_list_and_a_copy_goes_on() {
    const Size n = 900;
    const auto rows = grouped_rows(n, columns, 9, 4);
    OnlineNeighbors online = make_online(), other = make_online();
    insert(online, rows, 0, 600);
    step(online, 530);
    std::vector<Index> stay;
    for (Index row = 0; row < 600; ++row)
        if (row % 3 != 0) stay.push_back(row);
    ThreadTeam team(2);
    const auto changed = online.keep(stay.data(), static_cast<Size>(stay.size()), team);
    CHECK(online.rows() == 400 && !changed.empty() && std::is_sorted(changed.begin(), changed.end()));
    for (Size i = 0; i < 400; ++i)
        CHECK(std::memcmp(online.ranked_rows().data() + i * columns, rows.data() + stay[i] * columns,
                          columns * sizeof(float)) == 0);
    Copy copy;
    online.visit_state(copy);
    copy.reading = true;
    copy.at = 0;
    other.visit_state(copy);
    other.restore(team);
    for (OnlineNeighbors* one : {&online, &other}) {
        insert(*one, rows, 600, n);
        step(*one, everything);
        CHECK(one->pending() == 0);
    }
    CHECK(table_of(online) == table_of(other));
    const Index last[] = {5, 699};
    online.keep(last, 2, team);
    step(online, everything);
    const auto table = table_of(online);
    CHECK(table[0] == 0 && table[1] == 1 && table[k] == 1 && table[k + 1] == 0 && table[2] == -1);
}

constexpr Test tests[] = {
    TEST(streamed_rows_find_their_neighbors),
    TEST(tables_do_not_depend_on_threads_or_on_how_the_work_is_split),
    TEST(restored_state_continues_with_the_same_results),
    TEST(equal_rows_do_not_split_leaves),
    TEST(interrupts_change_no_results),
    TEST(tables_and_queries_do_not_depend_on_threads),
    TEST(rows_that_leave_are_in_no_list_and_a_copy_goes_on),
};

}  // namespace

int main() { return run_all(tests); }
