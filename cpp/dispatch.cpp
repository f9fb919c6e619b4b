// Chooses the instruction-set level.
#include "kernels.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

#define VICINAL_DECLARE(level)              \
    namespace vicinal::level {              \
    void neighbor_kernels(Kernels& out);    \
    void online_kernels(Kernels& out);      \
    void pair_kernels(Kernels& out);        \
    void layout_kernels(Kernels& out);      \
    void density_kernels(Kernels& out);     \
    void full_layout_kernels(Kernels& out); \
    void loss_kernels(Kernels& out);        \
    }
#define VICINAL_FILL(level)                                                                     \
    level::neighbor_kernels, level::online_kernels, level::pair_kernels, level::layout_kernels, \
        level::density_kernels, level::full_layout_kernels, level::loss_kernels

#if defined(__x86_64__)
VICINAL_DECLARE(v2)
VICINAL_DECLARE(v3)
VICINAL_DECLARE(v4)
#else
VICINAL_DECLARE(native)
#endif

namespace vicinal {

namespace {

template <class... Fill>
Level make_level(const char* name, bool available, Fill... fill) {
    Level level{name, available, {}};
    (fill(level.kernels), ...);
    return level;
}

const auto& level_table() {
#if defined(__x86_64__)
    static const std::array<Level, 3> table = [] {
        __builtin_cpu_init();
        const bool has_v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
        const bool has_v3 = has_v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
        const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl");
        return std::array<Level, 3>{make_level("v2", has_v2, VICINAL_FILL(v2)),
                                    make_level("v3", has_v3, VICINAL_FILL(v3)),
                                    make_level("v4", has_v4, VICINAL_FILL(v4))};
    }();
#else
    static const std::array<Level, 1> table{make_level("native", true, VICINAL_FILL(native))};
#endif
    return table;
}

const Level& choose_level() {
    const auto& table = level_table();
    const char* forced = std::getenv("VICINAL_LEVEL");
    if (forced != nullptr && *forced != '\0') {
        for (const Level& level : table)
            if (std::string(level.name) == forced) {
                if (level.available) return level;
                throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": this processor lacks it");
            }
        throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": no such level in this build");
    }
    const Level* best = nullptr;
    for (const Level& level : table)
        if (level.available) best = &level;
    if (best == nullptr) throw std::runtime_error("vicinal needs a processor with SSE4.2 (x86-64-v2)");
    return *best;
}

}  // namespace

const Level* levels(Size& count) {
    count = static_cast<Size>(level_table().size());
    return level_table().data();
}

const Level& active_level() {
    static const Level& level = choose_level();
    return level;
}

}  // namespace vicinal
