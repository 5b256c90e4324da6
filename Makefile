# Two commands matter: `make figures` and `make test`. Each sets up .venv by itself, with the exact
# versions of constraints.txt. LOCK= takes the newest versions; BIN=folder takes the environment
# whose commands lie in that folder, as it is, and installs nothing.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
JOBS ?= 2
LOCK := constraints.txt
VENV := .venv
BIN := $(VENV)/bin
CORE := $(if $(filter $(VENV)/bin,$(BIN)),$(VENV)/.core)
TEST := $(CORE:%.core=%.test)
SITE := $(CORE:%.core=%.docs)
# pip would compile one file after the other, on one CPU
BYTECODE := @$(VENV)/bin/python -m compileall -qq -j 0 -x "/tests?/" $(VENV)/lib || true
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	$(if $(LOCK),-c $(LOCK),--upgrade --upgrade-strategy eager)

.PHONY: figures venv test check nightly paper quick-reference lab lab-filter bench peers lowest lint architecture validity two-ways faults speed status \
	metadata accuracy crossing artifact artifact-costs policies-page docs sheet mutate coverage times \
	random-traces clean help FORCE

help:
	@echo "make figures  every figure and table, quick profile, gallery under build/figures"
	@echo "make venv     install into .venv and run nothing"
	@echo "make test     the test suite"
	@echo "make check    lint and the quick unit tests, for people at work"
	@echo "make nightly  the test suite with what takes longest"
	@echo "make paper    every figure and table at the paper's size, into figures/"
	@echo "make quick-reference  values of the quick profile, into figures/quick.json"
	@echo "make lab      JupyterLab on notebooks/start.ipynb; what cells print stays out of git"
	@echo "make coverage statements and branches that the tests run; build/coverage/html shows each line"
	@echo "make times    make test, then the time of the tests by folder, against a budget"
	@echo "make mutate   small faults in the source, and how many the tests find; MUTANTS=options"
	@echo "make random-traces  random traces of every policy and rule set, checked; TRACES=options"
	@echo "make bench    speed in units U"
	@echo "make lowest   lock of the lowest versions that pyproject.toml allows, into build/lowest.txt"
	@echo "make lint     ruff, mypy and the layers of the package"
	@echo "make architecture  draw the layers and count the lines for docs/architecture.md"
	@echo "make peers    speed of other simulators on the same jobs; PEERS=folder of checkouts"
	@echo "make validity compare mean completion times with closed forms; write the table of docs/quality.md"
	@echo "make two-ways compare two ways to one result on random settings; write the table of docs/quality.md"
	@echo "make faults   kill, fill disks, set clocks back; write the table of docs/quality.md"
	@echo "make speed    write the tables of docs/speed.md from the last make bench and make peers"
	@echo "make status   write README's summary and docs/status.md from the committed results"
	@echo "make metadata write CITATION.cff, codemeta.json and .zenodo.json"
	@echo "make accuracy run the cases that compare each policy with its paper's simulator; write the docs' tables"
	@echo "make crossing run every policy on a trace of every paper; write docs/crossing.md"
	@echo "make artifact write the tables of ARTIFACT.md from the committed results"
	@echo "make artifact-costs  run the experiments of ARTIFACT.md and write docs/artifact_costs.csv"
	@echo "make policies-page  write docs/policies.md and the table of shell completion from the code"
	@echo "make docs     the site, in build/docs"
	@echo "make sheet    contact sheets of all pictures, before and now, in build/sheet"
	@echo "make clean    remove .venv, build and caches inside the checkout"
	@echo "LOCK=         after any of them: the newest versions, not those of constraints.txt"
	@echo "BIN=folder    after any of them: the environment of that folder, not .venv"

figures: $(CORE)
	$(BIN)/repro run --all --profile quick -j $(JOBS)

venv: $(CORE)

paper: $(CORE)
	$(BIN)/repro run --all --profile paper -j $(JOBS) --out figures

# Once without public traces and once with all of them; the second time only figures that use some are
# not current. `check` exits 1 on a miss without a deviation, and then the reference stays as it is.
REFERENCE := build/reference
NO_NETWORK := https_proxy=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9
quick-reference: $(CORE)
	rm -f $(REFERENCE)/quick.json
	env -u REPRO_TRACE_MIRROR REPRO_CACHE_DIR="$(CURDIR)/$(REFERENCE)/cache" $(NO_NETWORK) \
		$(BIN)/repro run --all --profile quick -j $(JOBS) --out $(REFERENCE)/results
	$(BIN)/repro check --out $(REFERENCE)/results --save $(REFERENCE)/quick.json
	$(BIN)/repro trace fetch --all
	$(BIN)/repro run --all --profile quick -j $(JOBS) --out $(REFERENCE)/results
	$(BIN)/repro check --out $(REFERENCE)/results --require-data --save $(REFERENCE)/quick.json
	cp $(REFERENCE)/quick.json figures/quick.json

test: $(TEST)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(PYTEST_ARGS)

check: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not slow and not nightly" tests/unit $(PYTEST_ARGS)

nightly: $(TEST)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "nightly or not nightly" --hypothesis-profile=new $(PYTEST_ARGS)

# mutants of the source; the run goes on where it stopped
MUTANTS ?= --sample 1500
mutate: $(TEST)
	nice $(BIN)/python -m tools.mutate run -j $(JOBS) $(MUTANTS)
	$(BIN)/python -m tools.mutate report

# statements and branches that the tests run, once with compiled loops and once without
coverage: $(TEST)
	nice $(BIN)/python -m tools.suite_coverage -j $(JOBS)

# time of the tests by folder, against a budget
times: $(TEST)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --junitxml=build/tests.xml
	$(BIN)/python -m tools.suite_times build/tests.xml

# random traces of every policy and rule set; the run goes on where it stopped
TRACES ?= --traces 10000
random-traces: $(TEST)
	nice $(BIN)/python -m tools.random_traces run -j $(JOBS) $(TRACES)
	$(BIN)/python -m tools.random_traces report

bench: $(TEST)
	$(BIN)/python -m pytest tests/bench --benchmark-only $(PYTEST_ARGS)

# Other simulators have an environment of their own.
peers: $(TEST) build/peers/.installed
	$(BIN)/python tests/bench/peers.py $(if $(PEERS),"$(PEERS)")

build/peers/.installed: tests/bench/peers.txt $(LOCK)
	$(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check $(if $(LOCK),-c $(LOCK)) \
		-r tests/bench/peers.txt
	@touch $@

# The lowest versions that pyproject.toml allows, as a lock: `make figures LOCK=build/lowest.txt`.
lowest: build/lowest.txt

build/lowest.txt: pyproject.toml | $(VENV)/bin/python
	mkdir -p build
	test -x build/uv/bin/uv || { $(PYTHON) -m venv build/uv && build/uv/bin/python -m pip install --quiet uv; }
	build/uv/bin/uv pip compile --quiet pyproject.toml --extra all --extra ecos --extra test --extra crate --extra docs \
		--resolution lowest-direct --python-version 3.11 --no-annotate --no-header -o $@

lint: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

architecture: $(TEST)
	$(BIN)/python docs/architecture.py

validity: $(TEST)
	JOBS=$(JOBS) $(BIN)/python docs/validity.py

two-ways: $(TEST)
	$(BIN)/python -m tools.two_ways run
	$(BIN)/python -m tools.two_ways report

faults: $(TEST)
	$(BIN)/python docs/faults.py

speed: $(TEST)
	$(BIN)/python docs/speed.py

status: $(TEST)
	$(BIN)/python docs/status.py

metadata: $(TEST)
	$(BIN)/python docs/metadata.py

accuracy: $(TEST)
	JOBS=$(JOBS) $(BIN)/python docs/accuracy.py

crossing: $(TEST)
	$(BIN)/python docs/crossing.py

artifact: $(TEST)
	$(BIN)/python docs/artifact.py

artifact-costs: $(TEST)
	$(BIN)/python docs/artifact_costs.py

policies-page: $(TEST)
	$(BIN)/python docs/policies.py
	$(BIN)/python docs/completion.py

docs: $(SITE)
	$(BIN)/python -m sphinx -q -W --keep-going -j $(JOBS) docs build/docs
	@echo "site:     $(CURDIR)/build/docs/index.html"

# BEFORE= another commit to compare with; this one has the pictures of the first review
BEFORE ?= 4e0f6002164d1503de72a9bfbc64cd1bd9bd7782
sheet: $(CORE)
	$(BIN)/python docs/sheet.py $(BEFORE)

# The server's folder is the checkout, so that notebooks find their committed pictures.
lab: lab-filter
	JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
		$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/start.ipynb $(LAB_ARGS)

# Git gets notebooks without what running and saving them adds. A filter that fails (.venv is gone)
# stops nothing: git then takes the file as it is. rfc3987_syntax would compile a grammar each time.
lab-filter: export CLEAN = LC_ALL=C sed -E 's/^( *"display_name": )"(Python 3|\.venv).*"/\1"Python 3"/' \
	| '$(abspath $(BIN))/python' -c '$(STRIP)' --keep-id --drop-empty-cells --extra-keys '$(VOLATILE)'
STRIP := import sys; sys.modules["rfc3987_syntax"] = None; import nbstripout; nbstripout.main()
VOLATILE := $(addprefix metadata.language_info., codemirror_mode file_extension mimetype \
	nbconvert_exporter pygments_lexer version) \
	$(addprefix metadata., papermill toc-autonumbering vscode) \
	$(addprefix cell.metadata., editable jupyter papermill slideshow trusted vscode)
lab-filter: $(CORE)
	@git ls-files --error-unmatch Makefile >/dev/null 2>&1 || exit 0; \
	git config filter.repro-notebook.clean "$$CLEAN" && git -c core.quotePath=false ls-files -m -- '*.ipynb' \
	| while read -r f; do git diff --quiet -- "$$f" && git add -u -- "$$f"; done; true

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; install one or call make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Rewritten only when LOCK changes, so that another lock installs again.
$(VENV)/.lock: FORCE | $(VENV)/bin/python
	@echo "LOCK=$(LOCK)" | cmp -s - $@ || echo "LOCK=$(LOCK)" > $@

$(VENV)/.core: $(VENV)/.lock $(LOCK) pyproject.toml
	@echo "installing repro into $(VENV) with $(or $(LOCK),the newest versions) (once, one to three minutes)"
	$(PIP) -e ".[all]"
	@$(PIP) --only-binary ecos -e ".[ecos]" 2> $(VENV)/ecos.log \
		|| grep -q "No matching distribution found for ecos" $(VENV)/ecos.log || { cat $(VENV)/ecos.log; exit 2; }
	@! grep -q "No matching distribution found for ecos" $(VENV)/ecos.log \
		|| echo "no wheel of ecos for this Python: our own solver stands in for that of Gavel's simulator"
	$(BYTECODE)
	@touch $@

$(VENV)/.test: $(VENV)/.core course/pyproject.toml
	@echo "installing the course and the test tools into $(VENV) (once)"
	$(PIP) -e ".[test,crate,docs]" -e ./course
	$(BYTECODE)
	@touch $@

$(VENV)/.docs: $(VENV)/.core course/pyproject.toml
	@echo "installing the course and what builds the site into $(VENV) (once)"
	$(PIP) -e ".[docs]" -e ./course
	$(BYTECODE)
	@touch $@

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
