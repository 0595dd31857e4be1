"""JSON by schema: a value that obeys one, and the ways a model breaks one. Knows no role and no prompt."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]


def resolve(schema: Any, root: Schema) -> Schema:
    """The schema behind `$ref`s into the root."""
    while isinstance(schema, Mapping) and "$ref" in schema:
        target: Any = root
        for name in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
            target = target[name] if name else target
        schema = target
    return schema if isinstance(schema, Mapping) else {}


def instance(schema: Any, root: Schema, rng: random.Random) -> Any:
    """A small value that obeys the schema: required fields only, null where that is allowed."""
    schema = resolve(schema, root)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            options = [resolve(option, root) for option in schema[union]]
            return instance(next((one for one in options if one.get("type") == "null"), options[0]), root, rng)
    if "allOf" in schema:
        return instance(_merged([resolve(part, root) for part in schema["allOf"]]), root, rng)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    given = schema.get("type", "object" if "properties" in schema else "null")
    kinds = [given] if isinstance(given, str) else given
    return _of_kind("null" if "null" in kinds else kinds[0], schema, root, rng)


def _of_kind(kind: str, schema: Schema, root: Schema, rng: random.Random) -> Any:
    if kind == "object":
        return {name: instance(schema["properties"][name], root, rng) for name in schema.get("required", ())}
    if kind == "array":
        return [instance(schema.get("items", {}), root, rng) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return "simulated".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return min(low, schema.get("maximum", low))
    return False if kind == "boolean" else None


def _merged(parts: list[Schema]) -> Schema:
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            old = merged.get(name)
            if isinstance(value, Mapping) and isinstance(old, Mapping):
                value = {**old, **value}
            elif isinstance(value, list) and isinstance(old, list):
                value = [*old, *value]
            merged[name] = value
    return merged


def malformed(value: Any, rng: random.Random, more: Sequence[str] = ()) -> str:
    """The value as JSON that is broken, or of a wrong shape, or one of `more` texts that are wrong otherwise."""
    text = json.dumps(value)
    spoilt = [text[:-1], text + "}]", *more]
    if isinstance(value, dict) and value:
        first, last = next(iter(value)), list(value)[-1]
        wrong = [{name: value[name] for name in value if name != last}, {**value, first: [value[first]]}]
        for name, outside in (("issue", "ugly_frame"), ("answer", "e")):
            if name in value:
                wrong.append({**value, name: outside})
        spoilt += [json.dumps(one) for one in wrong]
    return rng.choice(spoilt)
