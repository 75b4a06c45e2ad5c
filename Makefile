# Every target sets up what it needs in .venv on its first call and does not reinstall on the next.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test fuzz lint format docs bench bench-quick bench-sparsity bench-speed clean

# The paper, reproduced: the last line is the path of a page to open.
demo: $(VENV)/.paper
	$(BIN)/ltinet reproduce all --out build/reproduction

# The workers of the test runner share the cores; BLAS threads on top of them would only wait for each other.
test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

.PHONY: hostile
# Runs drawn to break the library, by any seed, as a table by family; HOSTILE_ARGS="--case 7/jordan/17" shows one.
hostile: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.hostile --seed $(or $(SEED),0) $(HOSTILE_ARGS)

# Damaged files by the thousand: make fuzz, or make fuzz FORMAT=mat5 N=20000 SEED=7.
fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz --count $(or $(N),5000) --seed $(or $(SEED),0) \
	  $(addprefix --format ,$(FORMAT))

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages, their pictures made by their own code; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# One BLAS thread for ltinet and its peers alike, so that ratios do not depend on what else the cores do.
BENCH = OPENBLAS_NUM_THREADS=$(or $(BLAS_THREADS),1) $(BIN)/python -m benchmarks

bench: $(VENV)/.bench
	$(BENCH) $(BENCH_ARGS)

bench-quick: $(VENV)/.bench
	$(BENCH) --quick $(BENCH_ARGS)

bench-sparsity: $(VENV)/.bench
	$(BENCH) --only sparsity

bench-speed: $(VENV)/.bench
	$(BENCH) --only construction

clean:
	rm -rf $(VENV) build dist docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis

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
