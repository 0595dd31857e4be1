"""The verbs: compose, check, wire, run. Each module here is one verb or one thing that all of them need."""
