"""Driving many coroutines at once over slow, failing models: `online` runs, `meter` counts, `progress` shows."""
