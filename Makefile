# Every target sets up what it needs: a virtual environment in .venv, the development requirements, the extension
# module. What is already set up is not touched again and needs no network.

.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
# For which systems `make library` and `make serve` build: the shell finds the processor.
LIBRARY_TARGET := "$$(uname -m)-unknown-linux-gnu"
STATIC_TARGET := "$$(uname -m)-unknown-linux-musl"
# The Python of `make test-gpu`: any that has the wheel, NumPy and pytest.
GPU_TESTS := $(filter-out test_cuda_emulator.py,$(notdir $(wildcard tests/device/test_cuda_*.py)))
GPU_PYTHON ?= $(if $(wildcard $(PY)),$(abspath $(PY)),python3)

export PIP_ROOT_USER_ACTION := ignore
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-gpu lint texts bench races soak build library serve sdist check-targets docs gen develop env env-build env-docs env-wheel rust clean distclean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: env-build rust ## train a small network on the digits that ship with the package
	$(PY) tools/steps.py develop
	$(PY) -m mxnet.demo

test: env rust ## build, lint, all tests of Rust and Python
	$(PY) tools/steps.py test

test-gpu: ## tests of the GPU of this machine, with the package of GPU_PYTHON: needs no Rust and no network
	cd tests/device && MXNET_TEST_GPU=1 $(GPU_PYTHON) -m pytest --noconftest -c gpu.ini $(GPU_TESTS)

lint: env rust ## formatting, types, clippy, the shape of the tree
	$(PY) tools/steps.py lint

texts: develop ## compile every text of the CUDA kernels with NVRTC, whose package (90 MB) is installed first
	$(PY) -m pip install -q "nvidia-cuda-nvrtc>=13,<14"
	$(PY) -m pytest -q tests/device/test_cuda_texts.py

bench: develop ## benchmarks/ratios against NumPy, and the Rust benches
	$(PY) tools/steps.py bench

races: env rust ## the Rust tests under ThreadSanitizer; needs the sources of Rust's library: rustup component add rust-src
	$(PY) tools/steps.py races

soak: develop ## attacks that take long: forks, exits, killed saves, damaged files, exchange, signals, no memory
	$(PY) tests/soak/run.py $(SECONDS_EACH)
	$(PY) tests/soak/fuzz.py $(SECONDS_EACH)
	$(PY) tests/soak/leaks.py
	$(PY) tests/soak/interrupts.py
	$(PY) tests/soak/memory.py

# glibc unwinds threads with libgcc_s (docs/design/processes.md), which cannot use the unwinder that Zig would link into libraries.
UNWINDER := -C link-arg="$$(cc -print-file-name=libgcc_s.so.1)"

build: env-wheel rust ## the wheel, in dist/, for systems with glibc 2.28 or later
	rm -f dist/*.whl
	PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m maturin build --release --locked --zig --compatibility manylinux_2_28 --out dist \
	    -- $(UNWINDER)
	$(PY) tools/wheels.py dist

library: env-wheel rust ## the C library and its header, in dist/, for systems with glibc 2.28 or later
	PATH="$(abspath $(VENV))/bin:$$PATH" cargo-zigbuild rustc --release --locked -p mxnet-c --target $(LIBRARY_TARGET).2.28 \
	    -- $(UNWINDER)
	mkdir -p dist
	cp target/$(LIBRARY_TARGET)/release/libmxnet.so target/$(LIBRARY_TARGET)/release/libmxnet.a crates/ffi/c/include/*.h dist
	cp LICENSE THIRD_PARTY_LICENSES.txt sbom.cdx.json dist
	$(PY) tools/wheels.py dist

serve: env rust ## the serving example as one static file, in dist/; needs Rust's library for it: rustup target add <processor>-unknown-linux-musl
	cargo rustc --profile small --locked -p rust-serve --target $(STATIC_TARGET) -- -C relocation-model=static
	mkdir -p dist
	cp target/$(STATIC_TARGET)/small/rust-serve dist
	@ls -l dist/rust-serve

sdist: env rust ## the sources with all crates, in dist/: builds without a network
	$(PY) tools/sdist.py dist

check-targets: env rust ## type-check for other platforms whose standard library is installed
	$(PY) tools/targets.py

docs: env-docs develop ## HTML documentation, in docs/_build/html
	$(PY) -m sphinx -b html -j auto -W --keep-going docs docs/_build/html

gen: develop ## rewrite the generated files: stubs, README table, list of names not there yet
	$(PY) tools/gen.py

develop: env rust ## build the extension in place and put it into .venv
	$(PY) tools/steps.py develop

env: $(PY)
	@$(PY) tools/setup_env.py build dev

env-build: $(PY)
	@$(PY) tools/setup_env.py build

env-docs: $(PY)
	@$(PY) tools/setup_env.py build dev docs

env-wheel: $(PY)
	@$(PY) tools/setup_env.py build dev wheel

# The first Python that answers and is new enough; a launcher that only pretends to be there is passed over.
$(PY):
	@for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11 python3; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        rm -rf $(VENV); \
	        "$$python" -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); \
	        echo "$$python cannot make a virtual environment: install its venv module (Debian: apt install python3-venv)" >&2; \
	        exit 1; \
	    fi; \
	done; \
	echo "Python 3.11 or newer is needed: install it (Debian: apt install python3 python3-venv) or name one with 'make PYTHON=/path/to/python3'" >&2; \
	exit 1

rust:
	@need=$$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml); \
	have=$$(cargo --version 2>/dev/null | cut -d' ' -f2); \
	if [ -z "$$have" ]; then \
	    echo "Rust $$need or newer is needed: get it with rustup (https://rustup.rs), then put ~/.cargo/bin on PATH" >&2; exit 1; \
	fi; \
	if [ "$$(printf '%s\n%s\n' "$$need" "$$have" | sort -V | head -n 1)" != "$$need" ]; then \
	    echo "Rust $$need or newer is needed, found $$have: run 'rustup update stable'" >&2; exit 1; \
	fi

clean: ## remove everything built, keep .venv
	rm -rf target dist build docs/_build docs/api/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis demo_output
	rm -f python/mxnet/_core*.so
	find python tests tools docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	rm -rf $(VENV)
