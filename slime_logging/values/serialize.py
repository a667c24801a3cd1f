"""Any Python value becomes plain JSON.

Policy: `to_json` never raises, never calls the value, never changes it, imports nothing, and gives
the same answer in every process. Nested things stay nested, so that names inside them stay visible
to redaction. What has no JSON form becomes a readable text; what cannot be read becomes a marker in
angle brackets; what is huge is shortened, with its length in the marker.

Guarantees on the result: only None, bool, int, finite float, str, list and dict of exactly those
types; integers within 2**53; text that UTF-8 can hold; string keys; at most `MAX_DEPTH` levels.
"""

from __future__ import annotations

from typing import Any

from slime_logging.values.fields import snapshot
from slime_logging.values.json_scalars import text_json
from slime_logging.values.json_value import Json
from slime_logging.values.walk import Walk, key_text, unused


def to_json(value: Any) -> Json:
    """The value as plain JSON; see the module's policy for what is guaranteed.

    Dicts, Namespaces, dataclasses, attrs classes, pydantic models, named tuples and partials become
    mappings; lists, tuples, sets (sorted) and other sequences become lists; enums their name;
    dtypes, devices, paths, dates, decimals their usual text; functions and classes their qualified
    name; bytes their UTF-8 text, else `base64:...`; tensors and arrays a number (one element) or a
    description; other objects their repr without addresses, or the qualified name of their class.
    NaN and infinities become "NaN", "Infinity", "-Infinity".
    """
    return Walk().any(value, 0)


def arguments_to_json(args: Any) -> dict[str, Json]:
    """Every argument of a namespace, a mapping or an object with fields, by its name, in the
    object's order; neither copied deeply nor changed.
    """
    values = snapshot(args)
    names = set(values)
    out: dict[str, Json] = {}
    for name, value in values.items():
        if type(name) is str:
            out[name if name.isascii() else text_json(name)] = to_json(value)
        else:
            out[unused(key_text(name), out.keys() | names)] = to_json(value)
    return out
