// Checks without a framework: a failed check prints where it is, and the exit status of the program reports failures.
// Each program includes this file once.
#pragma once

#include "base/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

namespace {

using namespace vicinal;

int failures = 0;

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

// Whether compute(team) returns the same finite values with one thread and with three.
template <class F>
bool same_for_any_threads(const F& compute) {
    ThreadTeam one(1), three(3);
    const auto values = compute(one);
    return std::all_of(values.begin(), values.end(), [](auto x) { return std::isfinite(x); }) &&
           values == compute(three);
}

struct Test {
    const char* name;
    void (*run)();
};

#define TEST(function) {#function, function}

// Returns the exit status of the program.
inline int run_all(std::span<const Test> tests) {
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
    std::printf("%zu tests, %d failed\n", tests.size(), failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace
