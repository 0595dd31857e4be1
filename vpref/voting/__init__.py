"""Rules about votes, and about which annotator is asked what. Pure functions: values in, values out.

Refuses to know where votes come from, where they lie, and what a table looks like.
"""

from vpref.voting.planning import plan_forms

__all__ = ["plan_forms"]
