# Every target is the only command needed on a fresh clone: it makes the virtual environment it runs in. Stamps in .venv
# say what is installed there, so that a second run starts at once.
PYTHON ?= python3
PYTEST_ARGS ?= -n 2

BIN := .venv/bin
SOURCES := pyproject.toml README.md LICENSE $(shell find ndpool backends -not -path '*__pycache__*')

# Nothing may import the tree by accident: `python -m` and `python -c` would put the current folder first.
export PYTHONSAFEPATH := 1
unexport PYTHONPATH

.PHONY: demo test lint bench asv dev clean

demo: .venv/stamp-demo .venv/stamp-wheel
	$(BIN)/ndpool demo

test: .venv/stamp-test .venv/stamp-wheel
	NDPOOL_TEST_WHEEL=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

lint: .venv/stamp-lint .venv/stamp-wheel
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/stamp-bench .venv/stamp-wheel
	$(BIN)/python asv_bench/versus.py

# The benchmarks of ndpool alone, on the installed wheel.
asv: .venv/stamp-bench .venv/stamp-wheel
	cd asv_bench && ../$(BIN)/python -m asv machine --yes
	cd asv_bench && ../$(BIN)/python -m asv run -E existing:../$(BIN)/python

# For contributors: edits in the tree take effect at once. The next `make test` puts the wheel back.
dev: .venv/stamp-test .venv/stamp-lint
	rm -f .venv/stamp-wheel
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .

clean:
	rm -rf .venv dist

# `pip install --group` came with pip 25.1.
.venv/stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ndpool needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	touch $@

.venv/stamp-build: .venv/stamp-venv pyproject.toml
	$(BIN)/python -m pip install --quiet --group build
	touch $@

# The wheel is installed, never the tree: a file that the wheel lacks must fail here. It is removed first because pip
# keeps an installed wheel of the same version.
.venv/stamp-wheel: .venv/stamp-build $(SOURCES)
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m pip uninstall --quiet --yes ndpool
	$(BIN)/python -m pip install --quiet dist/ndpool-*.whl
	touch $@

# The groups and extras depend on pyproject.toml alone; the wheel only has to be there (`|`).
.venv/stamp-test: pyproject.toml | .venv/stamp-wheel
	$(BIN)/python -m pip install --quiet --group test
	touch $@

.venv/stamp-lint: pyproject.toml | .venv/stamp-wheel
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

.venv/stamp-bench: pyproject.toml | .venv/stamp-wheel
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

.venv/stamp-demo: pyproject.toml | .venv/stamp-wheel
	$(BIN)/python -m pip install --quiet "$$(echo dist/ndpool-*.whl)[nifti,plot,numba]"
	touch $@
