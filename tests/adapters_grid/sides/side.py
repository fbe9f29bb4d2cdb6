"""What the sides of the grid share: the data, and how jobs come in and results go out.

A side is a process of one framework, or several that are one program. It reads jobs, one JSON
object a line: for each it reads `steps` global batches from `state` on in the shape that the job
describes, writes the pieces it held of them into the directory `out`, and answers with its state.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.text import NullTokenizer

GLOBAL_BATCH, SEQUENCE, STEPS = 24, 16, 50
STEPS_OF_AN_EPOCH = 10  # where samples are gone through again and again

Job = dict[str, Any]


class Piece(NamedTuple):
    """The part of each global batch that one rank or one device held, and where it lies."""

    rows: np.ndarray
    columns: np.ndarray
    fields: dict[str, np.ndarray]  # (steps, rows, columns), or (steps, rows)

    @classmethod
    def of(cls, rows, columns, batches: list[dict[str, Any]]) -> "Piece":
        names = batches[0]
        return cls(
            np.asarray(rows),
            np.asarray(columns),
            {name: np.stack([np.asarray(batch[name]) for batch in batches]) for name in names},
        )


def save_pieces(path: Path, pieces: list[Piece]) -> None:
    arrays = {}
    for number, piece in enumerate(pieces):
        arrays[f"{number}.rows"], arrays[f"{number}.columns"] = piece.rows, piece.columns
        arrays.update({f"{number}.field.{name}": a for name, a in piece.fields.items()})
    np.savez(path, **arrays)


def load_pieces(path: Path) -> list[Piece]:
    with np.load(path) as file:
        count = sum(name.endswith(".rows") for name in file)
        return [
            Piece(
                file[f"{number}.rows"],
                file[f"{number}.columns"],
                {
                    name.partition(".field.")[2]: file[name]
                    for name in file
                    if name.startswith(f"{number}.field.")
                },
            )
            for number in range(count)
        ]


def open_dataset(directory: Path, order: str) -> Any:
    """A blend of two corpora."""
    config = GPTDatasetConfig(
        random_seed=11,
        sequence_length=SEQUENCE,
        blend=([str(directory / "one"), str(directory / "two")], [0.7, 0.3]),
        split="1,0,0",
        tokenizer=NullTokenizer(300),
        path_to_cache=None,
        segment_ids=True,
        output_dtype="int32",
    )
    steps = STEPS_OF_AN_EPOCH if order == "cyclic" else STEPS
    sizes = [GLOBAL_BATCH * steps, 0, 0]
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, config=config).build()[0]


def rows_of_rank(order: str, rank: int, size: int, micro: int) -> np.ndarray:
    """Which rows of a global batch a data-parallel rank reads, in the order in which it does."""
    blocks = np.arange(GLOBAL_BATCH).reshape(-1, size, micro)
    if order == "cyclic":  # the rows of a block are dealt to the ranks in turn
        blocks = blocks.reshape(-1, micro, size).transpose(0, 2, 1)
    return blocks[:, rank].reshape(-1)


def joined(micro_batches: list[dict[str, Any]], steps: int) -> list[dict[str, np.ndarray]]:
    """The micro batches of a rank, put together step by step."""
    rounds = len(micro_batches) // steps
    return [
        {
            name: np.concatenate([np.asarray(b[name]) for b in micro_batches[at : at + rounds]])
            for name in micro_batches[0]
        }
        for at in range(0, len(micro_batches), rounds)
    ]


def answers() -> IO[str]:
    """Standard output, for answers alone: what libraries write there goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return pipe


def serve(run: Callable[[Job, Path], tuple[list[Piece], Any]], name: str, to: IO[str]) -> None:
    """Do jobs until there are no more."""
    print(json.dumps("ready"), file=to, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        pieces, state = run(job, Path(job["data"]))
        save_pieces(Path(job["out"]) / f"{name}.npz", pieces)
        print(json.dumps(state), file=to, flush=True)
