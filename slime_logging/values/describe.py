"""What one opaque Python object is called in a configuration: a name or short text that is the same
in every process.

Policy: nothing is called but `repr`, and that only where its class wrote one of its own; attributes
are looked up on the class, never on the instance, so that mocks, lazy proxies and properties are
left as they were. Addresses are taken out of texts. Functions here may raise what a foreign `repr`
raises: `serialize.to_json` turns that into a marker.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from typing import Any

_ADDRESS = re.compile(
    r"(?:\s+at)?\s+0x[0-9a-fA-F]{4,16}\b|\s+id='\d+'|(?<=\w)\(0x[0-9a-fA-F]{6,16}\)|\b0x[0-9a-fA-F]{9,16}\b"
)
"""CPython's ` at 0x7f...`, a mock's ` id='140...'`; a bare hexadecimal number of more than 32 bits
is an address too.
"""

_NAMED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
_NAMED_TOO = (types.MethodDescriptorType, types.ClassMethodDescriptorType, type)

SMALL_ARRAY = 64
"""Arrays in main memory with up to this many elements are shown with their values; larger ones by
shape and type.
"""


def qualified_name(value: Any) -> str:
    """`module.qualname` of a class, function or method; `builtins` is left out."""
    module = getattr(value, "__module__", None)
    name = (
        getattr(value, "__qualname__", None)
        or getattr(value, "__name__", None)
        or type(value).__qualname__
    )
    if not isinstance(module, str) or module == "builtins":
        return str(name)
    return f"{module}.{name}"


def class_name(value: Any) -> str:
    """The qualified name of the class that the value really has, whatever its `__class__` says."""
    return qualified_name(type(value))


def is_named(value: Any) -> bool:
    """Whether the value is a function, method or class: something known by its name."""
    return issubclass(type(value), _NAMED) or issubclass(type(value), _NAMED_TOO)


def is_proxy(value: Any) -> bool:
    """Whether the class replaces `__class__`: lazy objects and mocks do, and reading anything of
    them may wake or change them.
    """
    return _of_class(type(value), "__class__") is not object.__dict__["__class__"]


def has_attributes(value: Any, *names: str) -> bool:
    """Whether the value's class (not the instance) defines all these attributes."""
    return all(_of_class(type(value), name) is not None for name in names)


def _of_class(cls: type, name: str) -> Any:
    for base in type.__dict__["__mro__"].__get__(cls):
        found = type.__dict__["__dict__"].__get__(base).get(name)
        if found is not None:
            return found
    return None


def object_text(value: Any) -> str:
    """The class's own `repr` without addresses, or the class's qualified name where it has none.

    Proxies and mocks are named by their class alone, without touching them.
    """
    cls = type(value)
    if is_proxy(value) or _of_class(cls, "__repr__") is object.__dict__["__repr__"]:
        return class_name(value)
    if cls is types.ModuleType:
        return str(value.__name__)
    return without_addresses(repr(value))


def without_addresses(text: str) -> str:
    """The text without memory addresses, which differ from process to process."""
    return _ADDRESS.sub("", text) if "0x" in text or " id='" in text else text


def loaded_class(module: str, name: str) -> type | None:
    """A class of a module that this process has loaded already; None otherwise. Never imports."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def is_a(value: Any, module: str, name: str) -> bool:
    """Whether the value is an instance of `module.name`, where that module is loaded."""
    cls = loaded_class(module, name)
    return cls is not None and issubclass(type(value), cls)


def array_text(value: Any) -> str:
    """Shape, type and device of a tensor or array, without reading its elements."""
    shape = "x".join(str(int(size)) for size in value.shape) or "scalar"
    dtype = str(value.dtype).removeprefix("torch.")
    device = getattr(value, "device", None) if has_attributes(value, "device") else None
    return f"<{type(value).__name__} {shape} {dtype}{'' if device is None else f' on {device}'}>"


def num_elements(value: Any) -> int:
    """How many elements the shape of a tensor or array says; -1 where a dimension is not a number
    (symbolic shapes).
    """
    total = 1
    if is_a(value, "torch", "Tensor") and value.is_nested:
        return int(value.numel())
    for size in value.shape:
        if not isinstance(size, int):
            return -1
        total *= size
    return total


def is_array(value: Any) -> bool:
    """Whether the value is a tensor, an array or an array library's scalar, by what its class
    defines.
    """
    return has_attributes(value, "shape", "dtype") and not issubclass(type(value), type)


def array_value(value: Any) -> Any:
    """The number of a one-element tensor or array, the nested list of a small array in main memory,
    the fields of a record by their names, else its description.

    Of a tensor with more than one element nothing is read, so nothing waits for a GPU.
    """
    size = num_elements(value)
    names = getattr(value.dtype, "names", None)
    if isinstance(names, tuple) and 0 <= size <= SMALL_ARRAY:  # records: names stay visible
        return list(value) if value.shape else {name: value[name] for name in names}
    is_tensor = is_a(value, "torch", "Tensor")
    if not has_attributes(value, "item", "tolist") or (is_tensor and value.is_meta):
        return array_text(value)
    if size == 1:
        if is_a(value, "numpy.ma", "MaskedArray"):  # whose `item` is what was masked
            return value.ravel().tolist()[0]
        item = (value.to_dense() if is_tensor else value).item()
        if type(item) is not type(value):
            return item
        return float(item) if item.dtype.kind == "f" else complex(item)  # longer than Python's
    if size == 0 or (0 < size <= SMALL_ARRAY and is_a(value, "numpy", "ndarray")):
        return value.tolist()
    return array_text(value)


def partial_parts(value: functools.partial[Any]) -> dict[str, Any]:
    """Function, positional and keyword arguments of a partial, as nested values so that names stay
    visible to redaction.
    """
    parts: dict[str, Any] = {"partial": value.func}
    if value.args:
        parts["args"] = value.args
    if value.keywords:
        parts["kwargs"] = value.keywords
    return parts
