"""`vpref simulate`: the simulator alone, for trying a config or another program against it."""

from __future__ import annotations

from vpref.runs.folder import RunFolder
from vpref.runs.terminal import say
from vpref.settings import SimulateSettings


def simulate(settings: SimulateSettings, folder: RunFolder) -> None:
    """Serve until Ctrl-C."""
    from vpref.simulator import serve

    def ready(base_url: str) -> None:
        say(
            f"The simulator serves {base_url} until Ctrl-C. Try it from another terminal:\n"
            f"  vpref generate model@pipeline.model=compatible pipeline.model.base_url={base_url} "
            "pipeline.model.name=simulator"
        )

    serve(settings.simulator, ready)
