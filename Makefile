PY ?= .venv/bin/python
# Native extensions built in place, for work on a checkout. Serialised: two builds at once would race on build/.
native:
	flock build.lock $(PY) -c "from setuptools import setup; setup()" -q build_ext --inplace
.PHONY: native
