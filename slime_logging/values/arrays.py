"""A tensor or array as what people look at: its distribution, in at most `NUM_BINS` bins.

Policy: read once, never changed; nothing is imported but NumPy, and that only where an array
library is loaded. A tensor on a GPU is copied, which waits for the GPU: whoever logs it asks for
that. Functions here may raise what the array's own library raises.
"""

from __future__ import annotations

from typing import Any

from slime_logging.values import describe
from slime_logging.values.json_value import Json

NUM_BINS = 64
MAX_ELEMENTS = 2**27
"""Of an array that is read: half a gigabyte of single floats, so that no call takes all memory."""


def as_numpy(value: Any) -> Any | None:
    """The NumPy array of numbers that the value holds, in main memory; None where it holds none, or
    one, or too many.

    What NumPy has no type for (bfloat16) is single precision.
    """
    size = describe.num_elements(value)
    if not 1 < size <= MAX_ELEMENTS:
        return None
    import numpy

    if describe.is_a(value, "torch", "Tensor"):
        found = _of_tensor(value)
    elif describe.is_a(value, "numpy.ma", "MaskedArray"):
        found = value.astype(numpy.float64).filled(numpy.nan)
    elif describe.has_attributes(value, "get", "device"):  # CuPy's refuse to be converted
        found = value.get()
    else:
        found = numpy.asarray(value)
    if found.dtype.kind == "V" and found.dtype.names is None:  # ml_dtypes' bfloat16 and the like
        found = found.astype(numpy.float32)
    return found if found.dtype.kind in "biufc" else None


def distribution(array: Any) -> dict[str, Json]:
    """Counts and edges of the finite elements, their mean, standard deviation, least and greatest,
    and how many are not finite; of complex numbers the magnitudes.
    """
    import numpy

    numbers = numpy.abs(array) if array.dtype.kind == "c" else array
    numbers = numbers.astype(numpy.float64, copy=False).ravel()
    finite = numbers[numpy.isfinite(numbers)]
    found: dict[str, Json] = {
        "shape": [int(size) for size in array.shape],
        "dtype": str(array.dtype),
        "num_nonfinite": int(numbers.size - finite.size),
    }
    if not finite.size:
        return {"counts": [], "edges": [], **found}
    scale = float(numpy.abs(finite).max()) or 1.0  # sums and squares of the greatest overflow
    scaled = finite / scale
    counts, edges = _bins(finite)
    return {
        "counts": counts,
        "edges": edges,
        **found,
        "mean": _inside(scaled.mean() * scale),
        "std": _inside(scaled.std() * scale),
        "min": float(finite.min()),
        "max": float(finite.max()),
    }


def _bins(finite: Any) -> tuple[list[Json], list[Json]]:
    import numpy

    try:
        with numpy.errstate(all="ignore"):
            counts, edges = numpy.histogram(finite, bins=NUM_BINS)
        if numpy.isfinite(edges).all():
            return counts.tolist(), edges.tolist()
    except ValueError:  # a range that cannot be cut into so many bins: too narrow, or too wide
        pass
    return [int(finite.size)], [float(finite.min()), float(finite.max())]


def _inside(number: Any) -> float:
    import numpy

    largest = numpy.finfo(numpy.float64).max
    return float(min(max(number, -largest), largest))


def _of_tensor(value: Any) -> Any:
    tensor = value.detach().cpu()
    if tensor.is_nested:
        import torch

        tensor = torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if "strided" not in str(tensor.layout):
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:  # bfloat16 and the eight-bit floats
        return tensor.float().numpy()
