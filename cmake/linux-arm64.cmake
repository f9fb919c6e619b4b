# Cross-compiles for arm64 Linux with Debian's g++-aarch64-linux-gnu; qemu-user runs the result.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
