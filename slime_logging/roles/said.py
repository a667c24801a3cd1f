"""What a scalar says as text, and the mistake where that is not what its option takes."""

from __future__ import annotations

import difflib
from decimal import Decimal, InvalidOperation

from slime_logging.roles.nodes import Entries, Items, Node, Scalar
from slime_logging.roles.problems import shown_value
from slime_logging.roles.targets import Mistake, Target

MAX_SAID = 100
"""Characters of a wrong choice that are compared with the right ones."""

MAX_DIGITS = 400
"""Digits of a whole number; a float holds 309 of them, and `1e999999999` must not be written
out.
"""


def not_a_choice(target: Target, node: Node, names: list[str]) -> Mistake:
    """The mistake that a value is none of the choices; the nearest ones come first."""
    text = node.text if isinstance(node, Scalar) else ""
    said = text[:MAX_SAID].lower()
    ranked = sorted(
        names, key=lambda name: -difflib.SequenceMatcher(None, said, name.lower()).ratio()
    )
    fix = f"write one of: {', '.join(ranked[:40])}"
    return Mistake(node, f"{_said(target, node)} is not among the values of `{target.name}`", fix)


def _said(target: Target, node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Entries):
        return "a mapping"
    if node.is_null:
        return "null"
    return f"'{shown_value(target.name, node.text)}'"


def text_of(target: Target, node: Node, wanted: str) -> str:
    """The scalar's text; `wanted` says what the option takes, for the reason."""
    if isinstance(node, Scalar) and not node.is_null:
        return node.text
    raise unfit(target, node, wanted)


def unfit(target: Target, node: Node, wanted: str, more: str = "") -> Mistake:
    """The mistake that a value is not of the wanted kind; `more` ends the sentence."""
    return Mistake(
        node,
        f"`{target.name}` takes {wanted}, not {_said(target, node)}{more}",
        f"write for example {target.example}",
    )


def whole_number_of(text: str) -> int | None:
    """What `int` takes, `0x10`, `0o10`, and decimals without a fraction (`1e3`, `10.0`)."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        if text[:2].lower() in ("0x", "0o"):
            return int(text, 0)
        number = Decimal(text)
    except (ValueError, InvalidOperation):
        return None
    is_whole = number.is_finite() and number.adjusted() < MAX_DIGITS
    return int(number) if is_whole and number == number.to_integral_value() else None


def float_text(text: str) -> str:
    """A number's text as `float` takes it: YAML's `.inf` and `0x10` are `inf` and `16`."""
    plain = text.strip().lower().replace(".inf", "inf").replace(".nan", "nan")
    number = whole_number_of(plain) if plain[:2] in ("0x", "0o") else None
    return plain if number is None else str(number)
