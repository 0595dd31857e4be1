# `make demo` and `make test` need nothing but Python 3.11+ and network access to a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(VENV)-torch

.PHONY: demo test test-core test-boxes test-hf test-vllm check bench clean

demo: $(VENV)/demo.stamp  ## the main job on shipped photos against the simulator; no key, no GPU
	$(BIN)/vpref demo

test: check  ## every check and test
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-core: check  ## the same without the slow ones
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-boxes: $(TORCH)/stamp  ## the detector itself; the environment holds torch, several gigabytes
	$(TORCH)/bin/python -m pytest tests/test_detection.py tests/test_boxes_run.py

test-hf: $(TORCH)/stamp  ## tiny checkpoints in this process, in the same environment
	$(TORCH)/bin/python -m pytest tests/test_transformers.py tests/test_transformers_run.py

test-vllm: $(VENV)/dev.stamp  ## a real vLLM: VLLM_PYTHON=a Python that has it TINY_CHECKPOINTS=a folder of tiny ones
	VLLM_PYTHON=$(VLLM_PYTHON) TINY_CHECKPOINTS=$(TINY_CHECKPOINTS) $(BIN)/python -m pytest tests/test_vllm.py

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/dev.stamp  ## the cost of the machinery, beside bare loops
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/pages.py

clean:
	rm -rf $(VENV) $(TORCH) build *.egg-info

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vpref needs Python 3.11 or newer; say which: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/dev.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,wandb,dashboards,sweeps,survey,google,report,browser]'
	touch $@ $(VENV)/demo.stamp

$(TORCH)/stamp: pyproject.toml
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[boxes,hf,dev]' openvino
	touch $@
