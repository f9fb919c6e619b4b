// Draws rows in proportion to weights with one random number and two lookups (Walker 1977, Vose's construction).
//
// Row i of n keeps a share keep[i] / 2^32 of its n-th part of all draws and gives the rest to alias[i]. The high half
// of bits * n is i, the low half is the position within its part.
#pragma once

#include "base/types.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace vicinal {

struct AliasTable {
    std::vector<std::uint32_t> keep;
    std::vector<Index> alias;

    AliasTable() = default;

    // Built in row order, so the table depends on the weights only.
    AliasTable(const float* weights, Size n) : keep(static_cast<std::size_t>(n)), alias(keep.size()) {
        double total = 0.0;
        for (Size i = 0; i < n; ++i) {
            if (!(weights[i] >= 0.0f)) throw std::invalid_argument("a weight of a negative is below 0 or NaN");
            total += weights[i];
        }
        if (!(total > 0.0)) throw std::invalid_argument("no row has a weight above 0");
        std::vector<double> share(keep.size());
        std::vector<Index> poor, rich;
        for (Size i = 0; i < n; ++i) {
            share[i] = weights[i] / total * static_cast<double>(n);
            (share[i] < 1.0 ? poor : rich).push_back(static_cast<Index>(i));
        }
        while (!poor.empty() && !rich.empty()) {
            const Index taker = poor.back(), giver = rich.back();
            poor.pop_back();
            settle(taker, share[taker], giver);
            share[giver] -= 1.0 - share[taker];
            if (share[giver] < 1.0) {
                rich.pop_back();
                poor.push_back(giver);
            }
        }
        // The remaining shares differ from 1 by rounding only.
        for (const Index i : rich) settle(i, 1.0, i);
        for (const Index i : poor) settle(i, 1.0, i);
    }

  private:
    void settle(Index i, double share, Index other) {
        keep[i] = static_cast<std::uint32_t>(std::min(share * 4294967296.0, 4294967295.0));
        alias[i] = other;
    }
};

}  // namespace vicinal
