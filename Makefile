# make demo    the main job on real input: text -> tokens -> blend -> batches -> resume
# make test    everything: lint, types, tests
# Both need only Python >= 3.11, make and a package index; they work in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint types unit test-ceph bench clean

demo: $(VENV)/.coredata
	$(BIN)/coredata demo

test: lint types unit

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest

# Storage against Ceph's gateway, from Debian's packages; installs them, which needs root.
test-ceph: $(VENV)/.test
	scripts/with_ceph.sh $(BIN)/python -m pytest tests/storage

bench: $(VENV)/.test
	$(BIN)/python -m scripts.bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coredata needs Python >= 3.11; say which with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.coredata: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing coredata into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.coredata
	@echo "installing what the tests need (the PyTorch and Megatron reference among them)"
	@$(PIP) --editable '.[test,parity,adapters]'
	@$(PIP) --no-deps trl==1.16.0  # for its chat templates, which are only read
	@touch $@
