"""A server that is started, listens and ends as vLLM does, and says what the simulator says, unsigned as vLLM's.

The environment tells it to misbehave: STAND_IN_DIES (the last line of its log), STAND_IN_HANGS, STAND_IN_SERVES
(another name), STAND_IN_IGNORES (SIGTERM), STAND_IN_ENDS_AFTER (requests). STAND_IN_LOG is a simulator's log;
STAND_IN_STARTS notes each start. Like vLLM it has a child of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from aiohttp import web

from vpref.settings import SimulatorSettings
from vpref.simulator.server import Simulator


class StandIn(Simulator):
    name: str
    answered = 0

    def app(self) -> web.Application:
        app = super().app()
        app.router.add_get("/version", self.version)
        return app

    async def sign(self, request: web.Request, response: web.StreamResponse) -> None:
        pass

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.name, "object": "model", "owned_by": "vllm"}]})

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.0-stand-in"})

    async def complete(self, request: web.Request) -> web.Response:
        self.answered += 1
        if self.answered > int(os.environ.get("STAND_IN_ENDS_AFTER", "1000000")):
            print("RuntimeError: the device is lost", flush=True)
            os._exit(3)
        return await super().complete(request)


async def serve(host: str, port: int, name: str) -> None:
    with contextlib.ExitStack() as stack:
        path = os.environ.get("STAND_IN_LOG")
        log = stack.enter_context(open(path, "a", encoding="utf-8")) if path else None
        latency = float(os.environ.get("STAND_IN_LATENCY", "0"))
        stand_in = StandIn(SimulatorSettings(latency_s=latency), log)
        stand_in.name = os.environ.get("STAND_IN_SERVES", name)
        runner = web.AppRunner(stand_in.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        stop = asyncio.Event()
        if "STAND_IN_IGNORES" in os.environ:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        print("Application startup complete.", flush=True)
        await stop.wait()
        await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--model", "--served-model-name", "--host", "--revision", "--max-model-len", "--dtype"):
        parser.add_argument(option)
    parser.add_argument("--port", type=int)
    parser.add_argument("--limit-mm-per-prompt", type=json.loads)
    parser.add_argument("--enforce-eager", action="store_true")
    given = parser.parse_args()
    if path := os.environ.get("STAND_IN_STARTS"):
        with open(path, "a", encoding="utf-8") as starts:
            starts.write(json.dumps(vars(given) | {"gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}) + "\n")
    print(f"starting {given.model}", flush=True)
    if line := os.environ.get("STAND_IN_DIES"):
        print(f"Traceback (most recent call last):\n{line}", flush=True)
        sys.exit(1)
    # In a session of its own, as a worker might be: the group alone does not reach it.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    if "STAND_IN_HANGS" in os.environ:
        time.sleep(600)
    asyncio.run(serve(given.host, given.port, given.served_model_name))


if __name__ == "__main__":
    main()
