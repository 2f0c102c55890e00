# `make demo` and `make test` set up everything they need in .venv and are fast the second time.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
LOCK   := requirements/lock.txt
ARGS   ?=

.PHONY: demo test lint generated docs check install lock clean help
.DELETE_ON_ERROR:

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

demo: $(STAMP) ## Run two tenants through two shared pools, all on this machine (ARGS="--keep" passes options)
	@exec $(BIN)/haste demo $(ARGS)

test: $(STAMP) ## Run the test suite in parallel, with branch coverage
	@exec $(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=term $(ARGS)

lint: $(STAMP) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generated: $(STAMP) ## Check that generated files are current
	$(BIN)/python tools/generate_batch_schema.py --check
	$(BIN)/python tools/generate_docs.py --check

docs: $(STAMP) ## Regenerate the generated references
	$(BIN)/python tools/generate_batch_schema.py
	$(BIN)/python tools/generate_docs.py
	$(BIN)/python -m hastegeo.settings > docs/reference/settings.md

check: lint generated test ## Everything but the demo

install: $(STAMP) ## Set up the virtual environment only

$(STAMP): $(LOCK) pyproject.toml tools/setup_venv.sh src/hastegeo/local_cloud/azurite/package-lock.json
	@PYTHON="$(PYTHON)" sh tools/setup_venv.sh "$(VENV)" "$(LOCK)"
	@touch $@

lock: $(STAMP) ## Refresh the locked versions
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra dev --no-emit-package hastegeo pyproject.toml -o $(LOCK) $(ARGS)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
