# Everything from nothing: `make demo` and `make test` install what they need (Debian packages through sudo when
# you are not root, Python packages in .venv).

PYTHON ?= python3
VENV := .venv
# What the benchmarks compare with.
PEERS := .venv-peers
BIN := $(VENV)/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# What shardfs supports, oldest first.
VERSIONS := 3.10 3.11 3.12 3.13
PACKAGES := fuse3 libfuse3-dev pkg-config gcc libc6-dev make python3-dev python3-venv
TEST_PACKAGES := ffmpeg rsync file attr

.PHONY: help setup setup-dev demo mount test test-all check bench clean

help:
	@echo "make demo                    mount the sample dataset, look at it, unmount"
	@echo "make mount SRC=... MNT=...   mount your own (shardfs umount MNT ends it)"
	@echo "make test                    run all tests"
	@echo "make test-all                the same on every supported Python that is there"
	@echo "make check                   ruff, mypy --strict, import directions"
	@echo "make bench                   measure against the peers (takes a while)"

# $(call install,packages): the Debian packages that are not there yet
install = dpkg-query -W -f='$${Status}\n' $(1) 2>&1 | grep -qv '^install ok installed' && \
	{ $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(1) >/dev/null; } || true

$(BIN)/python:
	@$(call install,$(PACKAGES))
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --upgrade pip

$(VENV)/.installed: $(BIN)/python pyproject.toml
	@$(BIN)/pip install -q -e '.[all]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(call install,$(TEST_PACKAGES))
	@$(BIN)/pip install -q -e '.[dev]'
	@touch $@

setup: $(VENV)/.installed

setup-dev: $(VENV)/.installed-dev

demo: setup
	@$(BIN)/pip install -q Pillow soundfile
	@PATH="$(CURDIR)/$(BIN):$$PATH" demo/run

mount: setup
	@test -n "$(SRC)" -a -n "$(MNT)" || { echo "make mount SRC=<dataset> MNT=<folder>" >&2; exit 2; }
	@$(BIN)/shardfs mount "$(SRC)" "$(MNT)" && echo "mounted; end it with: $(BIN)/shardfs umount $(MNT)"

test: setup-dev
	$(BIN)/pytest -n 2 --dist loadgroup

# An interpreter is looked for on the PATH, then among those of pyenv.
test-all:
	@ran=; for version in $(VERSIONS); do \
		found=; for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
			$$python --version >/dev/null 2>&1 && { found=$$python; break; }; done; \
		test -n "$$found" || { echo "no Python $$version here"; continue; }; \
		$(MAKE) test PYTHON="$$found" VENV=".venv-$$version" || { echo "Python $$version: failed"; exit 1; }; \
		ran="$$ran $$version"; \
	done; test -n "$$ran" && echo "passed on Python$$ran"

check: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(PEERS)/.installed:
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip install -q datasets Pillow parquet-file-fs pyarrow ratarmount
	@touch $@

bench: setup-dev $(PEERS)/.installed
	$(BIN)/python -m benchmarks.litdata
	$(BIN)/python -m benchmarks.tars --ratarmount $(PEERS)/bin/ratarmount
	$(BIN)/python -m benchmarks.huggingface --datasets-python $(PEERS)/bin/python
	@$(call install,curl)
	$(BIN)/python -m benchmarks.remote --peers-python $(PEERS)/bin/python

clean:
	rm -rf $(VENV) $(VERSIONS:%=.venv-%) $(PEERS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
