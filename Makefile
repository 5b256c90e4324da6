# Two commands matter: `make figures` and `make test`. Each sets up .venv by itself.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin

.PHONY: figures test paper lab bench lint clean help

help:
	@echo "make figures  every figure and table, quick profile, gallery under build/figures"
	@echo "make test     the test suite"
	@echo "make paper    every figure and table at the paper's size, into figures/"
	@echo "make lab      JupyterLab on the notebooks"
	@echo "make bench    speed in units U"
	@echo "make lint     ruff and mypy"
	@echo "make clean    remove .venv, build and caches inside the checkout"

figures: $(VENV)/.core
	$(BIN)/repro run --all --profile quick -j $(JOBS)

paper: $(VENV)/.core
	$(BIN)/repro run --all --profile paper -j $(JOBS) --out figures

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(PYTEST_ARGS)

bench: $(VENV)/.test
	$(BIN)/python -m pytest tests/bench --benchmark-only $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lab: $(VENV)/.core
	$(BIN)/jupyter lab notebooks

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; install one or call make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	@echo "installing repro into $(VENV) (once, one to three minutes)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary ecos -e ".[ecos]" \
		|| echo "no wheel of ecos for this Python: our own solver stands in for that of Gavel's simulator"
	@touch $@

$(VENV)/.test: $(VENV)/.core
	@echo "installing the test tools into $(VENV) (once)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
