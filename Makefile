# Every target sets up what it needs in .venv on its first call and does not reinstall on the next.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint format bench bench-sparsity bench-speed clean

demo: $(VENV)/.core
	$(BIN)/python examples/construct_a_network.py

# The workers of the test runner share the cores; BLAS threads on top of them would only wait for each other.
test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-sparsity bench-speed

bench-sparsity: $(VENV)/.bench
	$(BIN)/python -m benchmarks.sparsity

bench-speed: $(VENV)/.bench
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ltinet needs Python 3.11 or newer; call make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@
