# Every target sets up what it needs: an environment in .venv, nothing outside of it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test damage lint bench docs format clean

demo: $(VENV)/.user
	$(BIN)/gapwatch demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto

damage: $(VENV)/.dev
	GAPWATCH_DAMAGE=full $(BIN)/python -m pytest -q -n auto -k "damage or cut_off or turned_over"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m pytest -q benchmarks

docs: $(VENV)/.dev
	cd docs && $(abspath $(BIN))/python -m docsite $(CURDIR)/build/site
	@echo "build/site/index.html"

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.user: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[fast]" --group dev
	touch $@ $(VENV)/.user
