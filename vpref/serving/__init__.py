"""Servers that vpref starts for a run and ends with it, however the run ends.

`vllm` says how vLLM is started and when it serves, `keeper` is the small process that ends it, `leftovers` finds
what a killed keeper left. Refuses to know what is asked of a server.
"""
