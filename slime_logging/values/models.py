"""The fields of an object whose class declares them: pydantic and attrs models, msgspec structs.

Policy: nothing is imported, no method or property of the object runs; what a class declares is read
from where the object stores it.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

UNSET = "<unset>"


def declared_fields(value: Any) -> dict[str, Any] | None:
    """Name -> stored value of a model's fields, in the order of their declaration; None for an
    object that is no such model.

    Extra fields that a pydantic model was given come behind the declared ones.
    """
    cls = type(value)
    attributes = _of_class(cls, "__attrs_attrs__")
    if isinstance(attributes, tuple):
        return stored_fields(value, [attribute.name for attribute in attributes])
    names = getattr(cls, "__struct_fields__", None)
    if isinstance(names, tuple):
        return stored_fields(value, names)
    if not isinstance(_of_class(cls, "__pydantic_fields__") or _of_class(cls, "__fields__"), dict):
        return None
    stored = stored_fields(value, ["__pydantic_extra__"])
    extra = stored.get("__pydantic_extra__")
    own: dict[str, Any] = object.__getattribute__(value, "__dict__")
    return own | (extra if isinstance(extra, dict) else {})


def stored_fields(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """These fields as the object stores them, in its `__dict__` or in slots, without running
    properties; a slot without a value is `UNSET`.
    """
    try:
        stored = object.__getattribute__(value, "__dict__")
    except AttributeError:
        stored = {}
    out: dict[str, Any] = {}
    for name in names:
        if name in stored:
            out[name] = stored[name]
            continue
        slot = _of_class(type(value), name)
        if isinstance(slot, types.MemberDescriptorType):
            try:
                out[name] = slot.__get__(value)
            except AttributeError:
                out[name] = UNSET
    return out


def _of_class(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
