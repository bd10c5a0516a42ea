# Every target builds the environment it needs (.venv, with the first suitable Python of
# 3.12, 3.11, 3.10) and installs again only after pyproject.toml (or the file of versions in
# tools/) has changed.
#
#   make demo PYTHON=/path/to/python3.11    names the interpreter (of a new environment)
#   make test VENV=/elsewhere/venv          puts the environment elsewhere
#   make test PYTEST_ARGS="-k sphere"       hands arguments on; so do
#   NOTEBOOKS="notebooks/quickstart.py", BENCHMARK_ARGS="...", MUTANTS_ARGS="--number 30"

SHELL := bash
VENV ?= .venv
PYTHON ?=
CONSTRAINTS ?=
OVERRIDES ?=
PYTEST_ARGS ?=
NOTEBOOKS ?=
BENCHMARK_ARGS ?=
MUTANTS_ARGS ?=

python := $(VENV)/bin/python

# For the programs run here, not for the library: figures go to files, and TensorFlow's start-up
# messages stay out of the output. Both can be set from outside.
export MPLBACKEND ?= Agg
export TF_CPP_MIN_LOG_LEVEL ?= 2

# Python compiles the sources of this checkout at their first import, and stores the bytecode.
unexport PYTHONDONTWRITEBYTECODE

# Two processes, each with one thread, since four would wait for each other on two cores; a file's
# tests stay in one of them, so that its fixtures are made once, and files are run in the order that
# tests/conftest.py gives them. The slowest tests are shown at every run.
pytest = OPENBLAS_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 \
	$(python) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=15

.PHONY: help demo docs test test-slow test-all test-lowest test-numpy2 coverage mutants check format \
	notebooks benchmark wheel clean distclean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:
	@echo "make demo        run notebooks/terrain.py: a map of 124,000 heights, in a minute"
	@echo "make docs        build the site into build/site"
	@echo "make test        run the quick tests"
	@echo "make test-slow   run the tests that start processes, kill, resume or run benchmarks"
	@echo "make test-all    both together"
	@echo "make test-lowest all tests with the oldest Python, GPflow and TensorFlow allowed"
	@echo "make test-numpy2 all tests with numpy 2, which GPflow does not allow"
	@echo "make coverage    lines and branches of src that all tests together reach"
	@echo "make mutants     how many of 120 small mistakes in src the tests notice"
	@echo "make check       ruff, mypy, import-linter, the words of docstrings and pages"
	@echo "make format      let ruff format and sort the code"
	@echo "make notebooks   execute every notebook, in place (INTERDOMAIN_SMOKE=1: a short run)"
	@echo "make benchmark   run the short benchmarks"
	@echo "make wheel       build the source distribution and the wheel into dist/"
	@echo "make clean       remove what the targets wrote; distclean: and the environment"

# An environment that another checkout made serves this one too: these sources come first.
export PYTHONPATH := $(CURDIR)/src$(if $(PYTHONPATH),:$(PYTHONPATH))

# One environment, one stamp per set of extras: the demo does not wait for development tools.
$(VENV)/.installed-%: pyproject.toml $(CONSTRAINTS) $(OVERRIDES)
	@$(if $(CONSTRAINTS),PIP_CONSTRAINT="$(CURDIR)/$(CONSTRAINTS)") \
		tools/make_environment.sh "$(VENV)" "$*" "$(PYTHON)" "$(OVERRIDES)"

demo: $(VENV)/.installed-notebooks
	@$(python) tools/demo.py notebooks/terrain.py

# Warnings are errors, and every link inside the site is followed. Nothing is executed: of a notebook
# whose outputs are not stored the source is shown.
# What the gate has installed already is not installed again.
docs: $(firstword $(wildcard $(VENV)/.installed-dev) $(VENV)/.installed-docs)
	@rm -rf build/site
	@$(python) -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/site
	@echo "build/site/index.html"

test: $(VENV)/.installed-dev
	@$(pytest) -m "not slow" $(PYTEST_ARGS)

# After `make test`, everything has run, and nothing twice.
test-slow: $(VENV)/.installed-dev
	@$(pytest) -m slow $(PYTEST_ARGS)

test-all: $(VENV)/.installed-dev
	@$(pytest) $(PYTEST_ARGS)

# All tests with the oldest GPflow and TensorFlow allowed, in an environment of its own; on the
# oldest Python there is.
test-lowest:
	@$(MAKE) --no-print-directory test-all VENV="$(VENV)-lowest" \
		CONSTRAINTS=tools/lowest.txt PYTHON="$(or $(PYTHON),python3.10 python3.11 python3.12)"

# All tests with numpy 2, against GPflow's own numpy<2; also with a Python newer than
# pyproject.toml allows: make test-numpy2 PYTHON=/path/to/python3.13 VENV=.venv-3.13
test-numpy2:
	@echo "GPflow's own requirement on numpy is overridden (tools/numpy2.txt)"
	@$(MAKE) --no-print-directory test-all VENV="$(VENV)-numpy2" OVERRIDES=tools/numpy2.txt

# Each line with the tests that run it, for the mutants.
coverage: $(VENV)/.installed-dev
	@$(pytest) --cov --cov-context=test --cov-report=term:skip-covered $(PYTEST_ARGS)

mutants: coverage
	@$(python) tools/mutants.py $(MUTANTS_ARGS)

check: $(VENV)/.installed-dev
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .
	@$(python) -m mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(python) tools/words.py

format: $(VENV)/.installed-dev
	@$(python) -m ruff check --fix .
	@$(python) -m ruff format .

notebooks: $(VENV)/.installed-dev
	@$(python) tools/run_notebooks.py $(NOTEBOOKS)

benchmark: $(VENV)/.installed-dev
	@$(python) -m benchmarks $(BENCHMARK_ARGS)

wheel: $(VENV)/.installed-dev
	@rm -rf dist
	@$(python) -m build --outdir dist

clean:
	rm -rf build dist docs/gallery docs/benchmarks docs/reference docs/changes.md docs/contributing.md notebooks/output .mypy_cache .pytest_cache .ruff_cache \
		.import_linter_cache .coverage .coverage.*
	find src tests tools benchmarks notebooks -name __pycache__ -prune -exec rm -rf {} + \
		2>/dev/null || true

distclean: clean
	rm -rf "$(VENV)" "$(VENV)-lowest" "$(VENV)-numpy2"
