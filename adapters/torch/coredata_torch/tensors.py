"""Arrays as tensors: the same memory, one call a field."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

Tensors = dict[str, torch.Tensor]
"""A batch, or a sample: field name -> tensor."""


def as_tensors(fields: Mapping[str, Any], *, pin_memory: bool = False) -> Tensors:
    """Every field of a batch or a sample as a tensor.

    Tensors share the memory of the arrays. Only an array that torch cannot stand on is copied:
    one that is read-only, of another byte order, or with a negative stride.

    Args:
        fields: arrays and scalars by name.
        pin_memory: copy them to page-locked memory, from which copies to a GPU need not wait.

    Raises:
        TypeError: a field whose type torch has not, such as text.
    """
    tensors = {name: _as_tensor(name, value) for name, value in fields.items()}
    if not pin_memory:
        return tensors
    return {name: tensor.pin_memory() for name, tensor in tensors.items()}


def _as_tensor(name: str, value: Any) -> torch.Tensor:
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"field {name} has the type {array.dtype}, which is no type of a tensor; leave the "
            "field out of the batch, or turn it into numbers"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)
