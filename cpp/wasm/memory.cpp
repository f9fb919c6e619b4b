#include "wasm/calls.hpp"

#include <cstdlib>

namespace vicinal::wasm {

namespace {
std::string last_error;
}

void remember(const char* message) { last_error = message; }

}  // namespace vicinal::wasm

void* vicinal_allocate(std::size_t bytes) { return std::malloc(bytes); }
void vicinal_release(void* memory) { std::free(memory); }
const char* vicinal_error() { return vicinal::wasm::last_error.c_str(); }
