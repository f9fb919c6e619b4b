// Thread teams, random numbers, elementary functions and instruction-set levels.
#include "base/elementary.hpp"
#include "base/level.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "checks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace {

void team_visits_every_index_once() {
    for (int threads : {1, 2, 3, 8})
        for (Size n : {0, 1, 7, 1000, 4097})
            for (Size grain : {0, 1, 3, 1000, 100000}) {
                ThreadTeam team(threads);
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
                std::atomic<bool> sound{true};
                for (int repeat = 0; repeat < 2; ++repeat)
                    team.parallel_for(n, grain, [&](Size begin, Size end, int worker) {
                        if (worker < 0 || worker >= threads || end - begin > std::max<Size>(grain, 1)) sound = false;
                        for (Size i = begin; i < end; ++i) ++seen[i];
                    });
                CHECK(sound);
                CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 2; }));
            }
}

void team_rethrows_exceptions_and_remains_usable() {
    for (int threads : {1, 2, 4}) {
        ThreadTeam team(threads);
        std::atomic<Size> visited{0};
        CHECK(throws<std::out_of_range>([&] {
            team.parallel_for(100000, 1, [&](Size begin, Size, int) {
                ++visited;
                if (begin == 10) throw std::out_of_range("body");
            });
        }));
        CHECK(visited < 100000);
        std::atomic<Size> sum{0};
        team.parallel_for(100, 3, [&](Size begin, Size end, int) { sum += end - begin; });
        CHECK(sum == 100);
    }
}

void team_stops_when_the_poll_asks_for_it() {
    static std::atomic<bool> asked{false};
    static const std::thread::id owner = std::this_thread::get_id();
    for (int threads : {1, 2, 4}) {
        asked = false;
        const auto poll = [] {
            if (std::this_thread::get_id() != owner) ++failures;
            asked = true;
            return true;
        };
        ThreadTeam team(threads, poll, std::chrono::milliseconds(0));
        // A loop that only an interrupt ends: the other threads wait until the owner has polled.
        CHECK(throws<Interrupted>([&] {
            team.parallel_for(Size{1} << 40, 1, [&](Size, Size, int worker) {
                while (worker != 0 && !asked) std::this_thread::yield();
            });
        }));
        CHECK(asked);
    }
}

void teams_run_concurrently_and_nested() {
    std::vector<std::thread> callers;
    std::vector<Size> sums(6, 0);
    for (std::size_t c = 0; c < sums.size(); ++c)
        callers.emplace_back([&, c] {
            ThreadTeam outer(2);
            std::atomic<Size> sum{0};
            outer.parallel_for(8, 1, [&](Size, Size, int) {
                ThreadTeam inner(2);
                inner.parallel_for(1000, 10, [&](Size begin, Size end, int) { sum += end - begin; });
            });
            sums[c] = sum;
        });
    for (auto& caller : callers) caller.join();
    CHECK(std::all_of(sums.begin(), sums.end(), [](Size sum) { return sum == 8000; }));
}

// bad_alloc in any thread reaches the caller, and the team remains usable.
void team_rethrows_bad_alloc_of_any_chunk() {
    ThreadTeam team(4);
    for (Size at = 0; at < 400; at += 37) {
        CHECK(throws<std::bad_alloc>([&] {
            team.parallel_for(400, 1, [&](Size begin, Size, int) {
                if (begin == at) throw std::bad_alloc();
            });
        }));
        Size done = 0;
        team.parallel_for(400, 1, [&](Size, Size, int) { __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED); });
        CHECK(done == 400);
    }
}

void negative_jobs_count_from_all_processors() {
    const int all = resolve_jobs(-1);
    CHECK(all >= 1);
    CHECK(resolve_jobs(3) == 3);
    CHECK(resolve_jobs(-2) == std::max(1, all - 1));
    CHECK(resolve_jobs(-100000) == 1);
}

void draws_depend_on_their_key_only() {
    CHECK(stream_key(1, Stream::layout, 2) == stream_key(1, Stream::layout, 2));
    CHECK(stream_key(1, Stream::layout) != stream_key(2, Stream::layout));
    CHECK(stream_key(1, Stream::layout) != stream_key(1, Stream::phase));
    CHECK(stream_key(1, Stream::layout, 0) != stream_key(1, Stream::layout, 1));
    // SplitMix64's first output from state 0.
    CHECK(mix64(0) == 0xe220a8397b1dcdafu);
}

void draws_are_uniform() {
    constexpr std::uint32_t bins = 64;
    constexpr int draws = 64000;
    for (std::uint64_t seed : {0, 1, 12345}) {
        std::vector<int> across_rows(bins, 0), within_row(bins, 0);
        const std::uint64_t key = stream_key(seed, Stream::layout, 3);
        for (int t = 0; t < draws; ++t) {
            ++across_rows[below(draw32(row_key(key, static_cast<std::uint64_t>(t)), 1), bins)];
            ++within_row[below(draw32(row_key(key, 5), static_cast<std::uint32_t>(t)), bins)];
        }
        for (const auto& counts : {across_rows, within_row}) {
            double chi2 = 0.0;
            for (int count : counts) chi2 += std::pow(count - 1000.0, 2) / 1000.0;
            // 63 degrees of freedom: mean 63, standard deviation 11.
            CHECK(chi2 > 20.0 && chi2 < 130.0);
        }
    }
    CHECK(below(0xffffffffu, 7) == 6);
    CHECK(below(0, 7) == 0);
}

// Where the compiler has a runtime library for the question, it agrees with our reading of the processor.
void available_levels_are_those_the_compiler_finds() {
    const Level& chosen = levels()[active_level()];
    CHECK(chosen.available);
#if defined(__x86_64__) && defined(__linux__)
    __builtin_cpu_init();
    const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    for (const Level& level : levels()) {
        const std::string_view name = level.name;
        CHECK(level.available == (name == "v2" ? v2 : name == "v3" ? v3 : v4));
    }
#endif
}

// Errors of the C library's functions are below 1 unit in the last place.
void elementary_functions_are_accurate() {
    const auto units = [](double value, double wanted) {
        return std::fabs(value - wanted) / (std::nextafter(std::fabs(wanted), 1e300) - std::fabs(wanted));
    };
    for (int t = 0; t < 20000; ++t) {
        const double x = 1417.0 * t / 20000.0 - 707.9;
        CHECK(units(exp_exact(x), std::exp(x)) <= 2.0);
        const double y = std::exp2(2000.0 * t / 20000.0 - 1000.0) * (1.0 + 1e-3 * t);
        CHECK(units(log_exact(y), std::log(y)) <= 2.0);
        const double near_one = 1.0 + 1e-5 * (t - 10000);
        CHECK(units(log_exact(near_one), std::log(near_one)) <= 2.0);
    }
    CHECK(exp_exact(0.0) == 1.0);
    CHECK(exp_exact(-std::numeric_limits<double>::infinity()) == 0.0);
    CHECK(exp_exact(-1e4) == 0.0);
    CHECK(std::isnan(exp_exact(std::numeric_limits<double>::quiet_NaN())));
    CHECK(log_exact(1.0) == 0.0);
}

constexpr Test tests[] = {
    TEST(team_visits_every_index_once),
    TEST(team_rethrows_exceptions_and_remains_usable),
    TEST(team_stops_when_the_poll_asks_for_it),
    TEST(teams_run_concurrently_and_nested),
    TEST(team_rethrows_bad_alloc_of_any_chunk),
    TEST(negative_jobs_count_from_all_processors),
    TEST(draws_depend_on_their_key_only),
    TEST(draws_are_uniform),
    TEST(available_levels_are_those_the_compiler_finds),
    TEST(elementary_functions_are_accurate),
};

}  // namespace

int main() { return run_all(tests); }
