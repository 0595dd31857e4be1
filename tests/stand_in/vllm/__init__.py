"""Stands in for vLLM where `python -m vllm...` finds it: the same command line, the simulator's replies."""
