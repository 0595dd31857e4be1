"""`vpref evaluate`: items in, one model's responses and its accuracy out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path

from vpref import reports
from vpref.domain import Item, Response, Step
from vpref.driver.meter import Meter
from vpref.evaluation import evaluate_item
from vpref.runs import plan
from vpref.runs.datasets import Dataset, open_dataset, read_truth
from vpref.runs.evaluations import read_evaluation
from vpref.runs.folder import RunFolder, digest_of
from vpref.runs.lending import lenders
from vpref.runs.mirroring import mirrored_evaluation, show_evaluation, show_used
from vpref.runs.preview import overheard
from vpref.runs.session import Session, session
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import EvaluateSettings
from vpref.tracking import Tracker


def evaluate(settings: EvaluateSettings, folder: RunFolder) -> None:
    """Run the verb: every response on disk under `folder`, the tables printed."""
    show_tables(respond(settings, folder))
    if not settings.dry_run:
        say(f"records: {shown(folder.path)}")


def respond(settings: EvaluateSettings, folder: RunFolder) -> list[reports.Table]:
    """All of the verb but its printing; the tables are written too. A dry run has none."""
    truth = None if settings.truth is None else read_truth(Path(settings.truth))
    dataset = open_dataset(settings.dataset, settings.include_unresolved, truth, scored=True)
    with session(settings, settings.models(), dataset.gallery, folder) as live:
        if settings.dry_run:
            say(plan.for_evaluation(live, [step for _, step in steps(settings, dataset)], settings.ablation))
            return []
        folder.note(
            dataset={
                "path": str(dataset.path.resolve()),
                "sha256": dataset.digest,
                "items": dataset.count,
                "simulated": dataset.simulated,
                "truth": settings.truth,
                "truth_sha256": None if settings.truth is None else digest_of(Path(settings.truth)),
            },
            servers={role.value: server for role, server in live.servers.items()},
            evaluated=settings.evaluated.title,
            ablation=settings.ablation.label,
            left_out=settings.ablation.left_out,
            manner=settings.ablation.manner,
        )
        simulated = live.simulated or dataset.simulated
        with mirrored_evaluation(settings, folder, dataset, simulated) as tracker:
            show_used(tracker, settings, folder, dataset)
            meter = _drive(settings, live, dataset, folder, tracker)
            return _finish(settings, folder, meter, dataset, tracker)


def _drive(settings: EvaluateSettings, live: Session, dataset: Dataset, folder: RunFolder, tracker: Tracker) -> Meter:
    def jobs() -> Iterator[Step[Response]]:
        for item, step in steps(settings, dataset):
            yield overheard(step, say, f"item {item.id}") if settings.preview else step

    def emit(response: Response) -> None:
        folder.record("responses", response)
        tracker.progress(meter.summary, meter.done)
        folder.progress(meter.summary)

    folder.begin("responses")
    meter = Meter(total=min(dataset.count, settings.preview or dataset.count))
    try:
        live.run(jobs(), name=_verdict, emit=emit, meter=meter)
    finally:
        folder.note(summary=meter.summary())  # what was paid is known of a run that ends early too
    return meter


def steps(settings: EvaluateSettings, dataset: Dataset) -> Iterator[tuple[Item, Step[Response]]]:
    """Each item with its coroutine. Only an ablation that borrows needs more than one item in memory."""
    ablation, extracting = settings.ablation, settings.extractor is not None
    others = lenders(list(dataset), ablation.borrowed) if ablation.borrowed else repeat(())
    for item, others_of_it in islice(zip(dataset, others, strict=False), settings.preview):
        yield item, evaluate_item(item, extractor=extracting, ablation=ablation, others=others_of_it)


def _verdict(response: Response) -> str:
    if response.letter is None:
        return response.verdict
    return "right" if response.correct else "wrong"


def _finish(
    settings: EvaluateSettings, folder: RunFolder, meter: Meter, dataset: Dataset, tracker: Tracker
) -> list[reports.Table]:
    folder.close()
    folder.note(summary=meter.summary())
    evaluation = read_evaluation(folder.path)
    tables = [*reports.accuracy_tables([evaluation]), reports.extraction_table([evaluation])]
    tables += reports.steadiness_tables([evaluation])
    reports.write_tables(tables, folder.path / "tables")
    summary = meter.summary() | reports.accuracy_summary(evaluation)
    folder.note(summary=summary)
    show_evaluation(tracker, settings, folder, dataset, evaluation, summary, tables)
    return tables
