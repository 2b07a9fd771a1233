# Everything starts here: `make demo` and `make test` need Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY   = $(VENV)/.ready
export ISOGLOSS_DATA ?= ../shared/data

.PHONY: demo test test-full test-portable lint format bench bench-align bench-headline clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-full: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-portable: $(READY)
	$(BIN)/python tests/portable.py

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix src tests benchmarks examples
	$(BIN)/ruff format src tests benchmarks examples

bench: bench-align
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.speed.structures

bench-align: $(READY)
	$(BIN)/python -m benchmarks.quality.align

bench-headline: $(READY)
	$(BIN)/python -m benchmarks.headline

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache
