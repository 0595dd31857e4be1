"""How firm labels are: what other annotators of the same kind would have made of the same items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vpref.domain import LETTERS, OTHER, Label, Vote

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1_000


@dataclass(frozen=True)
class Firmness:
    """Shares of resamples by item id: in which the label was `lost` (no majority any more), became `another` letter,
    or was `gained` by an item that has none."""

    lost: Mapping[str, float]
    another: Mapping[str, float]
    gained: Mapping[str, float]

    @property
    def flips(self) -> Mapping[str, float]:
        """The share of resamples in which an item that has a label would not have it."""
        return {item: self.lost[item] + self.another[item] for item in self.lost}


def firmness(
    labels: Sequence[Label], votes: Iterable[Vote], least: int = 1, resamples: int = RESAMPLES, seed: int = 0
) -> Firmness:
    """Labels with the annotators of each form drawn anew with replacement, as many as there were."""
    import numpy as np

    place = {label.item.id: column for column, label in enumerate(labels)}
    counts = np.zeros((resamples, len(labels), 5), dtype=np.int32)
    random = np.random.RandomState(seed)  # its stream alone is promised to stay
    for columns, ballots in _by_form(votes, place):
        people = len(ballots)
        drawn = random.multinomial(people, [1 / people] * people, size=resamples).astype(np.int32)
        counts[:, columns] += np.tensordot(drawn, ballots, axes=(1, 0))
    return _compared(labels, _letters(counts, least))


def _by_form(votes: Iterable[Vote], place: Mapping[str, int]) -> Iterator[tuple[list[int], NDArray[np.int32]]]:
    """For each form the places of its items; and annotators x items x choices, 1 where the annotator made the
    choice."""
    import numpy as np

    number = {choice: number for number, choice in enumerate((*LETTERS, OTHER))}
    forms: defaultdict[str, defaultdict[str, list[Vote]]] = defaultdict(lambda: defaultdict(list))
    for vote in votes:
        if vote.status == "valid" and vote.item in place:
            forms[vote.form][vote.annotator].append(vote)
    for _, people in sorted(forms.items()):
        columns = sorted({place[vote.item] for ones in people.values() for vote in ones})
        ballots = np.zeros((len(people), len(columns), 5), dtype=np.int32)
        for row, (_, ones) in enumerate(sorted(people.items())):
            for vote in ones:
                ballots[row, columns.index(place[vote.item]), number[vote.choice]] = 1
        yield columns, ballots


def _letters(counts: NDArray[np.int32], least: int) -> NDArray[np.int64]:
    """The majority's letter as a number for each resample and item, -1 for none."""
    import numpy as np

    totals = counts.sum(axis=2)
    best = counts[:, :, :4].argmax(axis=2)
    decided = (2 * counts[:, :, :4].max(axis=2) > totals) & (totals >= least)
    return np.where(decided, best, -1)


def _compared(labels: Sequence[Label], letters: NDArray[np.int64]) -> Firmness:
    lost, another, gained = {}, {}, {}
    for column, label in enumerate(labels):
        seen = letters[:, column]
        if label.letter is None:
            gained[label.item.id] = float((seen >= 0).mean())
        else:
            lost[label.item.id] = float((seen < 0).mean())
            another[label.item.id] = float(((seen >= 0) & (seen != LETTERS.index(label.letter))).mean())
    return Firmness(lost, another, gained)
