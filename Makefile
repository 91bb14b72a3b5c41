# `make demo` and `make test` need Python 3.11 or newer, git and make; everything else they set up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-system trial-api torture soak bench check format clean lock

demo: $(VENV)/.ready
	$(BIN)/ishiki demo

test: $(VENV)/.ready-dev
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

# As `make test`, on a Debian system, with the packages that some tests need; nothing is skipped then.
test-system: $(VENV)/.ready-dev
	apt-get update -q && apt-get install -y -q --no-install-recommends jq gawk tmux
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --nothing-skipped

# The trial of the HTTP API against its own description, for longer than in `make test`: some twenty minutes.
trial-api: $(VENV)/.ready-dev
	API_TRIAL_EXAMPLES=1000 API_TRIAL_PHASES=coverage,fuzzing $(BIN)/python -m pytest -q --timeout=0 \
		tests/bots/web/test_described.py

# The crash trials of `make test` for as long as it takes to believe them: hours.
torture: $(VENV)/.ready-dev
	TORTURE=50 TORTURE_POWER=50 TORTURE_KILLS=3000 $(BIN)/python -m pytest -q --timeout=0 \
		tests/torture tests/core/sessions/test_machine.py --deselect tests/torture/test_soak.py

# An hour of traffic and trouble, and a runtime that takes a tenth of what comes: nothing grows.
soak: $(VENV)/.ready-dev
	SOAK_MINUTES=60 $(BIN)/python -m pytest -q -s --timeout=0 tests/torture/test_soak.py

# What it costs beside the bare client libraries and bare disk writes: about fifteen minutes.
bench: $(VENV)/.ready
	$(BIN)/ishiki bench

check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Resolve the dependencies of pyproject.toml anew, for all Pythons and systems at once; needs uv.
COMPILE = uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url
lock:
	$(COMPILE) --upgrade --extra dev pyproject.toml -o requirements-dev.txt
	$(COMPILE) -c requirements-dev.txt pyproject.toml -o requirements.txt
	printf 'editables\nhatchling\n' | $(COMPILE) -c requirements-dev.txt - -o requirements-build.txt

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo >&2 \
		"ishiki-bots needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.ready: $(VENV)/.made requirements.txt requirements-build.txt pyproject.toml
	$(PIP) install --require-hashes -r requirements-build.txt
	$(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q core bots
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV)
