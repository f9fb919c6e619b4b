// Instruction-set levels: the hot code is compiled once per level (x86-64-v2, v3 and v4, or "native"), and the best
// level that the processor supports is chosen at run time. VICINAL_LEVEL in the environment forces a level.
//
// The hot code of a stage is a struct of function pointers, declared in its `*_kernels.hpp`. The source `*_kernels.cpp`
// is compiled once per level with the macro VICINAL_LEVEL set and defines the struct's value in the namespace
// vicinal::VICINAL_LEVEL. CMake writes the list of levels (base/level_list.hpp).
#pragma once

#include "base/level_list.hpp"
#include "base/types.hpp"

#include <span>

// A build with VICINAL_SMALL (cpp/wasm) leaves out what only the Python module calls: rows that arrive over time,
// sparse rows, rows of other types than float, metrics that are evaluated pair by pair, and most distances of the map.
// The kernels of these are null.
#if defined(VICINAL_SMALL)
#define VICINAL_UNLESS_SMALL(kernel) nullptr
#else
#define VICINAL_UNLESS_SMALL(kernel) kernel
#endif

namespace vicinal {

struct Level {
    const char* name;
    bool available;  // supported by this processor
};

// Every level of this build, lowest first.
std::span<const Level> levels();

// Position in levels() of the level in use: the forced one, or the best available one.
// Throws std::runtime_error if there is none.
Size active_level();

}  // namespace vicinal

// Declares the table `name` of every level and a function `name()` that returns the table of the active level. Code
// compiled per level must not call this function: the linker would share one copy of it between the levels.
#define VICINAL_KERNELS(Table, name)                                                                \
    VICINAL_FOR_EACH_LEVEL(VICINAL_DECLARE_TABLE, Table, name)                                      \
    inline const Table& name() {                                                                    \
        static const Table* const tables[] = {VICINAL_FOR_EACH_LEVEL(VICINAL_TABLE_ADDRESS, name)}; \
        return *tables[active_level()];                                                             \
    }
#define VICINAL_DECLARE_TABLE(level, Table, name) \
    namespace level {                             \
    extern const Table name;                      \
    }
#define VICINAL_TABLE_ADDRESS(level, name) &level::name,
