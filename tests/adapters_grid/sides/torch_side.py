"""PyTorch: as many real processes as the job says, joined by gloo; `workers` of each are forked."""

import multiprocessing
import os
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from coredata_torch import LoaderConfig, build_pretraining_data_loader, torch_ranks
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

from coredata.varlen import context_parallel_partition

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
warnings.filterwarnings("ignore", "This process .* is multi-threaded")


def read(rank: int, job: Job, dataset: Any) -> tuple[Piece, Any]:
    """What one process reads: the rows of its data-parallel rank, its context-parallel columns."""
    parts, micro, steps = job["context_parallel"], job["micro_batch"], job["steps"]
    size, workers = job["processes"] // parts, job["workers"]
    config = LoaderConfig(
        micro,
        rank // parts,
        size,
        dataloader_type=job["order"],
        data_sharding=False,
        global_batch_size=GLOBAL_BATCH,
        num_workers=workers,
        start_method="fork" if workers else None,
    )
    ranks = torch_ranks(timeout=60)
    bounds = torch.tensor([0, SEQUENCE]).numpy()
    columns = context_parallel_partition(bounds, parts)[rank % parts]
    with build_pretraining_data_loader(dataset, 0, config=config, ranks=ranks) as loader:
        if job["state"] is not None:
            loader.load_state_dict(job["state"])
        batches = [
            {
                name: tensor[:, columns] if tensor.ndim > 1 else tensor
                for name, tensor in next(loader).items()
            }
            for _ in range(steps * GLOBAL_BATCH // (size * micro))
        ]
        rows = rows_of_rank(job["order"], rank // parts, size, micro)
        return Piece.of(rows, columns, joined(batches, steps)), loader.state_dict()


def child(rank: int, job: Job, dataset: Any, meeting: str, pipe: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=job["processes"]
    )
    pipe.send(read(rank, job, dataset))
    dist.barrier()
    os._exit(0)


def run(job: Job, directory: Path) -> tuple[list[Piece], Any]:
    dataset = open_dataset(directory, job["order"])
    context, meeting = multiprocessing.get_context("fork"), Path(job["out"]) / "meeting"
    pipes, children = [], []
    for rank in range(job["processes"]):
        ours, theirs = context.Pipe(duplex=False)
        children.append(
            context.Process(target=child, args=(rank, job, dataset, str(meeting), theirs))
        )
        children[-1].start()
        theirs.close()
        pipes.append(ours)
    results = [pipe.recv() for pipe in pipes]
    for process in children:
        process.join()
    states = [state for _, state in results]
    if any(state != states[0] for state in states):
        raise ValueError(f"the ranks differ in their state: {states}")
    return [piece for piece, _ in results], states[0]


serve(run, "torch", answers())
