"""Reads the letter that an output names, by rules alone, or finds that it names none for certain.

A false match corrupts a score in silence while a miss goes to the model-based extractor, so every doubt ends in
None. This module refuses to know who wrote the output, what the right answer is, and what happens to a miss.
It never raises, whatever the text.

How it works: the text is normalised; each choice that it quotes is replaced by one sign, so that no rule has to
know the choices' words (and a "not" inside a choice denies nothing); the rules then look for ways to name a
choice, guards drop what is denied or somebody else's, and what is left must agree on one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from unicodedata import normalize

from vpref.domain import LETTERS, Choices, Letter


@dataclass(frozen=True, slots=True)
class Match:
    """The letter found, and the name of the rule that found it."""

    letter: Letter
    by: str


def match(text: str, choices: Choices) -> Match | None:
    """The one choice that the output names, or None."""
    said = _normalise(text)
    if whole := _WHOLE.fullmatch(said):
        return _agreed(_letters(whole["named"]), "letter")
    said = _sign_choices(said, choices)
    if whole := _WHOLE.fullmatch(said):
        return _agreed(_letters(whole["named"]), "choice_text")
    return _settle(said, [hit for rule in RULES for hit in rule.hits(said)])


# --- normalising -----------------------------------------------------------------------------------------

_SIGN: dict[str, Letter] = {chr(0xE000 + place): letter for place, letter in enumerate(LETTERS)}
"""A private character for each choice's text."""

_LETTERLIKE = (*range(0xFF01, 0xFF5F), *range(0x249C, 0x24EA), *range(0x1D400, 0x1D6A4))
_CHARACTERS = str.maketrans(
    {chr(code): normalize("NFKC", chr(code)) for code in _LETTERLIKE}  # fullwidth, circled, mathematical
    | dict.fromkeys("。．", ". ")
    | {"，": ", ", "、": ", ", "！": "! ", "？": "? ", "；": "; ", "【": "[", "】": "]", "「": '"', "」": '"'}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "_": " "}
    | dict.fromkeys(("*", "`", "\u200b", "\u200c", "\u200d", "\u2060", "\ufe0f", "\ufeff", *_SIGN))
)
_ASCII = str.maketrans({"_": " ", "*": None, "`": None})

_THOUGHT = re.compile(r"[<◁](think|thinking|reasoning)[>▷].*?(?:[<◁]/\1[>▷]|\Z)", re.I | re.S)  # ◁ is Kimi's
_THOUGHT_TAIL = re.compile(
    r"\A.*[<◁]/(?:think|thinking|reasoning)[>▷]", re.I | re.S
)  # the opening tag was in the prompt
_MARKUP = re.compile(r"</?(?:b|i|u|em|strong|p|br|span|div|code|s)\s?/?>|<\|[\w ]{1,30}\|>|~~[^~]*~~", re.I)
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|mathit|operatorname)(?:bf|it|rm|sf|tt)?\s?\{([^{}]*)\}")
_LATEX_MATH = re.compile(r"\\[()\[\]]|\$")


def _normalise(text: str) -> str:
    """The text without thoughts, markup and odd characters; one space between words, no empty lines.

    Single spaces also keep the patterns linear: no two adjacent `\\s?` can share out a long run.
    """
    if "<" in text or "◁" in text:
        text = _THOUGHT.sub(" ", text)
        text = _THOUGHT_TAIL.sub(" ", text)
    text = text.translate(_ASCII if text.isascii() else _CHARACTERS)
    if "<" in text or "~~" in text:
        text = _MARKUP.sub(" ", text)
    if "\\" in text or "$" in text:
        text = _LATEX_MATH.sub("", _LATEX_TEXT.sub(r"\1", text))
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


_WORD = re.compile(r"(\w+)")


def _phrase(words: Iterable[str]) -> str:
    """Words as a string in which one phrase can be found inside another only at word boundaries."""
    return "".join(f" {word} " for word in words)


@lru_cache(maxsize=1024)
def _phrases(choices: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each choice's phrase and sign, longest first since a choice may begin or end like another.

    A phrase shared by two choices names neither; a choice that is one lone letter would hide the letters.
    """
    phrases = [_phrase(_WORD.findall(_normalise(text))).casefold() for text in choices]
    signs = [(words, sign) for words, sign in zip(phrases, _SIGN, strict=True) if len(words) > 3]
    unique = [(words, sign) for words, sign in signs if phrases.count(words) == 1]
    return tuple(sorted(unique, key=lambda pair: len(pair[0]), reverse=True))


def _sign_choices(said: str, choices: Choices) -> str:
    """The text with each quoted choice replaced by its sign, whatever its case, punctuation and spacing."""
    pieces = _WORD.split(said)
    spoken = _phrase(pieces[1::2]).casefold()
    lengths: dict[str, int] = {}
    for words, sign in _phrases(choices.texts):
        if words in spoken:
            spoken = spoken.replace(words, f" {sign} ")
            lengths[sign] = words.count(" ") // 2
    return "".join(_weave(pieces, spoken.split(), lengths)) if lengths else said


def _weave(pieces: list[str], tokens: list[str], lengths: dict[str, int]) -> Iterator[str]:
    """The separators of the text, and between them its words, or the sign that stands for several."""
    place = 0
    for token in tokens:
        yield pieces[place]
        yield token if token in _SIGN else pieces[place + 1]
        place += 2 * lengths.get(token, 1)
    yield from pieces[place:]


# --- patterns --------------------------------------------------------------------------------------------

_WORDLIKE = "0-9A-Za-zÀ-ɏ"  # not \w: "答案是B" has no space before its letter
_LONE = rf"(?<![{_WORDLIKE}])(?<![{_WORDLIKE}]')[a-d](?![{_WORDLIKE}])(?!'\w)"
_QUOTED = rf"[{''.join(_SIGN)}]"
_BARE = rf"[(\[{{\"']{{0,2}}\s?{_LONE}(?:\s?[)\]}}\"']{{1,2}}+)?+"
_ONE = rf"(?:{_BARE}(?:[).:\],\s-]{{0,3}}{_QUOTED})?+|\"?{_QUOTED}(?:\s?[(\[]{_LONE}[)\]])?)"
_JOINED = rf"(?:\s?(?:[,/&+|–-]|,?\s(?:or|and|y|o|ou|et|und|oder)\b)\s?(?:(?:option|choice)\s)?{_ONE}){{0,4}}"
_NAMED = rf"(?:(?:the\s)?(?:option|choice|letter|answer)\s)?(?P<named>{_ONE}{_JOINED})"
"""A choice by letter, by text or by both, and any others joined to it; all of them count."""

_REASON = r"(?:because|since|as|given|due|based|which|in this|here|is the|rather than|instead of|not)\b"
_END = (
    r"(?!\s?[(\[]?[a-d][)\]])(?:(?<=[)\]}])|(?=\s?\Z|\n|[.,;:!?\"'](?:\s|\Z|[\"')\]}<])|\s?(?:[<{})\]…]|\.\.)|\s[-–—(]"
    rf"|,?\s{_REASON}|で|だ|입|이))"
)
_STOP = r"(?=[\"')]?(?:[.!]?(?:\n|\Z)|[.!]\s|,?\s(?:because|since|given|based)\b))"
"""What may follow a naming. A word may not, or "the answer is a warm drink" would name a."""

_START = r"(?:\A|(?<=[.!?])\s|\n)[\"'\s>•-]{0,3}"
_BULLET = r"[\s#>•·→⇒✅✔☑👉:-]{0,6}"
_SURELY = r"(?:(?:clearly|definitely|certainly|obviously|surely|most likely|likely|probably|therefore|thus|indeed),?\s)"
_NO_ARTICLE = r"(?!(?-i:a)\s?\Z)"  # "I would choose a": cut before its noun?

_CUE = (
    r"\b(?:letter|assistant|pick|(?:answer|choice|option|selection|respuesta|réponse|antwort|risposta|resposta"
    r"|ответ|antwoord|odpowiedź)(?:\s(?!(?-i:[A-Db-d])\b)[\w']{1,20}){0,7}?)"
)
_IS = r"\s?(?:\b(?:is|would be|should be|must be|will be|es|est|ist|è|é|jest)\b|[:=→–-]){1,2}[\s:,–-]{0,3}"
_CJK_CUE = (
    r"(?<![不没別别非勿])(?:答案|选项|選項|选择|選擇|选|選|答え|正解|정답)(?:应该是|應該是|[是为為选選は은는:\s]){0,3}"
)
_I = r"(?:i|we|you|let's)(?:'d|'ll|'m|\s(?:would|will|should|must|can|am|have to|want to))?"
_CHOOSE = r"(?:choose|pick|select|go with|going with|choosing|opt for|recommend|suggest|say|vote for)"
_BEST = r"(?:the\s)?(?:only\s|most\s)?(?:correct|right|best|appropriate|suitable|ideal|answer)"
_KEY = r"(?:final |correct |selected |my )?(?:answer|choice|letter|option|selection)(?: letter| choice| option)?"
_OTHER_LINE = r"[\s\S]*\n\W{0,3}(?:(?:option|choice)\s)?\(?(?!(?P=led))[a-d][).:]\s"
_SAME_LINE = r".*\s[(\[]?(?!(?P=led))[a-d][)\].:](?:\s|\Z)"
_SUBJECT = r"(?!\s(?:is|was|would|could|might|may|can|will|does|has|seems|looks|and|or|are)\b)"

_WHOLE = re.compile(
    rf"{_BULLET}(?:(?:the\s)?(?:final\s|correct\s|best\s|my\s)?(?:option|choice|letter|answer)"
    rf"(?:\s?[:=–-]{{1,2}}\s?|\s(?:is:?\s)?))?(?P<named>{_ONE})[\s.,:;!\"✅✔☑]{{0,6}}",
    re.I,
)
"""Most outputs are nothing but the letter, its label or the choice's text; they need no rules or guards."""


class Weight(IntEnum):
    """How a naming counts: as the answer; as one where no answer is declared; only against an answer before
    it; only against one that was not declared."""

    DECLARED = 3
    STATED = 2
    RIVAL = 1
    MENTION = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to name a choice; the pattern's group `named` holds it."""

    name: str
    weight: Weight
    pattern: re.Pattern[str]

    def hits(self, said: str) -> Iterator[Hit]:
        """Where the text names choices this way and does not take it back."""
        for found in self.pattern.finditer(said):
            start, end = found.span("named")
            taken_back = self.weight >= Weight.STATED and _TAKEN_BACK.match(said, end)  # a doubt may be a question
            if not (taken_back or _disowned(self.weight, said, start)):
                yield Hit(self, _letters(found["named"]), start)


@dataclass(frozen=True, slots=True)
class Hit:
    """A naming that stands, by its letters and place."""

    rule: Rule
    letters: frozenset[Letter]
    place: int


def _rule(name: str, weight: Weight, *patterns: str) -> Rule:
    return Rule(name, weight, re.compile("|".join(patterns), re.I))


RULES = (
    _rule("json", Weight.DECLARED, rf"[\"']{_KEY}[\"']\s?:\s?{_NAMED}{_END}"),
    _rule("tagged", Weight.DECLARED, rf"<{_KEY}>\s?{_NAMED}{_END}"),
    _rule("boxed", Weight.DECLARED, rf"\\?f?box(?:ed)?\s?\{{\s?{_NAMED}{_END}"),
    _rule("answer_phrase", Weight.DECLARED, rf"{_CUE}{_IS}{_SURELY}{{0,2}}(?:to\s|la\s|die\s|le\s)?{_NAMED}{_END}"),
    _rule("answer_label", Weight.DECLARED, rf"(?:\banswer\s|{_CJK_CUE}){_NAMED}{_END}"),
    _rule(
        "lettered",
        Weight.DECLARED,
        rf"\A{_BULLET}(?:(?:option|choice)\s)?(?!a\s?:(?!\s?{_QUOTED}))"  # "A: ..." is how a dialogue labels answers
        rf"(?P<named>[(\[]?(?P<led>{_LONE})(?:[)\]]|[.:!](?!\s[a-z]\.))?(?:[\s.:,-]{{0,3}}{_QUOTED})?+)"
        rf"(?:(?<=[)\].:!{''.join(_SIGN)}]){_SUBJECT}(?=[\s\"'.,!]|\Z)|(?=\s[–—:-]\s|,?\s(?:because|since)\b))"
        rf"(?!{_OTHER_LINE}|{_SAME_LINE})",  # else it may be a list of the choices
    ),
    _rule(
        "letter_line",
        Weight.DECLARED,
        rf"(?:\A|(?<![:,])(?<!\bnot)(?<!\bor)(?<!\band)\n){_BULLET}(?:(?:option|choice|letter)\s)?"
        rf"(?P<named>{_BARE})[.!]?(?=\n|\Z)",
    ),
    _rule(
        "decision",
        Weight.STATED,
        rf"(?:\b{_I}\s{_SURELY}?|{_START}|\b(?:so|therefore|thus|hence),?\s){_CHOOSE}(?:\sto)?[\s:]{{1,2}}"
        rf"{_NO_ARTICLE}{_NAMED}{_END}",
    ),
    _rule(
        "short_sentence",
        Weight.STATED,
        rf"{_START}(?:{_SURELY}|(?:so|hence|it's|it is|it must be|that's|i think|i believe|i'd say)[,:]?\s){{1,3}}"
        rf"{_NO_ARTICLE}{_NAMED}{_STOP}",
    ),
    _rule(
        "verdict",
        Weight.STATED,
        rf"(?:{_START}|\b(?:so|that|think|believe|therefore|thus|option|choice|answer),?\s)(?P<named>{_ONE})"
        rf"\s(?:is|would be|must be|seems|appears to be|looks)\s{_SURELY}?{_BEST}"
        rf"(?:\s(?:one|answer|choice|option|fit|match|action))?{_STOP}",
    ),
    _rule(
        "choice_text",
        Weight.STATED,
        rf"{_START}(?:(?:so|then|therefore|thus),?\s)?(?:(?:{_I}|the user (?:would|should|will))\s|to\s)?"
        rf"(?P<named>\"?{_QUOTED}(?:\s?[(\[]{_LONE}[)\]])?){_STOP}",
    ),
    _rule(
        "rival",
        Weight.RIVAL,
        r"\b(?:or|maybe|perhaps|possibly|alternatively|also|(?:could|might|may)(?: also| well)* be|no|wait|sorry"
        r"|actually|i meant?|rather|make that|second thought)[,:]?\s(?:it's\s|it is\s|is it\s)?"
        rf"(?:(?:option|choice|answer)\s)?(?P<named>\(?(?:(?-i:[A-D])|[b-d])(?!['\w])|{_QUOTED})",
    ),
    _rule(
        "rival",
        Weight.RIVAL,
        rf"(?P<named>(?<![\w'])(?-i:[A-D])\)?|{_QUOTED})\s(?:(?:could|might|may|can|would|is|works?)\s(?:also|too|well"
        r"|work|equally|just as|be)\b|(?:is|would be|seems|looks|fits|matches|suits)\s(?:\w{1,20}\s)?better\b)",
    ),
    _rule("mention", Weight.MENTION, rf"(?P<named>{_QUOTED})"),
)
"""The order decides only which rule's name a match bears."""


# --- guards ----------------------------------------------------------------------------------------------

_CLAUSE = re.compile(
    r"[.!?;]\s|[\"<{\\]|\b(?:no|wait)[,:]\s|\bsecond thoughts?\b|\b(?:so|therefore|thus|hence|but|however)\b", re.I
)
_DENIALS = _WORD.findall(
    "don't not never no nor neither nobody cannot avoid avoids avoiding except exclude excludes excluding excluded "
    "eliminate eliminating reject rejects rejecting ruled ruling wrong incorrect false worst least weakest bad poor "
    "unsuitable inappropriate hardly rarely seldom few doubt doubtful unlikely impossible disagree hate hates dislike "
    "dislikes contradict contradicts contradicting violate violates ignore ignores against opposite instead rather "
    "nunca evitar incorrecta incorrecto pas jamais mauvaise nicht nie kein keine falsche"
)
_NOT_MINE = _WORD.findall(
    "if unless whether suppose supposing why might may could argue people other others another someone typical "
    "typically usual usually normal normally common commonly popular obvious standard initial initially first second "
    "next previous alternative example format tempting box boxes bounding object labelled labeled marked"
)
_ASIDE = dict.fromkeys(Weight, frozenset(_DENIALS + _NOT_MINE) - {"don"})  # "t" stays, for every "n't"
_ASIDE[Weight.RIVAL] = frozenset(_DENIALS)  # "it might be C" is somebody's doubt all the same
_CJK_DENIAL = re.compile(r"[不错錯]|除了")
_TAKEN_BACK = re.compile(
    r"[)\]\"'.,;:]{0,3}\s?\(?(?:\?|(?:but|though|although|however|yet|unless|except|only|if|when|for|not really)\b"
    r"|(?:is|was|would|does|do|can|could|will|seems|may|might)(?:n't\b|\s(?:not|never|wrong|incorrect|false)\b))",
    re.I,
)
_LAST_WORD = re.compile(
    r"\b(?:final|finally|actually|correction|corrected|i meant|second thought|conclusion|revised|change my)\b", re.I
)
_SENTENCE = re.compile(r"[.!?]\s|\n")
_WINDOW = 200


def _disowned(weight: Weight, said: str, place: int) -> bool:
    """Whether the clause before a naming denies it, or says that it is somebody else's or hypothetical.

    Quotes, tags and braces begin a clause, so that what stands before a structure does not touch it.
    """
    line = said[max(0, place - _WINDOW) : place].rpartition("\n")[2]
    clause = _CLAUSE.split(line)[-1]
    words = _WORD.findall(clause.lower())
    return not _ASIDE[weight].isdisjoint(words) or _CJK_DENIAL.search(clause) is not None


def _is_last_word(said: str, place: int) -> bool:
    sentence = _SENTENCE.split(said[max(0, place - _WINDOW) : place])[-1]
    return _LAST_WORD.search(sentence) is not None


# --- agreement -------------------------------------------------------------------------------------------

_MENTION = re.compile(rf"{_LONE}|{_QUOTED}", re.I)


def _letters(named: str) -> frozenset[Letter]:
    mentions = (mention.lower() for mention in _MENTION.findall(named))
    return frozenset(_SIGN.get(mention) or LETTERS["abcd".index(mention)] for mention in mentions)


def _agreed(letters: frozenset[Letter], by: str) -> Match | None:
    """A match where the letters are one and the same."""
    return Match(next(iter(letters)), by) if len(letters) == 1 else None


def _settle(said: str, hits: list[Hit]) -> Match | None:
    """What all hits agree on. Answers go before remarks made on the way to them; a remark after the answer
    that names another choice is a doubt; answers that differ need one that calls itself the last word."""
    weight = max((hit.rule.weight for hit in hits), default=Weight.MENTION)
    if weight < Weight.STATED:
        return None
    answers = [hit for hit in hits if hit.rule.weight is weight]
    if len(_united(answers)) > 1:
        answers = _last_word(said, answers)
    if not answers:
        return None
    place = max(hit.place for hit in answers)
    doubts = Weight.RIVAL if weight is Weight.DECLARED else Weight.MENTION
    later = _united(hit for hit in hits if hit.place > place and hit.rule.weight >= doubts)
    return _agreed(_united(answers) | later, answers[0].rule.name)


def _united(hits: Iterable[Hit]) -> frozenset[Letter]:
    return frozenset().union(*(hit.letters for hit in hits))


def _last_word(said: str, answers: list[Hit]) -> list[Hit]:
    """The last answer, if it calls itself final or a correction and no earlier one that differs does."""
    last = max(answers, key=lambda hit: hit.place)
    differing = [hit for hit in answers if hit.letters != last.letters]
    claimed = any(_is_last_word(said, hit.place) for hit in differing)
    return [last] if _is_last_word(said, last.place) and not claimed else []
