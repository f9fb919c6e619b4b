# Cross-compiles for macOS with the Clang and libc++ of the ziglang package, which brings what macOS programs link to.
# Nothing here can run the result: this shows that the sources compile and link. VICINAL_ZIG_TOOLS is a folder with the
# commands zig-c++, zig-ar and zig-ranlib (tests/portable/platforms.py writes it).
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_CXX_COMPILER $ENV{VICINAL_ZIG_TOOLS}/zig-c++)
set(CMAKE_AR $ENV{VICINAL_ZIG_TOOLS}/zig-ar)
set(CMAKE_RANLIB $ENV{VICINAL_ZIG_TOOLS}/zig-ranlib)
