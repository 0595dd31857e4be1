"""Rules about votes, and about which annotator is asked what. Pure functions: values in, values out.

Refuses to know where votes come from, where they lie, and what a table looks like. Loads numpy only where alpha or
resampling is asked for.
"""

from vpref.voting.agreement import Alpha, Rating, alpha
from vpref.voting.annotators import check_annotators
from vpref.voting.majority import label_items, majority, votes_wanting
from vpref.voting.planning import plan_forms
from vpref.voting.sensitivity import Firmness, firmness
from vpref.voting.settling import Settled, settle

__all__ = [
    "Alpha",
    "Firmness",
    "Rating",
    "Settled",
    "alpha",
    "check_annotators",
    "firmness",
    "label_items",
    "majority",
    "plan_forms",
    "settle",
    "votes_wanting",
]
