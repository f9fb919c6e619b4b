# Cross-compiles for Windows with MinGW-w64 (Debian's g++-mingw-w64-x86-64-posix, whose threads are those of C++11);
# Wine runs the result. Wheels for Windows are built by clang-cl instead.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)  # no search for the compiler's DLLs at run time
