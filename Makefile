# Every target sets itself up; nothing but Python 3.11+, make and git is expected.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
STAMP := .venv/.installed

# Locust patches the threads of a process that imports it, xdist's too.
WITH_LOCUST := tests/load tests/experiment

.PHONY: setup demo test check bench fuzz lock clean
.DELETE_ON_ERROR:

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "swarmlet needs Python 3.11 or later; none was found on PATH" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing what requirements.lock lists into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	$(BIN)/swarmlet demo

test: check
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --max-worker-restart 0 $(WITH_LOCUST:%=--ignore %)
	$(BIN)/python -m pytest $(WITH_LOCUST)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m benchmarks

# Raw bytes at a member for a minute; other seeds with SEED=2, longer with SECONDS=600.
SECONDS := 60
SEED := 1
fuzz: setup
	$(BIN)/python -m tests.fuzz.server --seconds $(SECONDS) --seed $(SEED)

lock: setup
	$(BIN)/pip-compile --quiet --all-extras --strip-extras --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host --output-file=requirements.lock pyproject.toml

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
