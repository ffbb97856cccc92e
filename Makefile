# SPDX-License-Identifier: Apache-2.0
#
# Every target sets up what it needs: a virtual environment in .venv, the build, the packages.
# A second run finds them there and starts at once.
#
#   PYTHON=...        interpreter to make .venv from (3.10 or newer)
#   CC=...            compiler
#   PYTEST_ARGS=...   for example PYTEST_ARGS='tests/unit -k gate -x'

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
export CC

C_FILES := $(sort $(shell find shim tests examples -name '*.[ch]' 2>/dev/null))
C_SOURCES := $(filter %.c,$(C_FILES))
SHIM_INPUTS := build.py $(shell find shim -name '*.[chS]' -o -name '*.def' -o -name '*.map')

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
	    while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: build ## Measure alone, beside busy siblings, and beside the same siblings under KREX
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev build ## Pass the tests (PYTEST_ARGS='tests/unit -k gate -x')
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

build: $(VENV)/.cpu ## Build the preload library and the cffi module in place
	@$(BIN)/python build.py

# On a machine with a GPU, by the Python that has PyTorch and the like: without .venv, which needs a
# network. GPU_PYTHON names it; GPU_CHECK_ARGS='--only a,c' and so on, see docs/gpu-check.md.
GPU_PYTHON ?= python3
GPU_BUNDLE := build/gpu-bundle

gpu-check: ## Check KREX on a real NVIDIA GPU (8 minutes; exits with 77 where there is none)
	@$(GPU_PYTHON) tests/gpu/check.py $(if $(wildcard $(GPU_BUNDLE)/*.whl),--wheels $(GPU_BUNDLE)) \
	    $(GPU_CHECK_ARGS)

# KREX, and the wheels that it imports: for the Python there, which need not be the one here.
GPU_PYTHON_VERSION ?= 3.12
gpu-check-bundle: $(VENV)/.cpu ## Put what gpu-check needs there into build/gpu-bundle (needs pip here)
	@rm -rf $(GPU_BUNDLE) build/lib.* build/bdist.*
	@$(PIP) wheel --no-deps --wheel-dir $(GPU_BUNDLE) .
	@$(PIP) download --only-binary=:all: --implementation cp --python-version $(GPU_PYTHON_VERSION) \
	    $(foreach tag,linux manylinux_2_28 manylinux_2_17 manylinux2014 manylinux_2_5 manylinux1,--platform \
	    $(tag)_$$(uname -m)) --dest $(GPU_BUNDLE) $(GPU_BUNDLE)/krex_gpu-*.whl
	@ls $(GPU_BUNDLE)/*.whl
.PHONY: gpu-check gpu-check-bundle

# The environment. Stamps, so that it is made once and again when pyproject.toml changes.

$(VENV)/.made:
	@for python in $${PYTHON:-} python3 python3.{14,13,12,11,10}; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	        echo "setting up $(VENV) with $$("$$python" --version)"; \
	        "$$python" -m venv --clear $(VENV) && touch $@ && exit 0; \
	        echo 'make: no virtual environment: Debian and Ubuntu need apt-get install python3-venv' >&2; \
	        exit 1; \
	    fi; \
	    if [[ $$python == "$${PYTHON:-}" ]]; then \
	        echo "make: PYTHON=$$python is not a Python of 3.10 or newer" >&2; exit 1; \
	    fi; \
	done; \
	echo 'make: no Python of 3.10 or newer on PATH; install one, or say make PYTHON=/path/to/python3' >&2; \
	exit 1

# An editable install: .venv runs what is in the tree. build.py also rebuilds without it.
$(VENV)/.cpu: $(VENV)/.made pyproject.toml
	@echo 'installing krex, and a runtime that executes kernels on the CPU'
	@$(PIP) install -e '.[cpu]'
	@touch $@

$(VENV)/.dev: $(VENV)/.cpu
	@echo 'installing what the tests and the linters need'
	@$(PIP) install -e '.[cpu,dev]'
	@touch $@

# Real clients of the vendors' drivers, for tests: large, so only where asked, and in an environment of
# their own, because some of them hook into the start of every interpreter.
CLIENTS := .venv-clients
CLIENT_LISTS := $(wildcard tests/integration/*/clients/requirements.txt)
CLIENT_LISTS_ALONE := $(wildcard tests/integration/*/clients/alone.txt)

$(CLIENTS)/.made: $(VENV)/.made $(CLIENT_LISTS) $(CLIENT_LISTS_ALONE)
	@echo 'installing clients of the drivers into $(CLIENTS) (2 GB)'
	@$(BIN)/python -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python -m pip --quiet --quiet --disable-pip-version-check install \
	    $(CLIENT_LISTS:%=-r %)
	@$(CLIENTS)/bin/python -m pip --quiet --quiet --disable-pip-version-check install --no-deps \
	    $(CLIENT_LISTS_ALONE:%=-r %)
	@echo 'now: krex run --sim -- $(CLIENTS)/bin/python examples/bench_cuda.py'
	@touch $@

clients: $(CLIENTS)/.made hip-files ## Install real clients of the drivers, which tests then run too
.PHONY: clients hip-files

# Headers and a library that shim/hip/api.def is compared with. Some are had by apt of Debian 12 only.
hip-files: $(VENV)/.made
	@$(BIN)/python shim/hip/gen_api.py --fetch --check && $(BIN)/python shim/hip/hip_library.py || \
	    echo 'going on without: some tests of HIP are skipped'

# One more: where PyTorch is, Triton asks it, and not the driver, which GPUs there are. PyPI has no CPU
# build for x86-64. Its own index is asked only if pip knows of none elsewhere: it would be asked for
# all that torch needs, too, and not every machine reaches it.
TORCH := .venv-torch
TORCH_LIST := tests/integration/torch-requirements.txt
TORCH_INDEX := https://download.pytorch.org/whl/cpu

$(TORCH)/.made: $(VENV)/.made $(TORCH_LIST)
	@echo "installing PyTorch's CPU build into $(TORCH) (1 GB)"
	@$(BIN)/python -m venv $(TORCH)
	@pip=($(TORCH)/bin/python -m pip --quiet --quiet --disable-pip-version-check install -r $(TORCH_LIST)); \
	    "$${pip[@]}" 2>/dev/null || "$${pip[@]}" --extra-index-url $(TORCH_INDEX)
	@touch $@

torch: $(TORCH)/.made ## Install PyTorch's CPU build, which tests then run too
.PHONY: torch

# Checks in C: each tests/unit/c/NAME.c is a program of its own, linked with CHECK_CORE and with
# CHECK_SOURCES_NAME, that exits 0, or 77 to be skipped.

CHECK_CORE := $(wildcard shim/gate.c shim/closer.c)
CHECK_SOURCES_opencl_drain := $(addprefix shim/opencl/,hooks.c drain.c command.c pending.c userevent.c \
    timing.c) $(addprefix shim/,audit.c events.c streams.c arm.c region.c log.c)
CHECK_SOURCES_events := shim/events.c
CHECK_SOURCES_streams := shim/streams.c
CHECK_SOURCES_sim_image := $(addprefix shim/sim/driver/,image.c elf.c nvidia.c cubin.c ptx.c fatbin.c lz4.c) \
    shim/sim/cuda/vendor.c
CHECK_SOURCES_sim_code_object := $(addprefix shim/sim/driver/,image.c elf.c amd.c hsaco.c pack.c) \
    shim/sim/hip/vendor.c
CHECK_SOURCES_cuda_drain := shim/cuda/drain.c $(addprefix shim/gpu/,drain.c capture.c)
CHECK_SOURCES_hip_drain := $(addprefix shim/hip/,drain.c stream.c) \
    $(addprefix shim/gpu/,drain.c capture.c)
CHECK_SOURCES_ticket := shim/ticket.c
CHECK_SIM_ENGINE := $(addprefix shim/sim/device/,engine.c order.c work.c compute.c copy.c context.c \
    pace.c heap.c table.c model.c model_read.c)
CHECK_SOURCES_sim_engine := $(CHECK_SIM_ENGINE)
CHECK_SOURCES_sim_sharing := $(CHECK_SIM_ENGINE)
CHECK_SOURCES_sim_contexts := $(CHECK_SIM_ENGINE)
CHECK_SOURCES_sim_model := $(CHECK_SIM_ENGINE)
CHECK_SOURCES_sim_fuzz := $(CHECK_SIM_ENGINE)
CHECK_TESTS := $(sort $(patsubst tests/unit/c/%.c,%,$(wildcard tests/unit/c/*.c)))
CHECK_CFLAGS := -std=gnu11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -Ishim -Itests/unit/c
CHECK_VARIANTS := plain address undefined thread valgrind
CHECK_FLAGS_plain := -O2
CHECK_FLAGS_address := -O1 -fno-omit-frame-pointer -fsanitize=address
CHECK_FLAGS_undefined := -O1 -fsanitize=undefined -fno-sanitize-recover=all
CHECK_FLAGS_thread := -O1 -fsanitize=thread -Wno-unknown-warning-option -Wno-tsan
CHECK_FLAGS_valgrind := -O1
# Not "possibly lost": in a forked child those are the stacks of its parent's threads.
CHECK_RUN_valgrind := valgrind --quiet --error-exitcode=99 --leak-check=full --fair-sched=yes \
    --show-leak-kinds=definite --errors-for-leak-kinds=definite

define check_variant
build/$(1)/unit/%: tests/unit/c/%.c $$(CHECK_CORE) $$(SHIM_INPUTS)
	@mkdir -p $$(@D)
	@$$(CC) $$(CHECK_CFLAGS) $$(CHECK_FLAGS_$(1)) -o $$@ $$< $$(CHECK_CORE) $$(CHECK_SOURCES_$$*) \
	    -ldl -lpthread

check-$(1): $$(CHECK_TESTS:%=build/$(1)/unit/%)
	@for test in $$^; do \
	    status=0; KREX_CHECK=$(1) $$(CHECK_RUN_$(1)) "$$$$test" || status=$$$$?; \
	    case $$$$status in \
	        0) echo "ok       $$$$test" ;; \
	        77) echo "skipped  $$$$test" ;; \
	        *) echo "FAILED   $$$$test (exit status $$$$status)" >&2; exit 1 ;; \
	    esac; \
	done
.PHONY: check-$(1)
endef
$(foreach variant,$(CHECK_VARIANTS),$(eval $(call check_variant,$(variant))))

check-library: $(VENV)/.cpu
	@for name in address undefined thread; do $(BIN)/python build.py --sanitize=$$name; done

check: $(CHECK_VARIANTS:%=check-%) check-library ## Run the C tests under sanitizers and valgrind

bench: build ## Measure what KREX costs, and what it achieves, on this machine (minutes)
	@$(BIN)/krex eval overhead --limit 5
	@$(BIN)/krex eval overhead --limit 5 --device sim
	@$(BIN)/krex eval overhead --limit 5 --device sim-hip
	@$(BIN)/krex eval startup --limit 50
	@$(BIN)/krex eval handshake
	@$(BIN)/krex eval mix

stress: $(VENV)/.dev build ## Kill and stop everybody, at every step, 20 times (an hour)
	@KREX_TEST_ROUNDS=$${KREX_TEST_ROUNDS:-20} $(BIN)/python -m pytest tests/stress $(PYTEST_ARGS)

soak: $(VENV)/.dev build ## Submit a million times to each vendor from 16 commands at once (KREX_TEST_SUBMISSIONS)
	@KREX_TEST_SUBMISSIONS=$${KREX_TEST_SUBMISSIONS:-1000000} \
	    $(BIN)/python -m pytest -s tests/stress/test_soak.py $(PYTEST_ARGS)
.PHONY: soak

lint: $(VENV)/.dev build regen-check ## Check style, types and C
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(if $(C_FILES),$(BIN)/clang-format --dry-run -Werror $(C_FILES))
	@$(if $(C_SOURCES),printf '%s\n' $(C_SOURCES) | xargs -P "$$(nproc)" -I{} \
	    $(BIN)/clang-tidy --quiet {} -- -std=gnu11 -D_GNU_SOURCE -Ishim -Ishim/native -Itests/unit/c)

format: $(VENV)/.dev ## Format the tree, and mend what ruff can
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .
	@$(BIN)/clang-format -i $(C_FILES)

regen: build ## Write the generated files that are committed
	@$(BIN)/python shim/opencl/gen_api.py
	@$(BIN)/python -m krex.schemas
	@$(BIN)/python -m krex.presets
	@$(BIN)/python shim/cuda/gen_api.py --fetch
	@$(BIN)/python shim/hip/gen_api.py --fetch

regen-check: build ## Fail if a generated file is not what its generator writes
	@$(BIN)/python shim/opencl/gen_api.py --check
	@$(BIN)/python -m krex.schemas --check
	@$(BIN)/python -m krex.presets --check
	@$(BIN)/python shim/cuda/gen_api.py --check
	@$(BIN)/python shim/hip/gen_api.py --check

wheel: $(VENV)/.cpu ## Build a wheel into dist/
	@rm -rf build/lib.* build/bdist.*
	@$(PIP) wheel --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## Remove what was built; .venv stays
	@rm -rf build dist *.egg-info krex/lib krex/include krex/_native*.so
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
	@rm -rf .mypy_cache .ruff_cache .pytest_cache

distclean: clean ## Remove .venv too
	@rm -rf $(VENV) $(CLIENTS) $(TORCH)

.PHONY: help demo test stress bench build check check-library lint format regen regen-check wheel clean distclean

model: $(VENV)/.dev ## Check the model of the gate with spin (tests/model)
	@$(BIN)/python -m pytest tests/unit/test_model.py $(PYTEST_ARGS)
.PHONY: model
