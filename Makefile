# Needs make and a Python >= 3.11; everything else is set up in .venv, once.
# PYTHON=/path/to/python chooses another Python. `make` alone lists what there is.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
OLDEST := 3.11
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3.13 python3.12 python3.11 python3.14 python3 python)

comma := ,
NEW_ENOUGH := import sys; sys.exit(sys.version_info < ($(subst .,$(comma),$(OLDEST))))

# Finds the first candidate that really is a new enough Python with venv and pip, or says what to do.
# A name on PATH proves nothing: version managers put a stub there for versions that are not chosen.
define FIND_PYTHON
python=; bare=; \
for candidate in $(CANDIDATES); do \
	"$$candidate" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || continue; \
	bare=$$candidate; \
	"$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 || continue; \
	python=$$candidate; break; \
done; \
if [ -z "$$python" ] && [ -n "$$bare" ]; then \
	echo "make: $$bare lacks the venv or ensurepip module: install it (Debian and Ubuntu: apt install python3-venv)," >&2; \
	echo "      or name another Python: make PYTHON=/path/to/python3" >&2; exit 1; \
fi; \
if [ -z "$$python" ]; then \
	echo "make: no Python $(OLDEST) or later among:" $(CANDIDATES) >&2; \
	echo "      install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
fi
endef

# $(call SETUP,EXTRAS): the virtual environment with these extras, from whatever state it is in.
define SETUP
@if ! "$(BIN)/python" -c 'import pip; $(NEW_ENOUGH)' >/dev/null 2>&1; then \
	$(FIND_PYTHON); \
	echo "setting up $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV) || exit 1; \
fi
@echo "installing fairstream[$(1)] into $(VENV): the first time takes a minute or two"
@"$(BIN)/python" -m pip install --disable-pip-version-check --editable '.[$(1)]' || { \
	echo "make: the installation failed; the lines above say why (no network? behind a mirror, set PIP_INDEX_URL)" >&2; \
	exit 1; \
}
@touch $@
endef

$(VENV)/.run: pyproject.toml
	$(call SETUP,all)

$(VENV)/.dev: pyproject.toml
	$(call SETUP,all$(comma)dev)
	@touch $(VENV)/.run

.PHONY: help demo test lint format type unit integration chaos simulate bench compiled clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | column -t -s '#' 2>/dev/null \
		|| sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1 - \2/p' $(MAKEFILE_LIST)

demo: $(VENV)/.run ## the story on a real Kafka: one greedy tenant among eleven
	@$(BIN)/fairstream demo

# Two runs: tracing coverage makes the searching tests several times slower, and so those that play whole histories;
# they are not what it is measured by.
PLAYING := tests/unit/audit tests/unit/simulate tests/unit/bench
TRACED := $(filter-out $(PLAYING) %/__pycache__,$(wildcard tests/unit/*)) tests/golden tests/conformance

# Two at a time, a file by one of them: most of the time of a test on a real Kafka is waiting.
# More at a time means as many Kafkas; PARALLEL= alone runs one test after the other.
# In the order of `tests/conftest.py`: by itself xdist begins with the files of most tests, not of the longest ones.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

test: lint type ## everything: linters, types, all tests on a real Kafka, coverage
	$(BIN)/python -m pytest $(PARALLEL) $(TRACED) --cov --cov-report=term:skip-covered
	$(BIN)/coverage report --include='streams/core/*' --fail-under=100
	$(BIN)/python -m pytest $(PARALLEL) $(addprefix --ignore=,$(TRACED))

lint: $(VENV)/.dev ## ruff, its formatter, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev ## let ruff format and repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(VENV)/.dev ## mypy, strict, tests included
	$(BIN)/mypy

unit: $(VENV)/.dev ## the tests that need no Kafka
	$(BIN)/python -m pytest -m "not integration and not acceptance and not bench"

integration: $(VENV)/.dev ## the tests on a real Kafka, which they start
	$(BIN)/python -m pytest -m "integration and not bench"

chaos: $(VENV)/.dev ## the long form of the fault tests: 320 faults and more on three brokers, 40 minutes and more
	FAIRSTREAM_TEST_PROFILE=nightly $(BIN)/python -m pytest -m chaos -o log_cli=true -o log_cli_level=INFO

# A seed gives the same run every time: one that fails is named, and is run again by itself.
SEED := 1
SEEDS := 1000

simulate: $(VENV)/.run ## 1,000 deployments without Kafka, with faults between any two effects: ten minutes
	$(BIN)/fairstream simulate faults --seed $(SEED) --seeds $(SEEDS)

bench: $(VENV)/.run ## measure the speed end to end
	$(BIN)/fairstream bench e2e

# Built from an sdist, so that no machine code is left beside the source, where it would hide what is changed there.
# The tests run where there is no folder `streams`: they must find the one that is installed.
COMPILED := .venv-compiled
TESTED := build/compiled/tested
AGREE := -m tests.property.replayed 7

compiled: $(VENV)/.dev ## the core as machine code, in .venv-compiled, and tested there (needs a C compiler)
	@command -v $(firstword $(CC)) >/dev/null || { \
		echo "make: no C compiler '$(CC)': install gcc or clang, or name it: make compiled CC=/path/to/cc" >&2; exit 1; \
	}
	rm -rf build/compiled $(COMPILED)
	$(BIN)/python -m hatchling build -t sdist -d build/compiled
	$(BIN)/python -m venv $(COMPILED)
	CC="$(CC)" HATCH_BUILD_HOOK_ENABLE_MYPYC=1 $(COMPILED)/bin/python -m pip install --disable-pip-version-check \
		"$$(echo build/compiled/*.tar.gz)[all,dev]"
	mkdir $(TESTED) && cp -R tests schemas config pyproject.toml $(TESTED)
	cd $(TESTED) && "$(CURDIR)/$(COMPILED)/bin/python" -c "from streams.bench.core import is_compiled as it; exit(not it())"
	cd $(TESTED) && "$(CURDIR)/$(COMPILED)/bin/python" -m pytest -m "not slow and not bench" \
		tests/unit/core tests/unit/rows tests/unit/bench tests/property tests/golden tests/conformance tests/simulation \
		--ignore=tests/unit/core/test_mutations.py
	test "$$(cd $(TESTED) && "$(CURDIR)/$(COMPILED)/bin/python" $(AGREE))" = "$$($(BIN)/python $(AGREE))"

clean: ## remove the virtual environments and all caches of tools
	rm -rf $(VENV) $(COMPILED) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
