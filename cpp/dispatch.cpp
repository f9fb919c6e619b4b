// Chooses the instruction-set level.
#include "kernels.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

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

// Which levels there are is CMake's to say.
#if defined(VICINAL_HAS_V2)
VICINAL_DECLARE(v2)
#endif
#if defined(VICINAL_HAS_V3)
VICINAL_DECLARE(v3)
#endif
#if defined(VICINAL_HAS_V4)
VICINAL_DECLARE(v4)
#endif
#if defined(VICINAL_HAS_NATIVE)
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

std::vector<Level> make_levels() {
    std::vector<Level> table;
#if defined(__x86_64__)
    __builtin_cpu_init();
    [[maybe_unused]] const bool has_v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    [[maybe_unused]] const bool has_v3 = has_v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    [[maybe_unused]] const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
#if defined(VICINAL_HAS_V2)
    table.push_back(make_level("v2", has_v2, VICINAL_FILL(v2)));
#endif
#if defined(VICINAL_HAS_V3)
    table.push_back(make_level("v3", has_v3, VICINAL_FILL(v3)));
#endif
#if defined(VICINAL_HAS_V4)
    table.push_back(make_level("v4", has_v4, VICINAL_FILL(v4)));
#endif
#if defined(VICINAL_HAS_NATIVE)
    table.push_back(make_level("native", true, VICINAL_FILL(native)));
#endif
    return table;
}

const std::vector<Level>& level_table() {
    static const std::vector<Level> table = make_levels();
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
    if (best == nullptr)
        throw std::runtime_error("vicinal needs a processor with SSE4.2 (x86-64-v2), or what this build was made for");
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
