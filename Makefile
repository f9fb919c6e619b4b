# Each target sets up what it needs: a virtual environment, the build, the extras.
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard cpp/*) $(shell find src -name '*.py*' -not -path '*/__pycache__/*')
CXX_FILES := $(wildcard cpp/*.cpp cpp/*.hpp tests/cpp/*.cpp)

.PHONY: demo test bench lint format sanitize clean setup

setup: $(VENV)/.installed

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[app,torch,dev]'
	@touch $@

demo: setup
	$(BIN)/vicinal demo --out out

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

# The C++ tests, then contract and parity tests, on a core built with AddressSanitizer and UBSan. Timed tests and
# those that fork are for the release build only.
SANITIZED := build/sanitized
SANITIZED_TESTS := $(addprefix tests/contract/test_,callback.py errors.py input.py transform.py) tests/parity
CMAKE_SANITIZED := $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DVICINAL_SANITIZE=address,undefined
sanitize: setup
	$(CMAKE_SANITIZED) -B $(SANITIZED)/core -DVICINAL_CORE_TESTS=ON > /dev/null
	$(BIN)/cmake --build $(SANITIZED)/core
	$(SANITIZED)/core/core_tests
	$(CMAKE_SANITIZED) -B $(SANITIZED)/module -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
	    -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) > /dev/null
	$(BIN)/cmake --build $(SANITIZED)/module
	rm -rf $(SANITIZED)/site && mkdir -p $(SANITIZED)/site && cp -r src/vicinal $(SANITIZED)/site/
	rm -f $(SANITIZED)/site/vicinal/_core*.so && cp $(SANITIZED)/module/_core*.so $(SANITIZED)/site/vicinal/
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED)/site VICINAL_SANITIZED=1 \
	    $(BIN)/python -m pytest -p no:cacheprovider $(SANITIZED_TESTS)

$(BENCH_VENV)/.installed: benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	@touch $@

bench: setup $(BENCH_VENV)/.installed
	$(BIN)/python benchmarks/run.py all

clean:
	rm -rf build dist out $(VENV) $(BENCH_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
