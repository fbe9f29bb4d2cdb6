"""What a batch looks like between processes: a header of 64-bit integers, and bytes by dtype."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from coredata_torch.tensors import Tensors

HEADER = 1024
"""Integers in a header; all processes of a group know it."""

BATCH, END, FAILED = 0, 1, 2
"""Kinds of headers."""

DTYPES = (
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
)
"""A dtype goes by its place in this list."""


def pack_header(kind: int, content: Sequence[int] | str) -> torch.Tensor:
    """A header: kind, number of integers or bytes, and these. Texts that are too long are cut.

    Raises:
        ValueError: more integers than a header holds.
    """
    room = HEADER - 2
    if isinstance(content, str):
        data = content.encode("utf-8", "replace")[: room * 8]
        words, count = _text_words(data), len(data)
    else:
        words, count = list(content), len(content)
        if count > room:
            raise ValueError(
                f"the names and shapes of a batch need {count} integers, but one message holds "
                f"{room}; send fewer fields, or give them shorter names"
            )
    return torch.tensor([kind, count, *words, *[0] * (room - len(words))], dtype=torch.int64)


def read_header(header: torch.Tensor) -> tuple[int, list[int] | str]:
    """Kind and content of a header."""
    kind, count, *words = header.tolist()
    if kind == FAILED:
        return kind, _text(words, count)
    return kind, words[:count]


@dataclass(frozen=True)
class Layout:
    """Names, dtypes and shapes of the fields of a batch, in order."""

    fields: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]

    @classmethod
    def of(cls, batch: Tensors) -> "Layout":
        """The layout of a batch."""
        return cls({name: (t.dtype, tuple(t.shape)) for name, t in batch.items()})

    def words(self) -> list[int]:
        """As integers: for each field the length of its name, the name, dtype, rank and sizes.

        Raises:
            ValueError: a dtype that is not sent.
        """
        words = [len(self.fields)]
        for name, (dtype, shape) in self.fields.items():
            if dtype not in DTYPES:
                raise ValueError(f"field {name} is {dtype}, which is not sent; use a real type")
            data = name.encode()
            words += [len(data), *_text_words(data), DTYPES.index(dtype), len(shape), *shape]
        return words

    @classmethod
    def from_words(cls, words: Sequence[int]) -> "Layout":
        """Back from integers."""
        rest = iter(words)
        fields = {}
        for _ in range(next(rest)):
            size = next(rest)
            name = _text([next(rest) for _ in range(-(-size // 8))], size)
            dtype = DTYPES[next(rest)]
            fields[name] = (dtype, tuple(next(rest) for _ in range(next(rest))))
        return cls(fields)

    def dtypes(self) -> list[torch.dtype]:
        """The dtypes there are, each once, in the order of the fields."""
        return list(dict.fromkeys(dtype for dtype, _ in self.fields.values()))

    def bytes_of(self, dtype: torch.dtype) -> int:
        """Bytes of all fields of a dtype."""
        shapes = [shape for found, shape in self.fields.values() if found == dtype]
        return sum(torch.Size(shape).numel() for shape in shapes) * dtype.itemsize

    def flatten(self, batch: Tensors, dtype: torch.dtype) -> torch.Tensor:
        """All fields of a dtype one after the other, as bytes: every backend can carry them."""
        parts = [batch[name].reshape(-1) for name, (d, _) in self.fields.items() if d == dtype]
        return torch.cat(parts).view(torch.uint8)

    def unflatten(self, flat: Mapping[torch.dtype, torch.Tensor]) -> Tensors:
        """The fields again: views of the bytes of each dtype."""
        typed = {dtype: data.view(dtype) for dtype, data in flat.items()}
        taken = dict.fromkeys(typed, 0)
        batch = {}
        for name, (dtype, shape) in self.fields.items():
            start, size = taken[dtype], torch.Size(shape).numel()
            batch[name] = typed[dtype][start : start + size].reshape(shape)
            taken[dtype] = start + size
        return batch


def _text_words(data: bytes) -> list[int]:
    """Bytes as integers, eight to one."""
    chunks = (data[i : i + 8] for i in range(0, len(data), 8))
    return [int.from_bytes(chunk.ljust(8, b"\0"), "little", signed=True) for chunk in chunks]


def _text(words: Sequence[int], size: int) -> str:
    data = b"".join(word.to_bytes(8, "little", signed=True) for word in words)
    return data[:size].decode("utf-8", "replace")
