# Needs Python 3.11+ with pip and venv, and make. Everything else goes into .venv, once per content of pyproject.toml and constraints.txt.
.DEFAULT_GOAL := help
.PHONY: help install demo test test-docs test-full test-browser bench gpu-check docs notebooks experiments lint clean
SHELL := /bin/sh

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Named after the content and not the age of the two files, so that a checkout that touches them installs nothing again.
KEY := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
CORE := $(VENV)/.core-$(KEY)
TEST := $(VENV)/.test-$(KEY)
DEV := $(VENV)/.dev-$(KEY)
DOCS := $(VENV)/.docs-$(KEY)
GPU := .venv-gpu/.gpu-$(KEY)

# Most of a test's time is compilation on one core. A file's tests stay together, because they share compiled programs.
WORKERS ?= --numprocesses auto --maxprocesses 4 --dist loadfile

# Compiled programs are kept between runs. Set here and in tests/conftest.py; importing flexjax sets nothing.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/xla
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2
# XLA notes a preference of its own as a CPU feature in programs with AVX-512, and reports it as
# missing whenever one is read from the cache. With AVX2 it does not; runs take as long.
ifeq ($(shell uname -m),x86_64)
export XLA_FLAGS ?= --xla_cpu_max_isa=AVX2
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1

define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "flexjax needs Python 3.11 or newer; this is $$($(PYTHON) --version). Choose another with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
@test -x $(PY) || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
@echo "installing flexjax $(1) into $(VENV) (about a minute and a half the first time)"
@$(PY) -m pip install --quiet --editable '.$(1)' --constraint constraints.txt
@touch $@
endef

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

install: $(CORE)  ## only installs flexjax and its command, without running anything

demo: $(CORE)  ## a tour that ends with a report to open in a browser
	@$(PY) -m flexjax demo

test: $(TEST)  ## the quick tests; says how old the full report is
	@$(PY) -m pytest -m "not slow and not docs" $(WORKERS)

test-docs: $(TEST)  ## notebooks in their short form, documented examples, the site, and the package in an empty environment
	@$(PY) -m pytest -m "docs and not slow" $(WORKERS)

test-full: $(TEST)  ## every test; writes tests/full-report.json
	@$(PY) -m pytest --full-report tests/full-report.json $(WORKERS)

test-browser: $(TEST)  ## the 3D page and the report in Chromium (apt install chromium)
	@$(PY) -m pip install --quiet --editable '.[browser]' --constraint constraints.txt
	@FLEXJAX_BROWSER=1 $(PY) -m pytest tests/viz/test_browser.py

bench: $(TEST)  ## benchmarks, results in benchmarks/results/
	@XLA_FLAGS="$(filter-out --xla_cpu_max_isa=AVX2,$(XLA_FLAGS))" $(PY) -m benchmarks.metal_link

gpu-check: $(GPU)  ## kernels, launches and memory of every formulation, compiled for an A100 without one
	@.venv-gpu/bin/python -m benchmarks.gpu_check $(GPU_CHECK)

docs: $(DOCS)  ## the documentation as a site in out/docs that works offline; a broken link is an error
	@$(PY) docs/_site.py

notebooks: $(TEST)  ## the notebooks whose text form is newer than their outputs (apt install chromium)
	@$(PY) -m pip install --quiet --editable '.[notebooks]' --constraint constraints.txt
	@XLA_FLAGS="$(filter-out --xla_cpu_max_isa=AVX2,$(XLA_FLAGS))" $(PY) notebooks/_make.py

experiments: $(TEST)  ## every paper's experiments in their quick form, and one index page: experiments/index.html
	@$(PY) -m flexjax reproduce all --quick

lint: $(DEV)  ## ruff (rules and format) and pyright
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff check --select F821 tests benchmarks docs experiments
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/pyright

clean:  ## remove the virtual environment, caches and outputs
	rm -rf $(VENV) .venv-gpu .cache .pytest_cache .ruff_cache .hypothesis out benchmarks/results experiments/index.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE):
	$(call install,)
$(TEST):
	$(call install,[test$(comma)outside])
	@touch $(CORE) $(DOCS)
$(DOCS): $(CORE)
	$(call install,[docs])
$(GPU):
	@test -x .venv-gpu/bin/python || $(PYTHON) -m venv .venv-gpu
	@echo "installing flexjax and jax[cuda12] into .venv-gpu (several GB)"
	@.venv-gpu/bin/python -m pip install --quiet --editable . "$$(grep '^jax==' constraints.txt | sed 's/jax==/jax[cuda12]==/')" --constraint constraints.txt
	@touch $@
$(DEV): $(TEST)
	$(call install,[dev])
comma := ,
