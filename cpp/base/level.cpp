#include "base/level.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vicinal {

namespace {

[[maybe_unused]] bool processor_supports(std::string_view level) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (level == "v2") return v2;
    if (level == "v3") return v3;
    if (level == "v4") return v4;
#endif
    return level == "native";
}

Size choose_level() {
    const auto table = levels();
    const auto n = static_cast<Size>(table.size());
    const char* forced = std::getenv("VICINAL_LEVEL");
    if (forced != nullptr && *forced != '\0') {
        for (Size l = 0; l < n; ++l)
            if (std::string_view(table[l].name) == forced) {
                if (table[l].available) return l;
                throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": not supported by this processor");
            }
        throw std::runtime_error("VICINAL_LEVEL=" + std::string(forced) + ": no such level in this build");
    }
    for (Size l = n - 1; l >= 0; --l)
        if (table[l].available) return l;
    throw std::runtime_error(std::string("vicinal needs a processor that supports at least x86-64-") + table[0].name);
}

}  // namespace

#define VICINAL_LIST_LEVEL(level) {#level, processor_supports(#level)},

std::span<const Level> levels() {
    static const Level table[] = {VICINAL_FOR_EACH_LEVEL(VICINAL_LIST_LEVEL)};
    return table;
}

Size active_level() {
    static const Size level = choose_level();
    return level;
}

}  // namespace vicinal
