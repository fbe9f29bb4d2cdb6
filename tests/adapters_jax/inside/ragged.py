"""Samples of different lengths, and the rows they are packed in, laid out by hand."""

from dataclasses import dataclass, field

import numpy as np

from coredata.varlen import PackPlan


@dataclass
class Ragged:
    """Sample k has `padded[k]` tokens 1000 (k + 1) + 0, 1, …, the first `original[k]` of them real.

    It notes which samples were read.
    """

    original: list[int]
    padded: list[int]
    name: str = "ragged"
    reads: list[int] = field(default_factory=list)

    def __len__(self):
        return len(self.padded)

    def __getitem__(self, index):
        self.reads.append(index)
        count = self.padded[index]
        tokens = 1000 * (index + 1) + np.arange(count, dtype=np.int64)
        return {
            "tokens": tokens,
            "labels": tokens + 1,
            "loss_mask": (tokens % 3 > 0).astype(np.float32),
            "position_ids": np.arange(count),
            "original_seq_len": np.array([self.original[index]], np.int32),
            "padded_seq_len": np.array([count], np.int32),
        }

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        raise ValueError("samples of different lengths")

    def fingerprint(self):
        return {"name": self.name, "samples": len(self)}


def ragged(seed: int, samples: int = 60, longest: int = 12, multiple: int = 1) -> Ragged:
    original = np.random.default_rng(seed).integers(1, longest + 1, samples)
    return Ragged(original.tolist(), (-(-original // multiple) * multiple).tolist())


def by_hand(dataset: Ragged, plan: PackPlan, max_segments: int) -> dict[str, np.ndarray]:
    """The rows of a plan, token by token."""
    batch = {name: [] for name in ("tokens", "labels", "loss_mask", "segment_ids", "position_ids")}
    batch.update(cu_seqlens=[], cu_seqlens_padded=[])
    for row in range(len(plan)):
        fields = {name: [] for name in batch}
        fields["cu_seqlens"], fields["cu_seqlens_padded"] = [0], [0]
        segments = plan[row]
        for number in range(len(segments)):
            index, offset = int(segments.samples[number]), int(segments.offsets[number])
            sample, real = dataset[index], 0
            for place in range(int(segments.lengths[number])):
                is_real = offset + place < dataset.original[index]
                real += is_real
                for name in ("tokens", "labels", "loss_mask"):
                    fields[name].append(sample[name][offset + place] if is_real else 0)
                fields["segment_ids"].append(number + 1 if is_real else 0)
                fields["position_ids"].append(place if is_real else 0)
            fields["cu_seqlens"].append(fields["cu_seqlens"][-1] + real)
            fields["cu_seqlens_padded"].append(len(fields["tokens"]))
        for name, values in fields.items():
            size = max_segments + 1 if name.startswith("cu") else plan.limit
            fill = values[-1] if name.startswith("cu") else 0
            batch[name].append(values + [fill] * (size - len(values)))
    types = {"tokens": np.int64, "labels": np.int64, "loss_mask": np.float32}
    return {name: np.array(rows, types.get(name, np.int32)) for name, rows in batch.items()}
