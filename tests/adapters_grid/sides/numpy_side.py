"""The numpy loader; `workers` are its threads."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from side import (
    GLOBAL_BATCH,
    SEQUENCE,
    Job,
    Piece,
    answers,
    joined,
    open_dataset,
    rows_of_rank,
    serve,
)

from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingRandomSampler, MegatronPretrainingSampler


def run(job: Job, directory: Path) -> tuple[list[Piece], Any]:
    dataset = open_dataset(directory, job["order"])
    ranks, micro, steps = job["processes"], job["micro_batch"], job["steps"]
    pieces, states = [], []
    for rank in range(ranks):
        sampler = (
            MegatronPretrainingRandomSampler(len(dataset), 0, micro, rank, ranks, False)
            if job["order"] == "cyclic"
            else MegatronPretrainingSampler(len(dataset), 0, micro, rank, ranks)
        )
        threads = job["workers"]
        with BatchLoader(dataset, sampler, prefetch=threads, threads=threads or 1) as loader:
            if job["state"] is not None:
                loader.load_state_dict(job["state"])
            rounds = steps * GLOBAL_BATCH // (ranks * micro)
            batches = joined(list(islice(loader, rounds)), steps)
            states.append(loader.state_dict())
        rows = rows_of_rank(job["order"], rank, ranks, micro)
        pieces.append(Piece.of(rows, np.arange(SEQUENCE), batches))
    if any(state != states[0] for state in states):
        raise ValueError(f"the ranks differ in their state: {states}")
    return pieces, states[0]


serve(run, "numpy", answers())
