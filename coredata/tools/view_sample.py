"""One sample as a value: its tokens as text, what bears loss, and where every part came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Bool, Int64
from coredata.datasets import (
    BlendedDataset,
    GPTFIMDataset,
    TracePart,
    trace_samples,
)
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.protocol import Sample
from coredata.tools.skip_samples import find_sample
from coredata.tools.view_text import Unit, text_units

PADDED = 0
"""Segment number of padding; others count from 1."""

_ROWS = {
    "tokens": ("labels", "loss_mask", "position_ids"),
    "text": ("labels", "loss_mask", None),
    "text_enc": (None, None, None),
    "text_dec": ("labels", "loss_mask", None),
}
"""Fields that are rows of tokens, with the fields of their labels, losses and positions."""


@dataclass(frozen=True, eq=False)
class TokenRow:
    """A row of tokens of a sample; of T5 there are two.

    Attributes:
        field: its name in the sample.
        tokens: ids.
        labels: what is to be predicted at each place; None if nothing is.
        loss: whether the label at each place counts.
        learned: whether each token itself is a label that counts: that of the place before it, as
            labels are the next tokens; of its own place where they are in place (BERT).
        positions: position ids; None if the sample has none.
        segments: number of the document or part that each token is in, from 1; 0 for padding.
        units: the same tokens as text.
        in_place: whether a label is what belongs in its own place (BERT), not in the next.
        answers: then the text that belongs there, by place.
    """

    field: str
    tokens: Int64[np.ndarray, " n"]
    labels: Int64[np.ndarray, " n"] | None
    loss: Bool[np.ndarray, " n"] | None
    learned: Bool[np.ndarray, " n"] | None
    positions: Int64[np.ndarray, " n"] | None
    segments: Int64[np.ndarray, " n"]
    units: tuple[Unit, ...]
    in_place: bool
    answers: Mapping[int, str]


@dataclass(frozen=True)
class PlacedPart:
    """A part of a document, and where it lies in the sample.

    Attributes:
        part: which, of what file.
        begin: its first place in the first row of tokens; None where tokens were moved about
            (infilling, masking, conversations).
        end: the place after its last.
    """

    part: TracePart
    begin: int | None
    end: int | None


@dataclass(frozen=True)
class SampleView:
    """All that `coredata view` shows of a sample.

    Attributes:
        sample: its original number, which a skip list takes.
        samples: of how many.
        kept_number: how many samples that the skip list keeps are before it; None if it is
            skipped; without a list, its number.
        kept_samples: how many samples are kept.
        dataset: class of the dataset; of a blend, of the one that gave it.
        blend: datasets of the blend; 0 if it is none.
        fields: name -> shape and dtype, in words.
        rows: its rows of tokens.
        parts: where it came from.
        notes: remarks.
    """

    sample: int
    samples: int
    kept_number: int | None
    kept_samples: int
    dataset: str
    blend: int
    fields: Mapping[str, str]
    rows: tuple[TokenRow, ...]
    parts: tuple[PlacedPart, ...]
    notes: tuple[str, ...]


def view_sample(dataset: Any, sample: int, tokenizer: Any) -> SampleView:
    """Read a sample, and find where it came from.

    Args:
        dataset: what to read; with a skip list, those that are skipped can be seen too.
        sample: its original number: a skip list does not change it.
        tokenizer: gives the text.

    Raises:
        IndexError: a sample that does not exist.
        TypeError: a dataset that cannot be traced.
        ValueError: a sample without a row of tokens that is known here.
    """
    found = find_sample(dataset, sample)
    whole = found.dataset
    parts = trace_samples(whole, np.array([sample], np.int64)).parts()
    item = whole[sample]
    leaf = _leaf(whole, parts)
    placed, notes = _place(leaf, item, parts)
    rows = tuple(
        _row(item, field, placed, tokenizer, isinstance(leaf, GPTDataset))
        for field in _ROWS
        if field in item
    )
    if not rows:
        raise ValueError(
            f"sample {sample} has the fields {', '.join(item)}; none of {', '.join(_ROWS)}, which "
            "can be shown, is among them"
        )
    if found.kept is None:
        notes.append("it is on the skip list: training passes it over")
    blend = len(whole.datasets) if isinstance(whole, BlendedDataset) else 0
    fields = {name: _shape(value) for name, value in item.items()}
    return SampleView(
        sample,
        len(whole),
        found.kept,
        len(dataset),
        type(leaf).__name__,
        blend,
        fields,
        rows,
        tuple(placed),
        tuple(notes),
    )


def _leaf(dataset: Any, parts: list[TracePart]) -> Any:
    """The dataset that gave the sample."""
    while isinstance(dataset, BlendedDataset):
        dataset = dataset.datasets[(parts[0].dataset or 0) if parts else 0]
    return dataset


def _place(leaf: Any, item: Sample, parts: list[TracePart]) -> tuple[list[PlacedPart], list[str]]:
    """Where parts lie in the sample, if they lie there as they were read."""
    if isinstance(leaf, GPTFIMDataset):
        note = "infilling may have permuted the tokens after they were read"
        return [PlacedPart(part, None, None) for part in parts], [note]
    if not isinstance(leaf, GPTDataset):
        return [PlacedPart(part, None, None) for part in parts], []
    size, place, placed = len(item["tokens"]), 0, []
    for part in parts:
        begin, place = place, place + part.length
        if begin < size:
            placed.append(PlacedPart(part, begin, min(place, size)))
    notes = []
    if place > size:
        notes.append("the extra token, label of the last place, is not shown among the tokens")
    if place < size:
        several = "1 place" if size - place == 1 else f"{size - place} places"
        notes.append(f"padding: {several} at the end")
    return placed, notes


def _row(
    item: Sample, field: str, parts: list[PlacedPart], tokenizer: Any, documents: bool
) -> TokenRow:
    labels, loss, positions = (
        item.get(name) if name is not None else None for name in _ROWS[field]
    )
    tokens = np.asarray(item[field], np.int64)
    segments = _segments(item, field, tokens, parts if documents else [])
    in_place = field == "text"
    breaks = {int(place) for place in np.flatnonzero(np.diff(segments)) + 1}
    counts = None if loss is None else np.asarray(loss) != 0
    learned = None if counts is None else _learned(tokens, labels, counts, in_place)
    answers: dict[int, str] = {}
    if counts is not None and learned is not None:
        breaks.update(int(place) for place in np.flatnonzero(np.diff(learned)) + 1)
        if in_place and labels is not None:  # each masked token beside what belongs there
            breaks.update(int(place) for place in np.flatnonzero(counts))
            answers = {
                int(place): tokenizer.decode([int(labels[place])])
                for place in np.flatnonzero(counts)
            }
    return TokenRow(
        field,
        tokens,
        None if labels is None else np.asarray(labels, np.int64),
        counts,
        learned,
        None if positions is None else np.asarray(positions, np.int64),
        segments,
        tuple(text_units(tokens.tolist(), tokenizer, breaks)),
        in_place,
        answers,
    )


def _learned(
    tokens: np.ndarray, labels: np.ndarray | None, counts: np.ndarray, in_place: bool
) -> np.ndarray:
    """Which tokens are themselves labels that count."""
    if in_place:
        return counts
    learned = np.zeros(len(tokens), np.bool_)
    learned[1:] = counts[:-1]
    if labels is not None:  # a label that is not the next token is no text that is shown
        learned[1:] &= np.asarray(labels)[:-1] == tokens[1:]
    return learned


def _segments(item: Sample, field: str, tokens: np.ndarray, parts: list[PlacedPart]) -> np.ndarray:
    """The segment of each token: as the sample says, else the documents that were read."""
    places = np.arange(len(tokens))
    if field != "tokens":
        real = places < _real_length(item, field, len(tokens))
        types = np.asarray(item["types"]) if field == "text" else np.zeros(len(tokens))
        return np.where(real, 1 + (types == 1), PADDED).astype(np.int64)
    if "segment_ids" in item:
        return np.asarray(item["segment_ids"], np.int64)
    bounds = [placed.begin for placed in parts if placed.begin is not None]
    if "cu_seqlens" in item:
        bounds = np.unique(item["cu_seqlens"]).tolist()
    segments = np.searchsorted(np.array(bounds or [0]), places, "right").astype(np.int64)
    ends = [placed.end for placed in parts if placed.end is not None]
    end = max(ends) if ends else _real_length(item, field, len(tokens))
    segments[places >= end] = PADDED
    return segments


def _real_length(item: Sample, field: str, size: int) -> int:
    """Tokens that are no padding."""
    if "original_seq_len" in item:
        return int(np.asarray(item["original_seq_len"]).reshape(-1)[0])
    if field == "tokens":
        if "padding_mask" in item:
            return int(np.count_nonzero(~np.asarray(item["padding_mask"], np.bool_)))
        return size
    masks = {"text": "padding_mask", "text_enc": "enc_mask", "text_dec": "dec_mask"}
    mask = np.asarray(item[masks[field]])
    rows = mask if mask.ndim == 1 else mask.reshape(-1, mask.shape[-1]).max(axis=0)
    return int(np.count_nonzero(rows == 1))


def _shape(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype.name} {list(array.shape)}" if array.shape else array.dtype.name
