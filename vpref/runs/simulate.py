"""`vpref simulate`: the simulator alone, for trying a config or another program against it."""

from __future__ import annotations

from vpref.runs.folder import RunFolder
from vpref.runs.terminal import say
from vpref.settings import Service, SimulateSettings


def simulate(settings: SimulateSettings, folder: RunFolder) -> None:
    """Serve until Ctrl-C."""
    from vpref.simulator import serve

    service = settings.simulator.service

    def ready(base_url: str) -> None:
        if service is Service.none:
            who, what = "The simulator", "compatible"
        else:
            who, what = f"The simulator in the guise of {service.value}", service.value
        say(
            f"{who} serves {base_url} until Ctrl-C. Try it from another terminal:\n"
            f"  vpref generate model@pipeline.model={what} pipeline.model.base_url={base_url}"
            + (" pipeline.model.name=simulator" if service is Service.none else "")
        )

    serve(settings.simulator, ready)
