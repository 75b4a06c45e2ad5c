# Every target sets up what it needs in .venv on its first call and does not reinstall on the next.
# `make test PYTHON=/path/to/python3.13` uses an environment of its own for that interpreter, .venv-3.13.
PYTHON ?= python3
ifeq ($(origin PYTHON),file)
VENV   := .venv
else
VENV   := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
ifeq ($(OS),Windows_NT)
BIN    := $(VENV)/Scripts
EXE    := .exe
else
BIN    := $(VENV)/bin
endif

OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11

.PHONY: demo test test-all stress coverage hostile fuzz mutants test-kernels test-random test-oldest wheel-check lint format \
        docs bench bench-quick bench-sparsity bench-speed bench-identify bench-identify-records bench-reduce bench-fields bench-export export-agreement \
        bench-learn bench-layers bench-gpu bench-nonlinear bench-beyond-linear \
        bench-fine-tuning bench-explore soak clean

# The paper, reproduced: the last line is the path of a page to open.
demo: $(VENV)/.paper
	$(BIN)/ltinet reproduce all --out build/reproduction

# The workers of the test runner share the cores; BLAS threads on top of them would only wait for each other.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# The default tier: what is run after every change.
test: $(VENV)/.test
	$(PYTEST) $(PYTEST_ARGS)

# The default and the slow tier: what is run before a change lands.
test-all: $(VENV)/.test
	$(PYTEST) -m "not stress" $(PYTEST_ARGS)

# What takes hours, by a seed that was not run before: hostile runs, damaged files, BLAS kernels, random order, browser.
stress: hostile fuzz test-kernels test-random soak
	$(PYTEST) -m stress $(PYTEST_ARGS)

# Lines and branches that a tier executes, processes that tests start included, and the ten modules that miss most.
# make coverage TIER=all measures the default and the slow tier.
coverage: $(VENV)/.test
	rm -rf build/coverage && mkdir -p build/coverage
	-OPENBLAS_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -n auto $(if $(filter all,$(TIER)),-m "not stress") $(PYTEST_ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python tests/support/coverage_summary.py

# Runs drawn to break the library, by any seed, as a table by family; HOSTILE_ARGS="--case 7/jordan/17" shows one.
hostile: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.hostile --seed $(or $(SEED),0) $(HOSTILE_ARGS)

# Damaged files by the thousand: make fuzz, or make fuzz FORMAT=mat5 N=20000 SEED=7.
fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz --count $(or $(N),5000) --seed $(or $(SEED),0) \
	  $(addprefix --format ,$(FORMAT))

# Faults drawn in a package, and those that no test notices: make mutants PACKAGE="network error_bounds" SEED=7 N=40.
mutants: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m mutation $(or $(PACKAGE),network) --seed $(or $(SEED),0) --count $(or $(N),40)

# The default tier in random order.
test-random: $(VENV)/.test
	$(PYTEST) -p randomly -p no:cacheprovider --randomly-seed=$(or $(SEED),0) $(PYTEST_ARGS)

# What decides is compared with oracles, once with each kernel of OpenBLAS that this processor can execute.
test-kernels: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/with_kernels.py -n auto tests/oracles tests/properties tests/hostile tests/trust $(PYTEST_ARGS)

# The default and the slow tier with the oldest versions that pyproject.toml allows, in an environment of its own.
test-oldest: $(OLDEST)/.installed
	OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n auto -m "not stress" $(PYTEST_ARGS)

# The built wheel in an empty environment, as the README says to install it, with the first example there.
wheel-check:
	rm -rf build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel/dist .
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls build/wheel/dist/*.whl)[plot]"
	build/wheel/bin/python tests/readme_example.py

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

# 200 systems drawn at random: orders, confidence of poles, fits, delays; make bench-identify COUNT=40 SEED=7.
bench-identify: $(VENV)/.bench
	$(BENCH).identify_monte_carlo --count $(or $(COUNT),200) --workers $(or $(WORKERS),2) --seed $(or $(SEED),15)

# Measured records beside the repository, given and chosen order, and four families of systems beside their peers.
bench-identify-records: $(VENV)/.bench
	$(BENCH).identify_records
	$(BENCH).identify_families --count $(or $(COUNT),40) --workers $(or $(WORKERS),2)

# Reductions beside those of pyMOR and python-control; bounds of 500 systems drawn at random judged in balls.
# make bench-reduce REDUCE_ARGS=--largest adds plates of a million states.
bench-reduce: $(VENV)/.bench
	$(BENCH).reduction $(REDUCE_ARGS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/reduction_violations.py --count $(or $(COUNT),500)

# Bode plot, responses and lifted fields of a heat plate of 50,176 unknowns; make bench-fields FIELDS_ARGS="--edge 100".
bench-fields: $(VENV)/.bench
	$(BENCH).large_fields $(FIELDS_ARGS)

# Exported C and ONNX: time per step, and where rounding takes them in 1e8 steps.
bench-export: $(VENV)/.bench
	$(BENCH).export

# Exported C, FMUs and ONNX against simulate: every data set, and 200 hostile systems.
export-agreement: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/exported_agreement.py --count $(or $(COUNT),200)

# The network in PyTorch beside associative_scan, LRU, S4D's FFT and dynoNet, on one core; make bench-learn BENCH_ARGS="--rounds 5".
bench-learn: $(VENV)/.bench $(VENV)/.torch $(VENV)/.bench-learn
	$(BENCH).learning $(BENCH_ARGS)
	$(BENCH).learning.loops

# State-space layers: time beside S4D's FFT layer, and four layers on two tasks beside LRU and GRU; make bench-layers BENCH_ARGS=--speed;
# BENCH_ARGS=--stream compares a million single steps with the whole call.
bench-layers: $(VENV)/.bench $(VENV)/.torch
	$(BENCH).learning.layers $(BENCH_ARGS)

# Silverbox, cascaded tanks and the Wiener-Hammerstein circuit, by rules that were fixed before any test.
bench-nonlinear: $(VENV)/.bench $(VENV)/.torch
	$(BENCH).nonlinear.silverbox --test
	$(BENCH).nonlinear.cascaded_tanks --test
	$(BENCH).nonlinear.wiener_hammerstein --test $(BENCH_ARGS)

# Bilinear, LPV and quadratic models beside LSODA, exponentials per step and SciPy's solvers; make bench-beyond-linear BENCH_ARGS=--quick.
bench-beyond-linear: $(VENV)/.bench
	$(BENCH).beyond_linear $(BENCH_ARGS)

# Gradient steps of a constructed start beside those of LRUs and a GRU, with the picture of the tutorial.
bench-fine-tuning: $(VENV)/.bench $(VENV)/.torch
	$(BENCH).fine_tuning --picture docs/_static/fine_tuning.png $(BENCH_ARGS)

# Layers by every way through time on a GPU that PyTorch finds, beside JAX where it is installed.
bench-gpu: $(VENV)/.bench $(VENV)/.torch
	$(BENCH).gpu $(BENCH_ARGS)

# The page in a browser: start and key presses to all plots, drags; make bench-explore EXPLORE_ARGS="--tries 10".
bench-explore: $(VENV)/.test
	$(BENCH).explore $(EXPLORE_ARGS)

# Ten minutes of random use of the page: memory stays flat, the console without an error.
soak: $(VENV)/.test
	$(BENCH).explore_soak --minutes $(or $(MINUTES),10) --seed $(or $(SEED),19)

clean:
	rm -rf .venv $(wildcard .venv-*) build dist docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ltinet needs Python 3.11 or newer; call make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.%: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

$(OLDEST)/.installed: pyproject.toml
	rm -rf $(OLDEST)
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST_PYTHON) tests/oldest_versions.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -e . -r $(OLDEST)/oldest.txt
	@touch $@
