"""What vpref's machinery costs beside the bare requests: `python benchmarks/overhead.py [--quick]`.

Whole processes on one core against a local server of 50 ms latency on another: `vpref evaluate` with its records and
its durable store, and loops over the same requests that keep nothing; then `vpref --help` and `vpref generate`. No
test: a goal that is missed is printed, not failed. Nothing heavy is imported at the top: the bare loops are this file
too, in processes of their own, and a child's peak memory counts from what its parent had when it was started.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
CORES = sorted(os.sched_getaffinity(0))
SIZES = (1, 200, 1000)
CLIENTS = VPREF, AIOHTTP, CACHED, OPENAI = "vpref evaluate", "bare aiohttp", "bare aiohttp, cached", "bare OpenAI SDK"
Figures: TypeAlias = dict[str, float]  # of a process and its children: `cpu` and `wall` seconds, `peak` MB, and more


def make_inputs(folder: Path) -> None:
    """Items as `vpref generate` leaves them in `<n>.jsonl` and `images`, four an image of about 160 KB."""
    import hashlib
    import io
    import random

    from PIL import Image

    from vpref.domain import Accepted, Category, Choices, Draft, Slot, make_item

    words = {"preference": "I like things sorted by colour.", "question": "What should be done with them next?"}
    choices = Choices(a="Stack the books", b="Sort the crayons by colour", c="Hang up the mugs", d="Lock the door")
    lines: list[str] = []
    (folder / "images").mkdir()
    for number in range(max(SIZES) // len(Category)):
        noise = Image.frombytes("RGB", (200, 150), random.Random(number).randbytes(3 * 200 * 150))
        noise.resize((1024, 768), Image.Resampling.BICUBIC).save(file := io.BytesIO(), "JPEG", quality=55)
        image = hashlib.sha256(file.getvalue()).hexdigest()
        (folder / "images" / f"{image}.jpg").write_bytes(file.getvalue())
        for slot in (Slot(image=image, category=category) for category in Category):
            draft = Draft(scene=f"Crayons, books and mugs on table {len(lines)}.", choices=choices, **words)
            item = make_item(slot, draft, shown=image, answer="b")
            lines.append(Accepted(slot=slot, item=item, order="abcd").model_dump_json() + "\n")
    for size in SIZES:
        (folder / f"{size}.jsonl").write_text("".join(lines[:size]), encoding="utf-8")


def serve() -> None:
    """Answers every chat request after 50 ms with the same words."""
    from aiohttp import web

    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "The answer is (b)."}}
    usage = {"prompt_tokens": 900, "completion_tokens": 6, "total_tokens": 906}
    reply = {"id": "0", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice], "usage": usage}
    body = json.dumps(reply | {"data": [{"id": "stub"}]}).encode()  # the last is what a list of models is read for

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(0.05)
        return web.Response(body=body, content_type="application/json")

    app = web.Application(client_max_size=2**26)
    app.add_routes([web.post("/v1/chat/completions", answer), web.get("/v1/models", answer)])
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", flush=True)
    web.run_app(app, sock=listening, print=None, access_log=None)


async def _each(items: Path, ask: Callable[[Path, str], Awaitable[None]]) -> None:
    """Ask about every item in the words that vpref uses, 32 at once."""
    template = (ROOT / "vpref/prompts/evaluated.md").read_text(encoding="utf-8").rstrip("\n")

    async def work() -> None:
        for line in lines:
            item = json.loads(line)["item"]
            block = [f"{name.capitalize()}: {item[name]}" for name in ("scene", "preference", "question")]
            block += [f"{letter}) {text}" for letter, text in item["choices"].items()]
            await ask(items.parent / "images" / f"{item['shown']}.jpg", template.replace("$item", "\n".join(block)))

    with items.open("rb") as lines:
        await asyncio.gather(*(work() for _ in range(32)))


def _data_url(image: Path) -> bytes:
    return b"data:image/jpeg;base64," + base64.b64encode(image.read_bytes())


async def bare_aiohttp(items: Path, url: str, images_kept: int) -> None:
    """The floor: an image's bytes spliced into the request's JSON, the reply's JSON parsed, nothing else."""
    import aiohttp

    data_url = lru_cache(images_kept)(_data_url)
    head = b'{"model":"stub","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"'
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with aiohttp.ClientSession(headers=headers) as http:

        async def ask(image: Path, text: str) -> None:
            tail = f'","detail":"high"}}}},{{"type":"text","text":{json.dumps(text)}}}]}}]}}'.encode()
            async with http.post(f"{url}/chat/completions", data=b"".join((head, data_url(image), tail))) as reply:
                assert json.loads(await reply.read())["choices"][0]["message"]["content"]

        await _each(items, ask)


async def bare_openai(items: Path, url: str) -> None:
    """The SDK's typed call, as its documentation shows it."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url) as client:

        async def ask(image: Path, text: str) -> None:
            picture = {"type": "image_url", "image_url": {"url": _data_url(image).decode(), "detail": "high"}}
            messages: Any = [{"role": "user", "content": [picture, {"type": "text", "text": text}]}]
            reply = await client.chat.completions.create(model="stub", messages=messages)
            assert reply.choices[0].message.content

        await _each(items, ask)


def measured(folder: Path, *arguments: str) -> Figures:
    """Run Python with these arguments on the client's core to its end; what it says goes to `folder/said`."""
    os.sched_setaffinity(0, {CORES[0]})  # this process's own, which the one that it starts inherits
    started = time.perf_counter()
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}  # as where it is installed
    with (folder / "said").open("w") as said:
        environment = os.environ | kept | {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
        process = subprocess.Popen([sys.executable, *arguments], stdout=said, stderr=said, env=environment)
    _, process.returncode, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{(folder / 'said').read_text()[-2000:]}")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "peak": usage.ru_maxrss / 1024}


@contextmanager
def server(*arguments: str) -> Iterator[str]:
    """A server on the other core by the command that starts it; yields its base URL, the first that it prints."""
    os.sched_setaffinity(0, {CORES[-1]})
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
        finally:
            process.terminate()


def evaluation(client: str, size: int, folder: Path, url: str) -> Figures:
    """One client over one dataset; vpref with a store that knows nothing yet."""
    items = folder / f"{size}.jsonl"
    if client != VPREF:
        return measured(folder, __file__, client, str(items), url)
    model = ["model@evaluated=compatible", "model@extractor=null", f"evaluated.base_url={url}", "evaluated.name=stub"]
    figures = vpref(folder, "evaluate", f"dataset={items}", "evaluated.limits.concurrency=32", *model)
    assert figures["calls"] == size  # were two requests equal, vpref would send one
    return figures


def vpref(folder: Path, verb: str, *arguments: str) -> Figures:
    """A verb with an empty store; `calling` is seconds from first call to last, `chain` the most calls of an item."""
    with tempfile.TemporaryDirectory(dir=folder) as outputs:
        quiet = ["tracking=none", "driver.progress=none", f"outputs={outputs}"]
        figures = measured(folder, "-m", "vpref", verb, *arguments, *quiet)
        (run,) = Path(outputs, verb).iterdir()
        summary = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["summary"]
        records = (run / f"{'items' if verb == 'generate' else 'responses'}.jsonl").read_bytes().splitlines()
    chain = max(len(json.loads(record)["calls"]) for record in records)
    return figures | {"calls": summary["calls"]["sent"], "calling": summary["seconds"], "chain": chain}


def least(runs: list[Figures]) -> Figures:
    """Each figure at its least: whatever else the machine does only adds to it."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main(repeats: int) -> None:
    """Measure all and print it. Clients take turns, so that other work on the machine hits all alike."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured(folder, __file__, "inputs", name)
        runs: dict[tuple[str, int], list[Figures]] = {(client, size): [] for client in CLIENTS for size in SIZES}
        with server(__file__, "serve") as url:
            for size in (1, *SIZES * repeats):  # once more at first, when byte code is compiled and files are cached
                for client in CLIENTS:
                    runs[client, size].append(evaluation(client, size, folder, url))
        manual = least([measured(folder, "-m", "vpref", "--help") for _ in range(5)])
        simulate = ["simulate", "simulator.latency_s=0.05", "simulator.issues.wrong_scene_description=0.2"]
        with server("-m", "vpref", *simulate, f"outputs={folder / 'simulator'}") as url:
            given = ["data.first=8", f"pipeline.model.base_url={url}", "pipeline.model.name=simulator"]
            given = ["generate", f"data.root={folder / 'images'}", "model@pipeline.model=compatible", *given]
            few, many = (least([vpref(folder, *given, f"samples={n}") for _ in range(repeats)]) for n in (1, 4))
    cores = "a core each for client and server" if len(CORES) > 1 else "ONE core for client and server: not comparable"
    print(f"160 KB JPEGs, 32 requests at once, a server of 50 ms, {cores}; the least of {repeats} runs.")
    report({key: least(figures) for key, figures in runs.items()}, few, many, manual["wall"])


def report(costs: dict[tuple[str, int], Figures], few: Figures, many: Figures, manual: float) -> None:
    """A table of the clients, a line on generation, and what was aimed at."""
    from rich.console import Console
    from rich.table import Table

    one, low, high = SIZES
    cpu, wall = ({c: (costs[c, high][f] - costs[c, low][f]) / (high - low) for c in CLIENTS} for f in ("cpu", "wall"))
    heads = ("start-up CPU s", "CPU ms/item", "x bare aiohttp", "items/s", f"peak MB at {low}", f"at {high:,}")
    table = Table("client", *heads)
    for c in CLIENTS:
        figures = [costs[c, one]["cpu"], cpu[c] * 1e3, cpu[c] / cpu[AIOHTTP], 1 / wall[c]]
        table.add_row(c, *(f"{x:.3g}" for x in (*figures, costs[c, low]["peak"], costs[c, high]["peak"])))
    Console(width=110).print(table)
    a_call = (many["cpu"] - few["cpu"]) / (many["calls"] - few["calls"]) * 1e3
    print(
        f"generate, 8 photos x 4 categories: {few['calls']} calls in {few['calling']:.2f} s, up to {few['chain']} of "
        f"them one after another; {few['wall']:.2f} s as a process.\nCPU {few['cpu'] / few['calls'] * 1e3:.0f} ms a "
        f"call, {a_call:.1f} ms without start-up. The authors' code: 15 s as a process, CPU 30-45 ms a call.\n"
    )
    goals = [
        ("evaluate, CPU an item", cpu[VPREF] / cpu[AIOHTTP], 2, "x bare aiohttp"),
        ("evaluate, start-up CPU", costs[VPREF, one]["cpu"], 2, "s"),
        (f"evaluate, peak memory at {high:,} items", costs[VPREF, high]["peak"], 120, "MB"),
        (f"evaluate, peak memory beside {low} items", costs[VPREF, high]["peak"] / costs[VPREF, low]["peak"], 1.1, "x"),
        ("generate, first call to last", few["calling"], 1, "s"),
        ("vpref --help", manual, 0.3, "s"),
    ]
    for what, value, limit, unit in goals:
        print(f"{'met' if value <= limit else 'MISSED':7} {what}: {value:.3g} {unit}, aimed at {limit} at most")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["inputs", folder]:
            make_inputs(Path(folder))
        case ["serve"]:
            serve()
        case [client, items, url]:
            images_kept = 32 if client == CACHED else 0
            bare = bare_openai(Path(items), url) if client == OPENAI else bare_aiohttp(Path(items), url, images_kept)
            asyncio.run(bare)
        case given:
            main(1 if "--quick" in given else 3)
