"""A sample side by side: ids, their text, what is to be predicted, and whether it counts."""

from typing import Any

import numpy as np

from coredata.datasets.protocol import Sample

_IGNORED = -100
_WIDTH = 24


def show_sample(sample: Sample, tokenizer: Any, limit: int | None = None) -> str:
    """A table with one line for each token of a sample, for people to read.

    Columns: place, position id, token id and its text, label and its text, and `loss` where the
    label counts. Where a conversation or document begins (`cu_seqlens`), a rule is drawn.

    Args:
        sample: of any dataset: `tokens`, `labels`, `loss_mask`, `position_ids`.
        tokenizer: decodes ids.
        limit: tokens to show; None for all.
    """
    tokens, labels = sample["tokens"].tolist(), sample["labels"].tolist()
    counts, positions = sample["loss_mask"].tolist(), sample["position_ids"].tolist()
    starts = set(np.asarray(sample.get("cu_seqlens", [0])).tolist()) - {0}
    lines = [_line("place", "position", "token", "text", "label", "text", "")]
    shown = tokens if limit is None else tokens[:limit]
    for place, token in enumerate(shown):
        if place in starts:
            lines.append("-" * len(lines[0]))
        label = labels[place]
        lines.append(
            _line(
                place,
                positions[place],
                token,
                _text(token, tokenizer),
                label,
                "" if label == _IGNORED else _text(label, tokenizer),
                "loss" if counts[place] else "",
            ).rstrip()
        )
    if len(shown) < len(tokens):
        lines.append(f"… {len(tokens) - len(shown)} more")
    total = sum(1 for count in counts if count)
    lines.append(f"{len(tokens)} tokens, {total} with loss")
    return "\n".join(lines)


def _line(
    place: Any, position: Any, token: Any, text: str, label: Any, label_text: str, loss: str
) -> str:
    return (
        f"{place:>6} {position:>8} {token:>8} {text:<{_WIDTH}} {label:>8} "
        f"{label_text:<{_WIDTH}} {loss:<4}"
    )


def _text(token: int, tokenizer: Any) -> str:
    """The text of one token, as Python writes it; its name where it decodes to nothing."""
    text = tokenizer.decode([token])
    if not text:
        return "(special)"
    written = repr(text)
    return written if len(written) <= _WIDTH else written[: _WIDTH - 1] + "…"
