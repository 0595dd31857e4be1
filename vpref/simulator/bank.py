"""The simulator's imagination: everyday scenes, what people want in them, and what they would then do.

From these it writes drafts of any category, and from a draft's text alone it finds the category and the right
choice again, in whatever order the choices stand. It refuses to know requests, models and settings; it never
sees an image, so a scene fits its picture only by accident.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache

from vpref.domain import LETTERS, Category, Choices, Dependence, Draft, Letter, Typicality
from vpref.simulator.dice import dice

# A block a scene: plural | singular | scenes; `?` questions; then `+` typical and `-` atypical wishes, each with
# two actions that grant it. A wish occurs once in the table, and no action within another of its block.
TABLE = """
crayons | crayon | Loose crayons lie scattered | A heap of crayons waits beside an empty cup
? What should be done with the crayons? | How should I tidy up these crayons?
+ crayons sorted by colour | Sort the crayons by colour | Gather crayons of one colour in one cup
+ crayons kept in their box | Return the crayons to their box | Pack the crayons into the box they came in
+ crayons with sharp tips | Sharpen the tips of the crayons | Set out only crayons with sharp tips
- crayons lined up by length | Line up the crayons by length | Place the shortest length first and the longest last
- crayons without paper wrappers | Peel the paper wrappers off the crayons | Strip every crayon of its paper wrapper
- crayons ranked by wear | Rank the crayons by wear | Order the crayons by how much wear they show

books | book | Books of many sizes fill a shelf | Several books rest in two uneven piles
? How should these books be arranged? | What should I do with the books next?
+ books in alphabetical order | Arrange the books in alphabetical order | Shelve the books alphabetically by title
+ books grouped by genre | Group the books by genre | Keep books of one genre side by side
+ books standing upright | Stand the books upright | Turn every fallen book upright
- books arranged by spine thickness | Arrange the books by spine thickness | Place thick spines before thin ones
- books with their spines to the wall | Turn the spines of the books to the wall | Show the pages and hide the spines
- books ordered by the year of purchase | Order the books by the year of purchase | Put the latest year on top

mugs | mug | Mugs of several shapes stand together | Clean mugs wait to be put away
? Where should the mugs go? | What should be done about these mugs?
+ mugs hung on hooks | Hang the mugs on hooks | Give each mug a hook of its own
+ mugs stored upside down | Store the mugs upside down | Set every mug down on its rim, upside down
+ mugs matched as a set | Match the mugs into a set | Keep only mugs of the same set together
- mugs sorted by handle shape | Sort the mugs by handle shape | Separate round handles from square handles
- mugs filled with pens | Fill the mugs with pens | Use the mugs to hold pens
- mugs placed by how loud they clink | Place the mugs by how loud they clink | Keep loud, clinking ones apart

plants | plant | Potted plants of different heights share the space | A few houseplants stand close together
? How should I care for these plants? | What should be done with the plants today?
+ plants close to the light | Move the plants close to the light | Shift the plants to where most light falls
+ plants watered evenly | Water the plants evenly | Give every plant an even amount of water
+ plants with dead leaves removed | Remove dead leaves from the plants | Trim the dead leaves away
- plants kept in the dark | Keep the plants in the dark | Carry the plants into a dark corner
- plants ranked by number of leaves | Rank the plants by number of leaves | Count the leaves and order by number
- plants placed by pot weight | Place the plants by pot weight | Order the plants from the lightest pot to the heaviest

cutlery | piece | Cutlery lies mixed in a drawer | Forks, knives and spoons have been laid down in no order
? How should the cutlery be put away? | What should I do with this cutlery?
+ cutlery separated by kind | Separate the cutlery by kind | Keep forks, knives and spoons each with their kind
+ cutlery set for a meal | Set the cutlery for a meal | Lay a place for one meal with the cutlery
+ cutlery polished to a shine | Polish the cutlery to a shine | Rub each piece until it shines
- cutlery ordered by tip width | Order the cutlery by tip width | Lay narrow tips first and wide tips last
- cutlery bundled in odd numbers | Bundle the cutlery in odd numbers | Tie three or five pieces, an odd number, together
- cutlery turned face down | Turn the cutlery face down | Flip every piece so that it lies face down

toys | toy | Toys cover a rug | A box of toys has been tipped out
? What should happen to the toys? | How should the toys be cleaned up?
+ toys put away in bins | Put the toys away in bins | Drop the toys into their bins
+ toys grouped by who plays with them | Group the toys by who plays with them | Give each player the toys they play with
+ toys out of the way of walkers | Clear the toys out of the way of walkers | Push aside what walkers could step on
- toys arranged by the noise they make | Arrange the toys by the noise they make | Put silent ones before noisy ones
- toys facing the door | Turn the toys to face the door | Make every toy look at the door
- toys hidden for a treasure hunt | Hide the toys for a treasure hunt | Tuck the toys away as treasure to be hunted

bags | bag | Bags are lined up before a trip | Several bags have been left together
? What should I do with the bags first? | How should these bags be handled?
+ bags loaded heaviest first | Load the heaviest bags first | Lift the heavy bags in before the light ones
+ bags with labels showing | Show the labels of the bags | Turn each bag so that its label shows
+ bags within easy reach | Place the bags within easy reach | Keep the bags where a hand easily reaches them
- bags sorted by strap length | Sort the bags by strap length | Place short straps first and long straps last
- bags emptied and turned inside out | Empty the bags and turn them inside out | Show the linings of empty bags
- bags stacked by zip colour | Stack the bags by zip colour | Pile up bags whose zips share a colour

shoes | shoe | Shoes crowd the entrance | Pairs of shoes have come apart
? What should be done with these shoes? | How should the shoes be set out?
+ shoes kept in pairs | Keep the shoes in pairs | Bring the two shoes of each pair together
+ shoes cleaned of mud | Clean the mud off the shoes | Brush away the mud on the shoes
+ shoes stored by season | Store the shoes by season | Put shoes that are out of season away
- shoes arranged by lace length | Arrange the shoes by lace length | Lay long laces first and short laces last
- shoes with left and right apart | Split left shoes from right shoes | Keep all left ones apart from all right ones
- shoes ordered by sole pattern | Order the shoes by sole pattern | Compare the soles and group like patterns

bottles | bottle | Glass bottles catch the light | Half-empty bottles have been collected
? What should I do with the bottles? | How should these bottles be sorted?
+ bottles taken to recycling | Take the bottles to recycling | Collect the bottles for the recycling bin
+ bottles stored upright and closed | Store the bottles upright and closed | Close the bottles before standing them up
+ bottles sorted by what they hold | Sort the bottles by what they hold | Gather bottles that hold the same drink
- bottles used as musical notes | Use the bottles as musical notes | Tap the bottles and order them by note
- bottles placed by neck width | Place the bottles by neck width | Line narrow necks before wide necks
- bottles with labels soaked off | Soak the labels off the bottles | Wash away each label in warm water

clothes | garment | Clothes are draped over a chair | Freshly washed clothes lie in a basket
? What should happen to these clothes? | How should the clothes be handled?
+ clothes folded neatly | Fold the clothes neatly | Make a neat, folded stack of the clothes
+ clothes separated into light and dark | Separate the clothes into light and dark | Wash light and dark ones apart
+ clothes hung on hangers | Hang the clothes on hangers | Slip each garment over a hanger
- clothes ordered by number of buttons | Order the clothes by number of buttons | Count the buttons and sort by number
- clothes rolled into tight tubes | Roll the clothes into tight tubes | Make a tight tube of every garment
- clothes grouped by fabric sound | Group the clothes by fabric sound | Rub the fabrics and match those that sound alike

fruit | fruit | A bowl overflows with fruit | Pieces of fruit have been laid out
? What should I do with the fruit? | How should the fruit be used?
+ fruit eaten while it is ripe | Eat the ripe fruit first | Serve what is ripe before it spoils
+ fruit washed before eating | Wash the fruit before eating | Rinse the fruit and only then eat
+ fruit kept cool | Keep the fruit cool | Store the fruit in the coolest place
- fruit ranked by roundness | Rank the fruit by roundness | Order the pieces from least to most round
- fruit left until it is brown | Leave the fruit until it is brown | Wait for brown spots before touching the fruit
- fruit sorted by stem length | Sort the fruit by stem length | Place short stems first and long stems last

chairs | chair | Chairs stand around without a plan | Chairs of several kinds share a room
? How should the chairs be placed? | What should be done with these chairs?
+ chairs around the table | Place the chairs around the table | Pull the chairs up to the table
+ chairs in straight rows | Set the chairs in straight rows | Align the chairs into rows
+ chairs stacked to save space | Stack the chairs to save space | Save space by piling up the chairs
- chairs facing away from each other | Turn the chairs to face away from each other | Set the chairs back to back
- chairs ordered by how they creak | Order the chairs by how they creak | Sit on each chair and rank the creaks
- chairs spaced an arm apart | Space the chairs an arm apart | Leave one arm of room between chairs

tools | tool | Hand tools lie on a bench | A toolbox has been emptied out
? What should I do with these tools? | How should the tools be organised?
+ tools hung by task | Hang the tools by task | Group the tools that serve one task
+ tools with sharp edges covered | Cover the sharp edges of the tools | Put guards on every sharp edge
+ tools oiled against rust | Oil the tools against rust | Wipe off rust and oil the metal
- tools arranged by handle smell | Arrange the tools by handle smell | Sniff the handles and order them by smell
- tools balanced on end | Balance the tools on end | Make every tool stand on its end
- tools ordered by shadow length | Order the tools by shadow length | Compare the shadows and start with the longest

cushions | cushion | Cushions are piled at one end of a sofa | Cushions in many fabrics have been collected
? How should I arrange the cushions? | What should be done with these cushions?
+ cushions placed evenly on both sides | Place the cushions evenly on both sides | Balance the two sides with cushions
+ cushions plumped up | Plump up the cushions | Shake the cushions until they are plump
+ cushions matched to the sofa | Match the cushions to the sofa | Choose cushions that go with the sofa
- cushions sorted by tassel count | Sort the cushions by tassel count | Count the tassels and start with the fewest
- cushions used on the floor | Use the cushions on the floor | Throw the cushions on the floor to sit there
- cushions stacked into a tower | Stack the cushions into a tower | Build a tower out of the cushions
"""

DETAILS = (
    "on a wooden surface",
    "near a window",
    "under a warm lamp",
    "in the corner of a room",
    "with some clutter around",
    "against a plain wall",
    "in bright daylight",
    "with free space beside them",
)
WISHES = (
    "I like {}.",
    "I prefer {}.",
    "What I want is {}.",
    "I am happiest with {}.",
    "To me nothing beats {}.",
    "I always ask for {}.",
)
ENDINGS = ("", "", " right away", " without hurrying", " and then take a break")

# High dependence: nothing but a place in the picture tells the choices apart. Every wish of a scene owns two.
SPOTS = (
    "leftmost",
    "rightmost",
    "uppermost",
    "lowest",
    "nearest",
    "farthest",
    "most central",
    "most hidden",
    "second-leftmost",
    "second-rightmost",
    "outermost",
    "least crowded",
)
MOVES = (
    "Put {} in front of the others",
    "Start with {}",
    "Pick up {} and set it apart",
    "Move {} into the free space",
    "Leave {} where it is and shift the others",
    "Choose {} to go first",
)


@dataclass(frozen=True, slots=True)
class Taste:
    """One wish somebody may have in a scene, and what grants it: actions that echo it, or places to act on."""

    typicality: Typicality
    wish: str
    acts: tuple[str, ...]
    spots: tuple[str, ...]

    def act(self, dependence: Dependence, rng: random.Random) -> str:
        """A choice that grants this wish."""
        if dependence is Dependence.HIGH:
            return rng.choice(MOVES).format(rng.choice(self.spots))
        return rng.choice(self.acts) + rng.choice(ENDINGS)

    def granted_by(self, choice: str, dependence: Dependence) -> bool:
        """Whether this choice is one of `act`'s."""
        marks = self.spots if dependence is Dependence.HIGH else self.acts
        return any(plain(mark) in plain(choice) for mark in marks)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of scene."""

    scenes: tuple[str, ...]
    questions: tuple[str, ...]
    tastes: tuple[Taste, ...]

    def draft(self, taste: Taste, dependence: Dependence, rng: random.Random) -> Draft:
        """A draft whose one right choice grants `taste`, and whose others grant other tastes of the scene."""
        others = rng.sample([other for other in self.tastes if other is not taste], 3)
        acts = [one.act(dependence, rng) for one in (taste, *others)]
        rng.shuffle(acts)
        return Draft(
            scene=f"{rng.choice(self.scenes)} {rng.choice(DETAILS)}.",
            preference=rng.choice(WISHES).format(taste.wish),
            question=rng.choice(self.questions),
            choices=Choices.of(tuple(acts)),
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What the bank knows of a draft that it wrote."""

    scenario: Scenario
    taste: Taste
    category: Category
    right: Letter


@cache
def scenarios() -> tuple[Scenario, ...]:
    """The table, parsed."""
    return tuple(_scenario(number, block) for number, block in enumerate(TABLE.strip().split("\n\n")))


def _scenario(number: int, block: str) -> Scenario:
    head, questions, *lines = block.splitlines()
    _, one, *scenes = head.split(" | ")
    tastes = []
    for row, line in enumerate(lines):
        wish, *acts = line[2:].split(" | ")
        # Shifted by the scene, so that no place in the picture is typical or atypical as such.
        spots = (SPOTS[(2 * row + number + i) % len(SPOTS)] for i in range(2))
        typicality = Typicality.TYPICAL if line[0] == "+" else Typicality.ATYPICAL
        tastes.append(Taste(typicality, wish, tuple(acts), tuple(f"the {spot} {one}" for spot in spots)))
    return Scenario(tuple(scenes), tuple(questions[2:].split(" | ")), tuple(tastes))


def category_of(typicality: Typicality, dependence: Dependence) -> Category:
    """The one category of the two."""
    return next(one for one in Category if (one.typicality, one.dependence) == (typicality, dependence))


def compose(category: Category, rng: random.Random) -> Draft:
    """A new draft of any scene."""
    scenario = rng.choice(scenarios())
    taste = rng.choice([one for one in scenario.tastes if one.typicality is category.typicality])
    return scenario.draft(taste, category.dependence, rng)


def recompose(draft: Draft, rng: random.Random) -> Draft:
    """Another draft with the same scene, wish and category; of a foreign draft only the question changes."""
    known = recognise(draft)
    if known is None:
        questions = ("Given that, what is best to do?", "What should be done next?")
        return draft.model_copy(update={"question": rng.choice([one for one in questions if one != draft.question])})
    while True:
        other = known.scenario.draft(known.taste, known.category.dependence, rng)
        if other.choices != draft.choices:
            return other


def recognise(draft: Draft) -> Known | None:
    """What the bank knows of this draft: None unless its preference is one of ours and exactly one choice grants it."""
    preference = plain(draft.preference)
    for scenario in scenarios():
        for taste in scenario.tastes:
            if taste.wish in preference:
                return _known(draft, scenario, taste)
    return None


def _known(draft: Draft, scenario: Scenario, taste: Taste) -> Known | None:
    for dependence in Dependence:
        right = [letter for letter in LETTERS if taste.granted_by(draft.choices[letter], dependence)]
        if len(right) == 1:
            return Known(scenario, taste, category_of(taste.typicality, dependence), right[0])
    return None


def likeliest(draft: Draft) -> Letter:
    """The right choice of a draft of ours; of a foreign one, the choice that has most words of the preference."""
    if known := recognise(draft):
        return known.right
    wanted = _words(draft.preference)
    shared = {letter: len(wanted & _words(draft.choices[letter])) for letter in LETTERS}
    best = [letter for letter in LETTERS if shared[letter] == max(shared.values())]
    return dice(draft.model_dump_json(), "tie").choice(best)


def plain(text: str) -> str:
    """The text as it is compared: no capitals, single spaces."""
    return " ".join(text.casefold().split())


def _words(text: str) -> frozenset[str]:
    """The words that may carry meaning: longer ones, cut short so that `sorted` meets `sort`."""
    return frozenset(word[:5] for word in re.findall(r"\w+", text.casefold()) if len(word) > 3)
