# `make demo` and `make test` need nothing but Python 3.11+ and network access to a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(VENV)-torch

.PHONY: demo paper test test-core test-boxes test-hf test-vllm check bench clean

demo: $(VENV)/demo.stamp  ## the main job on shipped photos against the simulator; no key, no GPU
	$(BIN)/vpref demo

REHEARSE := rehearse=true
PAPER := outputs/paper$(if $(REHEARSE),_rehearsed)
ITEMS := detection=file data.first=4
VOTES := $(PAPER)/votes
ASK = $(BIN)/vpref $(1) --config-dir experiments/$(2) --config-name $(3) $(REHEARSE)
# Where jobs did not finish (1), the rest goes on and make ends in an error; a mistake (2) or Ctrl-C ends it at once.
SWEEP = $(call ASK,$(1),$(2),$(3)) $(4) hydra.sweep.dir=$(PAPER)/$(5) || { test $$? = 1 && echo $(PAPER)/$(5) >>$(PAPER)/unfinished; }
SWEEPS := models responders revision_depth generator_models dependence model_pairs
paper: export ASKED = $(strip $(REHEARSE) $(ITEMS))

# Given again, it goes on where it stands: finished jobs are left alone unless people's letters have changed since.
paper: $(VENV)/dev.stamp  ## every experiment and one report; rehearsed unless told otherwise (experiments/README.md)
	@mkdir -p $(PAPER) && rm -f $(PAPER)/unfinished
	@test -e $(PAPER)/asked || echo "$$ASKED" >$(PAPER)/asked
	@test "$$(cat $(PAPER)/asked)" = "$$ASKED" || { echo "$(PAPER) is of other items ($$(cat $(PAPER)/asked)); choose another folder: make paper PAPER=outputs/DIR"; exit 2; }
	$(call ASK,generate,tables_1_and_2,items) $(ITEMS) hydra.run.dir=$(PAPER)/items
	test -e $(PAPER)/survey/plan.json || $(BIN)/vpref survey plan --config-dir experiments/table_3 --config-name plan dataset=$(PAPER)/items hydra.run.dir=$(PAPER)/survey
	test -e $(VOTES)/votes.jsonl || $(BIN)/vpref survey simulate survey=$(PAPER)/survey hydra.run.dir=$(PAPER)/votes
	$(BIN)/vpref survey aggregate survey=$(PAPER)/survey $(VOTES) hydra.run.dir=$(PAPER)/labelled
	$(call SWEEP,evaluate,tables_1_and_2,models,dataset=$(PAPER)/labelled,models)
	$(call SWEEP,evaluate,responder_agreement,responders,dataset=$(PAPER)/labelled,responders)
	$(call SWEEP,generate,revision_depth,sweep,$(ITEMS),revision_depth)
	$(call SWEEP,generate,generator_models,sweep,$(ITEMS),generator_models)
	$(call SWEEP,evaluate,dependence,sweep,dataset=$(PAPER)/labelled,dependence)
	$(call SWEEP,evaluate,model_pairs,sweep,dataset=$(PAPER)/labelled,model_pairs)
	$(BIN)/vpref report $(PAPER)/labelled $(PAPER)/items $(SWEEPS:%=$(PAPER)/%) counts=paper title="The paper, anew" hydra.run.dir=$(PAPER)/report
	@test ! -e $(PAPER)/unfinished || { echo "Jobs did not finish in:" $$(cat $(PAPER)/unfinished); exit 1; }

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
