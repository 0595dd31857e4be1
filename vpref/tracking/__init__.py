"""The mirror of a run in Weights & Biases. Our records are the truth: whatever fails here costs one line and no run.

Knows nothing of items, reports or Hydra: it is handed names, numbers, rows and files. The W&B client is imported by
what needs it, when it needs it.
"""

from vpref.tracking.mirror import Bundle, Sheet, Tracker, Who, tracked
from vpref.tracking.offline import Mirror, find_mirrors, repoint

__all__ = ["Bundle", "Mirror", "Sheet", "Tracker", "Who", "find_mirrors", "repoint", "tracked"]
