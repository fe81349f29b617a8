# What one types here. `make demo` and `make test` need nothing but Python 3.11 to 3.13 and a network for pip.
#
# They make a virtual environment in .venv, and use it again until pyproject.toml changes. To use an environment of your
# own, in which swsdist[dev] is installed (recipes need not be): make test BIN=/path/to/environment/bin

VENV ?= .venv
BIN ?=
DEMO ?= demo
PYTEST ?=
# Workers of the tests; "WORKERS=0" for none, to debug. Tests that must not run beside each other are in one group.
WORKERS ?= 2
# How many examples a property is tried on: dev, ci or nightly (tests/conftest.py).
export HYPOTHESIS_PROFILE ?= ci

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ifeq ($(strip $(BIN)),)
bin := $(abspath $(VENV))/bin
base := environment
dev := environment-dev
else
bin := $(abspath $(BIN))
base :=
dev :=
endif

.PHONY: help demo test test-all test-cluster test-metrics coverage faults soak lint lock bench docs site notebooks quoted wheel environment \
	environment-dev clean

pytest = "$(bin)/python" -m pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 0
# Of the marks, what `make test` takes and what `make test-all` takes.
quick = not (slow or ray or compile or docs or browser or cluster or soak)
rest = (slow or ray or compile or docs or browser) and not (cluster or soak)

help:
	@echo "make demo       make a small corpus, run everything on it, show the table and where the report lies"
	@echo "make test       the tests that take no more than a few seconds each: at most 10 minutes"
	@echo "make test-all   the others: Ray, compilers, every page of the docs, whatever is slow"
	@echo "make test-cluster  those of several hosts (network namespaces: Linux, root)"
	@echo "make faults     the same; writes the table of faults, docs/reference/faults.md"
	@echo "make soak       random faults, and each kind of fault of S3, for long"
	@echo "make test-metrics  what Ray exports; installs ray[default]"
	@echo "make coverage   which lines the tests run, those of make test and all; takes an hour and more"
	@echo "make lint       ruff and mypy"
	@echo "make lock       write the image's locked requirements anew from pyproject.toml"
	@echo "make bench      the benchmarks, as ratios against a peer in the same run"
	@echo "make docs       write the generated pages anew, and run what the docs show"
	@echo "make site       build the docs as a site with search, in site/; installs mkdocs"
	@echo "make wheel      build the wheel, and run the demo from it in an environment of its own"
	@echo "make notebooks  run the notebooks, and write what they show anew"
	@echo "make quoted     write the numbers that pages quote from runs on ../shared anew"
	@echo "make clean      remove .venv, demo, site and caches"

demo: $(base)
	@"$(bin)/swsdist" demo "$(DEMO)"

test: $(dev)
	$(pytest) -m "$(quick)" $(PYTEST)

test-all: $(dev)
	$(pytest) -m "$(rest)" $(PYTEST)

# One cluster serves all its tests, so they run in one process.
test-cluster: $(dev)
	"$(bin)/python" -m pytest -n 0 -m cluster $(PYTEST)

# Random faults, and each kind of fault of S3, for hours.
soak: $(dev)
	"$(bin)/python" -m pytest -n 0 -m soak $(PYTEST)

# Ray exports metrics with its extra `default` only, which starts one more process on each node.
test-metrics: $(dev)
	"$(bin)/python" -m pip install --quiet "ray[default]"
	"$(bin)/python" -m pytest -n 0 tests/integration/test_metrics.py $(PYTEST)

# Lines of the package that `make test` runs, and those that the whole suite does. What other processes run is in neither, nor are
# compiled kernels. Nothing runs beside it, so it takes an hour and more.
coverage: run = "$(bin)/python" -m coverage run --source "$(CURDIR)/swsdist" --data-file
coverage: report = "$(bin)/python" -m coverage report --data-file
coverage: $(dev)
	"$(bin)/python" -m pip install --quiet coverage
	$(run) .coverage.quick -m pytest -n 0 -m "$(quick)" $(PYTEST)
	$(run) .coverage.rest -m pytest -n 0 -m "$(rest)" $(PYTEST)
	"$(bin)/python" -m coverage combine --keep --data-file .coverage .coverage.quick .coverage.rest
	$(report) .coverage --skip-covered
	$(report) .coverage.quick | tail -1

faults: export FAULT_TABLE := $(CURDIR)/docs/reference/faults.md
faults: $(dev)
	"$(bin)/python" -m pytest -n 0 -m cluster --durations=0 tests/integration/cluster $(PYTEST)

lint: $(dev)
	"$(bin)/ruff" check .
	"$(bin)/ruff" format --check .
	"$(bin)/mypy" -p swsdist -p examples -p tests.support -p tests.oracles -p tools -p swsdist_recipes

lock: $(base)
	"$(bin)/python" deploy/lock.py

bench: $(dev)
	"$(bin)/python" -m benchmarks

docs: $(dev)
	"$(bin)/python" -m tools.pages
	$(pytest) tests/docs $(PYTEST)

# A link that leads nowhere, or a page that mkdocs.yml does not list, ends it.
site: $(base)
	@"$(bin)/python" -c "import mkdocs" 2> /dev/null || "$(bin)/python" -m pip install --quiet -e ".[site]"
	"$(bin)/python" -m mkdocs build --strict --site-dir site

# What a user installs, without the checkout.
wheel: $(base)
	rm -rf dist/environment dist/demo
	"$(bin)/python" -m pip wheel --quiet --no-deps --wheel-dir dist .
	"$(bin)/python" -m venv dist/environment
	dist/environment/bin/pip install --quiet dist/swsdist-*.whl
	cd dist && environment/bin/swsdist help serve-an-archive > /dev/null && environment/bin/swsdist --cite && environment/bin/swsdist demo demo

notebooks: $(dev)
	"$(bin)/python" -m tools.notebook_pages

quoted: $(dev)
	"$(bin)/python" -m tools.quoted_results

# A stamp holds the hash of both pyproject.toml and the place of this checkout, so a fresh clone over an old .venv is noticed.
environment:
	@VENV="$(VENV)" .ci/environment

environment-dev:
	@VENV="$(VENV)" .ci/environment dev

clean:
	rm -rf "$(VENV)" "$(DEMO)" site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
