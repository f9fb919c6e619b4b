// What the C++ tests share: checks, rows to search, and the way a list of tests is run.
#pragma once

#include "rng.hpp"

#include <cstdio>
#include <exception>
#include <span>
#include <vector>

namespace vicinal {

inline int failures = 0;

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) {                                               \
            std::printf("  %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                   \
        }                                                                 \
    } while (false)

template <class E, class F>
bool throws(const F& f) {
    try {
        f();
    } catch (const E&) {
        return true;
    }
    return false;
}

inline float uniform(std::uint32_t key, std::uint32_t draw) { return static_cast<float>(draw32(key, draw)) * 0x1p-32f; }

// Rows around `centres` well-separated points: structure that an approximate search can use.
inline std::vector<float> grouped_rows(Size n, Size d, std::uint32_t centres, std::uint32_t key) {
    std::vector<float> out(static_cast<std::size_t>(n * d));
    for (Size i = 0; i < n; ++i) {
        const std::uint32_t group = below(draw32(key, static_cast<std::uint32_t>(i)), centres);
        for (Size k = 0; k < d; ++k) {
            const auto cell = static_cast<std::uint32_t>(i * d + k);
            out[i * d + k] = 10.0f * uniform(key + 1, group * 1000 + static_cast<std::uint32_t>(k)) +
                             uniform(key + 2, cell) + uniform(key + 3, cell) - 1.0f;
        }
    }
    return out;
}

struct Test {
    const char* name;
    void (*run)();
};

#define TEST(function) {#function, function}

// How many of them failed.
inline int run_tests(std::span<const Test> tests) {
    int failed = 0;
    for (const Test& test : tests) {
        const int before = failures;
        std::printf("%s\n", test.name);
        std::fflush(stdout);
        try {
            test.run();
        } catch (const std::exception& error) {
            std::printf("  threw: %s\n", error.what());
            ++failures;
        }
        failed += failures > before ? 1 : 0;
    }
    return failed;
}

std::span<const Test> online_tests();

}  // namespace vicinal
