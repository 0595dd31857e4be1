"""The items of a page as its script reads them: what each shows, how it came about, what people and models said."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from vpref.domain import LETTERS, Draft, Failed, Item, Outcome, Response, Slot, Vote
from vpref.pages.diff import changes
from vpref.scoring import score


class Items:
    """Collected record by record, in any order of runs: outcomes first, then responses and votes."""

    def __init__(self) -> None:
        self._by_id: dict[str, dict[str, Any]] = {}
        self.pictures: dict[str, None] = {}
        """Digests of all images shown, each once."""

    def add_outcome(self, outcome: Outcome, run: int | None = None) -> None:
        """What generation made, under the number of its run. An item that several runs made is shown once."""
        if isinstance(outcome, Failed):
            key = hashlib.sha256(f"{outcome.slot.key}/{run}".encode()).hexdigest()[:12]
            entry = self._begin(f"failed-{key}", outcome.slot, outcome.slot.image, outcome.draft)
            entry["reason"] = f"{outcome.kind}: {outcome.reason}"
        else:
            item = outcome.item
            entry = self._begin(item.id, item.slot, item.shown, item)
            entry["right"], entry["by"] = item.truth or item.answer, "people" if item.truth else "responder"
        entry["fate"] = outcome.outcome
        entry["rounds"] = [
            {
                "analysis": one.review.analysis,
                "issue": one.review.issue,
                "by": one.review.by,
                "fix": one.revision.proposed_fix if one.revision else None,
                "changes": changes(one.draft, one.revision.draft) if one.revision else {},
            }
            for one in outcome.rounds
        ]
        if run is not None and run not in entry["runs"]:
            entry["runs"].append(run)

    def add_response(self, response: Response, model: int) -> None:
        """What a model said; of an item that is not known, its place alone is shown."""
        entry = self._by_id.get(response.item) or self._begin(response.item, response.slot, response.slot.image, None)
        entry["right"] = entry.get("right") or response.expected
        good = score(response)
        verdict = response.verdict if response.letter is None else "right" if good else "wrong"
        said = response.text or "\n".join(f"[{one.shown or '–'}] {one.text}" for one in response.asks)
        told: dict[str, Any] = {"model": model, "verdict": verdict, "letter": response.letter, "by": response.by}
        told |= {"text": said, "reason": response.reason, "probabilities": response.probabilities}
        told["expected"] = None if response.expected == entry["right"] else response.expected
        entry["responses"].append({name: value for name, value in told.items() if value not in (None, "")})

    def add_votes(self, votes: Iterable[Vote]) -> None:
        """People's valid votes: how many for each choice, how hard they found it, and why."""
        counted: dict[str, Counter[str]] = {}
        ratings: dict[str, list[int]] = {}
        for vote in votes:
            if vote.status == "valid" and vote.item in self._by_id:
                counted.setdefault(vote.item, Counter())[vote.choice] += 1
                if vote.difficulty is not None:
                    ratings.setdefault(vote.item, []).append(vote.difficulty)
                if vote.justification:
                    self._by_id[vote.item].setdefault("why", []).append([vote.choice, vote.justification])
        for item, choices in counted.items():
            self._by_id[item]["votes"] = {name: choices[name] for name in (*LETTERS, "other") if choices[name]}
        for item, given in ratings.items():
            self._by_id[item]["difficulty"] = sum(given) / len(given)

    def __len__(self) -> int:
        return len(self._by_id)

    def data(self) -> list[dict[str, Any]]:
        return list(self._by_id.values())

    def _begin(self, id: str, slot: Slot, shown: str, draft: Draft | Item | None) -> dict[str, Any]:
        if id in self._by_id:
            return self._by_id[id]
        entry: dict[str, Any] = {
            "id": id,
            "variant": slot.variant.value,
            "category": int(slot.category),
            "image": shown,
            "runs": [],
            "rounds": [],
            "responses": [],
        }
        if draft is not None:
            entry |= {"scene": draft.scene, "preference": draft.preference, "question": draft.question}
            entry["choices"] = list(draft.choices.texts)
        self._by_id[id] = entry
        self.pictures[shown] = None
        return entry
