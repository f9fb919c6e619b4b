// The golden maps within the module, so that any browser can compute them. CMake compiles tests/cpp/golden_maps.cpp
// with its main renamed.
#include "wasm/calls.hpp"

int golden_maps();

bool vicinal_golden() {
    return vicinal::wasm::call([](vicinal::ThreadTeam&) { return golden_maps() == 0; });
}
