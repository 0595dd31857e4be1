"""What a report's page of 5,000 items weighs, and how long its script takes in Chromium: `python benchmarks/pages.py`.

No test: times are printed. Items, answers of five models and pictures are made up; the page is the real one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ITEMS = 5_000
MODELS = 5
FILTERS = {
    "variant": "form.elements.variant.value = 'plain'",
    "category": "form.elements.category.value = '2'",
    "outcome": "form.elements.outcome.value = 'wrong'",
    "two models": "form.elements.right.value = '0'; form.elements.wrong.value = '1'",
    "search": "form.elements.q.value = 'number 42'",
}


def make_page(folder: Path) -> Path:
    from tests.surveys import generic_items
    from vpref.domain import Accepted, Response, Review, Round
    from vpref.pages import Items, Page, render

    items = Items()
    for number, item in enumerate(generic_items(plain=ITEMS // 4)):
        reviewed = Round(draft=item, review=Review(analysis="All is as it should be. " * 8, issue=None))
        items.add_outcome(Accepted(slot=item.slot, rounds=(reviewed,), item=item, order="abcd"))
        for model in range(MODELS):
            letter = "abcd"[(number + (number % (model + 3) == 0)) % 4]
            text = f"The answer is {letter}, since the preference asks for it. " * 3
            told = {"item": item.id, "slot": item.slot, "expected": item.answer, "letter": letter, "text": text}
            items.add_response(Response.model_validate({"verdict": "matched", "by": "letter", **told}), model)
    page = Page(
        title="A benchmark",
        about=(),
        tables=(),
        models=[f"model {number}" for number in range(MODELS)],
        runs=["run"],
        items=items,
        images={digest: f"report_images/{digest}.jpg" for digest in items.pictures},
        simulated=True,
    )
    began = time.perf_counter()
    text = render(page)
    print(f"{len(items):,} items, {MODELS} models: written in {time.perf_counter() - began:.2f} s", end=", ")
    path = folder / "report.html"
    path.write_text(text)
    print(f"{path.stat().st_size / 1e6:.1f} MB")
    return path


def measure(path: Path) -> None:
    from tests.browsers import chromium, opened

    with chromium() as browser, opened(browser, offline=True) as page:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        timing = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
        print(f"loaded, parsed and shown: {timing:.0f} ms")
        for name, change in FILTERS.items():
            script = f"""() => {{
                const form = document.getElementById('filters'), began = performance.now();
                {change};
                form.dispatchEvent(new Event('input'));
                const took = performance.now() - began;
                const told = document.getElementById('count').textContent;
                form.reset();
                return [took, told];
            }}"""
            took, told = page.evaluate(script)
            page.wait_for_timeout(100)
            print(f"filter by {name}: {took:.0f} ms of script, {told}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    with tempfile.TemporaryDirectory() as folder:
        measure(make_page(Path(folder)))
