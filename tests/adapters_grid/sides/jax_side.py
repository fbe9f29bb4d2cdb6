"""JAX: one process of a program with eight devices: PROCESSES PROCESS PORT.

Devices that rows and columns leave over repeat them, as a model axis does; `workers` are threads.
"""

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
from coredata_jax import JaxRanks, ShardedBatches, check_same_plan
from jax.sharding import Mesh
from side import GLOBAL_BATCH, SEQUENCE, Job, Piece, answers, open_dataset, serve

ANSWERS = answers()
PROCESSES, PROCESS, PORT = map(int, sys.argv[1:])
if PROCESSES > 1:
    jax.distributed.initialize(f"127.0.0.1:{PORT}", PROCESSES, PROCESS)
RANKS = JaxRanks.from_distributed()


def run(job: Job, directory: Path) -> tuple[list[Piece], Any]:
    parts, data = job["context_parallel"], GLOBAL_BATCH // job["micro_batch"]
    axes = {"data": data, "context": parts, "model": job["devices"] // (data * parts)}
    devices = np.array(jax.devices()[: job["devices"]]).reshape(tuple(axes.values()))
    threads = job["workers"]
    batches = ShardedBatches(
        open_dataset(directory, job["order"]),
        GLOBAL_BATCH,
        Mesh(devices, tuple(axes)),
        "data",
        "context" if parts > 1 else None,
        load_balanced=parts > 1,
        prefetch=threads,
        threads=threads or 1,
    )
    with batches:
        if job["state"] is not None:
            batches.set_state(job["state"])
        check_same_plan(batches, RANKS)
        read = list(islice(batches, job["steps"]))
        state = batches.get_state()
        order = batches.sequence_order(SEQUENCE).positions
    pieces = []
    for number, shard in enumerate(read[0]["tokens"].addressable_shards):
        held = [
            {name: array.addressable_shards[number].data for name, array in batch.items()}
            for batch in read
        ]
        rows = np.arange(GLOBAL_BATCH)[shard.index[0]]
        columns = order[shard.index[1]]
        pieces.append(Piece.of(rows, columns, held))
    return pieces, state


serve(run, f"jax-{PROCESS}", ANSWERS)
