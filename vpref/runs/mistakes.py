"""Hydra's and OmegaConf's errors as one sentence: what is wrong with what was given, and what to do.

Their errors are told apart by name and text, so that this loads neither.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import fields, is_dataclass

from vpref.domain import Role

_UNKNOWN_KEY = ("ConfigAttributeError", "ConfigKeyError")


def config_mistake(error: BaseException) -> str | None:
    """The sentence for an error of composing the config; None for any other error, which is a fault of ours."""
    if not type(error).__module__.startswith(("hydra.", "omegaconf.")):
        return None
    text = str(error)
    for rule in (_unknown_option, _unknown_group, _several_values, _unreadable):
        sentence = rule(text)
        if sentence is not None:
            return sentence
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    for one in reversed(chain):
        key = getattr(one, "full_key", None)
        if key and type(one).__name__ in _UNKNOWN_KEY:
            return _unknown_key(str(key), getattr(one, "object_type", None))
        if key:
            return f"{key} does not fit: {str(one).splitlines()[0].rstrip('.')}."
    return f"{text.splitlines()[0].rstrip('.')}; see --help for groups and settings."


def _unknown_option(text: str) -> str | None:
    found = re.search(r"Could not find '([^']+)'", text)
    if found is None:
        return None
    group, _, option = found.group(1).rpartition("/")
    options = re.findall(r"^\t([^\t\n=]+)$", text, re.MULTILINE)
    return f"There is no {group or 'config'} {option!r}; {_nearest(option, options)}"


def _unknown_group(text: str) -> str | None:
    found = re.search(r"Could not override '([^']+)'.*(?:in the defaults list|mean to override)", text, re.DOTALL)
    if found is None:
        return None
    role = re.fullmatch(r"model@pipeline\.(\w+)", found.group(1))
    if role:
        return f"There is no role {role.group(1)!r}; {_nearest(role.group(1), ['model', *list(Role)[:5]])}"
    return f"There is no place {found.group(1)!r} to put an option; --help lists the groups and their places."


def _several_values(text: str) -> str | None:
    found = re.search(r"Ambiguous value for argument '([^']+)'", text)
    if found is None:
        return None
    return f"{found.group(1)} gives several values; add -m to run one job for each."


def _unreadable(text: str) -> str | None:
    found = re.search(r"(?:Lexer\w+|mismatched input|missing \w+ at|token recognition|extraneous)[^\n]*", text)
    if found is None:
        return None
    return (
        f"An override cannot be read ({found.group(0)[:80]}); give key=value, and quote what is special: 'key=\"a=b\"'."
    )


def _unknown_key(key: str, owner: object) -> str:
    if owner is dict:
        return f"Nothing is called {key!r} yet; with a plus you add it: +{key}=VALUE."
    known = [one.name for one in fields(owner)] if isinstance(owner, type) and is_dataclass(owner) else []
    return f"There is no setting {key!r}; {_nearest(key.rpartition('.')[2], known)}"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"choose from {', '.join(known)}." if known else "see --help."
