# Everything a developer runs; `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# An interpreter for .venv, 3.11 to 3.13: `make setup PYTHON=python3.12`.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3 || echo python3)
BIN := .venv/bin
# Processes that share the tests among them, one more than the two cores that these are measured on: tests of services
# wait for these a third of their time (7:58 in place of 12:02, one run after the other).
WORKERS ?= 3
# Read from pyproject.toml, so that there is one pin.
pin = $(shell sed -n 's/^ *"\($(1)==[^"]*\)".*/\1/p' pyproject.toml | head -n 1)
TORCH := $(call pin,torch)
UV := $(call pin,uv)
# What is installed is not compiled: each module is when it is first imported, and that is to be kept.
unexport PYTHONDONTWRITEBYTECODE
STAMP := .setup/installed-$(shell cksum < pyproject.toml | tr -d ' ')

.PHONY: help setup generator demo up down status logs lint format test test-fast contracts goldens goldens-check clean distclean help-more

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  make help-more lists what checks releases (deploy/checks.mk) and what measures (tests/bench/measure.mk)."

help-more:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' deploy/checks.mk tests/bench/measure.mk

setup: $(STAMP) ## Install the mesh into .venv (once, and again when pyproject.toml changes).
	@:

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "error: Cragmesh needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "       Name another: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "==> creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv

# Which torch it is, is the index's choice: PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS can point to the CPU build, and pip's
# other settings count as well.
$(STAMP): .venv/pyvenv.cfg
	@echo "==> installing pip and $(UV)"
	@$(BIN)/python -m pip install --quiet --upgrade pip "$(UV)"
	@echo "==> installing cragmesh"
	@$(BIN)/python -m services.generator.installer --editable ".[gateway,retriever,reranker,classifier,kg,searcher,torch,evaluator,trainer,deploy,load,dev]"
	@mkdir -p .setup && rm -f .setup/installed-* && touch $@

generator: setup ## Make the generator's environment (vLLM) and its model, once: CRAGMESH_MODEL=auto|small|medium|large.
	@$(BIN)/python -m services.generator environment
	@$(BIN)/python -m services.generator prepare

# The tests are of the small model, whichever this machine serves; what they need is made for it.
test: export CRAGMESH_MODEL = small

demo: setup generator ## Start the mesh and ask it about five web pages.
	@$(BIN)/cragmesh up
	@$(BIN)/cragmesh demo
	@echo
	@echo "The mesh is still up. Ask it:   $(BIN)/cragmesh ask \"when was k2 first climbed?\" --pages services/cli/demo"
	@echo "                Ask the graph:  $(BIN)/cragmesh kg ask \"who directed inception?\" --domain movie"
	@echo "                      Stop it:  make down"

up: setup generator ## Start the mesh.
	@$(BIN)/cragmesh up

down: ## Stop the mesh.
	@$(BIN)/cragmesh down

status: ## Show what runs.
	@$(BIN)/cragmesh status

logs: ## Follow the services' logs.
	@$(BIN)/cragmesh logs --follow

lint: setup ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## Rewrite the code in the project's style.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The types are checked beside the tests: what each prints comes in one piece.
test: setup generator ## Check everything, with the real mesh and the real vLLM.
	@{ $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy; } > .setup/lint.log 2>&1 & lint=$$!; \
	failed=0; $(BIN)/python -m pytest -m "not page" -n $(WORKERS) || failed=$$?; \
	wait $$lint || failed=$$?; cat .setup/lint.log; exit $$failed

test-fast: setup ## Run the tests that need no running mesh and no model.
	$(BIN)/python -m pytest -m "not e2e and not slow and not page" -n $(WORKERS)

contracts: setup ## Generate the OpenAPI and proto3 files from the contracts.
	@$(BIN)/cragmesh contracts

# The evaluation's part is kept outside of git, and only where its data are.
GOLDENS_NEED = setup $(if $(CRAGMESH_EVAL_DATA),out/eval-kg.sqlite)

goldens: $(GOLDENS_NEED) ## Record what the code does now, by canned services and made-up questions; ARGS="rules judge" for parts.
	$(BIN)/python -m lab.goldens record $(ARGS)

goldens-check: $(GOLDENS_NEED) ## Show what the code does otherwise than it was recorded.
	$(BIN)/python -m lab.goldens check $(ARGS)

include deploy/checks.mk tests/bench/measure.mk

clean: ## Stop the mesh and remove what can be made again quickly.
	@if [ -x $(BIN)/cragmesh ] && [ -d .run ]; then $(BIN)/cragmesh down; fi
	rm -rf .run build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

# A manifest tells a prepared model. Beside those are collections, the graph, adapters and models of one's own.
distclean: clean ## Remove the environments and the prepared models too.
	rm -rf .venv* .setup models/.cache ./*.egg-info
	@for manifest in models/*/manifest.json; do [ ! -f "$$manifest" ] || rm -rf "$$(dirname "$$manifest")"; done
	@for kept in models/* out/*; do [ ! -e "$$kept" ] || echo "kept: $$kept"; done
