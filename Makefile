# Every target sets up what it needs: an environment in .venv, nothing outside of it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The versions of all packages: requirements/newest.txt, or requirements/lowest.txt, the oldest that pyproject.toml allows.
LOCK ?= newest
PIP := $(BIN)/python -m pip --disable-pip-version-check
COMPILE := $(VENV)/bin/uv pip compile --quiet --generate-hashes --no-annotate --custom-compile-command "make lock"
# Tests wait for processes about as long as they compute: two workers for each core.
JOBS ?= $(shell echo $$((2 * $$(nproc))))
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --maxprocesses 32
# Children that may change no files keep no bytecode of what they load: without it each compiles its modules anew.
BYTECODE := $(BIN)/python -m compileall -q advisor gapwatch plugins

# Not a matter of the host: without bytecode every child would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test compat lock sbom damage lint bench soak docs format clean

demo: $(VENV)/.user
	$(BYTECODE)
	$(BIN)/gapwatch demo

test: $(VENV)/.dev
	$(BYTECODE)
	$(PYTEST)

# With another Python or with LOCK=lowest: the tests that read every format and draw every screen.
compat: $(VENV)/.$(LOCK)
	$(BYTECODE)
	$(BIN)/gapwatch demo
	$(PYTEST) @tests/subset.txt

# After a change of dependencies in pyproject.toml: choose the versions anew.
lock: $(VENV)/.pip
	$(PIP) install --quiet uv
	$(COMPILE) --universal --python-version 3.11 --extra all --group dev pyproject.toml -o requirements/newest.txt
	$(COMPILE) --resolution lowest-direct --python-version 3.11 --extra all --group test pyproject.toml -o requirements/lowest.txt

# The packages of requirements/newest.txt with their hashes as a CycloneDX document.
sbom: $(VENV)/.dev
	mkdir -p build
	$(BIN)/python tools/sbom.py > build/sbom.cdx.json

damage: $(VENV)/.dev
	$(BYTECODE)
	GAPWATCH_DAMAGE=full $(PYTEST) -k "damage or cut_off or turned_over"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

soak: $(VENV)/.dev
	$(BYTECODE)
	$(BIN)/python tests/soak.py

bench: $(VENV)/.dev
	$(BYTECODE)
	$(BIN)/python -m pytest -q benchmarks
	$(BIN)/python benchmarks/speed_table.py

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
	$(PIP) install --quiet -e .
	touch $@

$(VENV)/.newest $(VENV)/.lowest: $(VENV)/.%: $(VENV)/.pip pyproject.toml requirements/%.txt
	$(PIP) install --quiet --no-compile --require-hashes -r requirements/$*.txt
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	$(PIP) check
	touch $@

$(VENV)/.dev: $(VENV)/.newest
	touch $@ $(VENV)/.user
