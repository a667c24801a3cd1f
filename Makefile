# make demo   a real PPO job that tracks itself, from a bare clone
# make test   the tests, in ten minutes
# make proofs the long ones: clusters, real jobs, many kills
# make quick  the tests of what changed, in a minute
# make docs   the documentation as a site with search, in build/site
# make lint types bench clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint .ci/constraints.txt
COMPILE := $(BIN)/python -m compileall -q -j 0 -x '/tests?/|/testing/' $(VENV)/lib >/dev/null 2>&1 || true
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"

# Hundreds of processes are started: each would compile again what it loads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test proofs quick docs lint types bench clean

demo: .make/demo
	@$(RUN) slime-logging demo ppo $(ARGS)

# Most tests wait for processes that they started: four workers keep two cores busy.
test: .make/test
	@$(RUN) $(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder -m "not long" $(ARGS)

# Clusters of several nodes, real jobs of other projects, hundreds of kills.
proofs: .make/test
	@$(RUN) $(BIN)/python -m pytest -n 2 --dist loadgroup -m long $(ARGS)

# The tests of what changed against main, or else of the core: under a minute.
quick: .make/test
	@$(RUN) $(BIN)/python -m tests.quick $(ARGS)

docs: .make/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file .ci/mkdocs.yml
	@echo "Open build/site/index.html in a browser."

lint: .make/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .make/test
	$(BIN)/mypy

bench: .make/test
	@$(RUN) $(BIN)/python -m tests.bench $(ARGS)

clean:
	rm -rf .make $(VENV) tracking build dist

# pip compiles one file after the other; afterwards it goes on all cores at once, without the tests of others.
# torch comes first and alone, so that nothing else chooses a build with GPU libraries for it.
.make/venv: .ci/constraints.txt
	@echo "Making $(VENV) with $(PYTHON) (about 1.2 GB, a minute or two) ..."
	@test -n "$(PYTHON)" || { echo "No python3 found; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed (3.11 is what the demo is tested with); set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "  torch ..."
	@$(PIP) torch==2.13.0
	@mkdir -p .make && touch $@

.make/demo: .make/venv pyproject.toml
	@echo "  slime_logging, megatron-core, wandb, trackio ..."
	@$(PIP) --editable '.[demo]'
	@$(COMPILE)
	@touch $@

.make/test: .make/demo pyproject.toml
	@echo "  what the tests need ..."
	@$(PIP) --editable '.[demo,tensorboard,mlflow,swanlab,docs,test]'
	@$(PIP) --no-deps trinity-rft verl  # what they ask for needs GPUs, and gigabytes
	@$(COMPILE)
	@touch $@

.make/docs: .make/venv pyproject.toml
	@echo "  what the site needs ..."
	@$(PIP) --editable '.[docs]'
	@touch $@
