"""Shards done by whoever can do them: this process, local workers, or an executor given."""

import contextlib
import functools
import pickle
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future

from coredata.formats.full_disk import HOW_TO_SEE, is_full
from coredata.preprocess.board import Board
from coredata.preprocess.errors import PreprocessError, WorkerDied
from coredata.preprocess.executors import InThisProcess, LocalProcesses, LocalThreads
from coredata.preprocess.plan import InputFile, Shard
from coredata.preprocess.schedule import results_in_order
from coredata.preprocess.shard import Job, run_pickled, run_shard
from coredata.preprocess.work import ShardResult
from coredata.storage import local_path
from coredata.text.fast import GigatokenTokenizer
from coredata.text.native_batch import one_encoding_thread

_TASKS_PER_WORKER = 2
_MUCH = 256 << 20
"""Bytes of input to a thread for which it is worth half a second to make an encoder of its own."""


def execute(
    files: Sequence[InputFile],
    shards: Sequence[Shard],
    job: Job,
    finished: Mapping[int, ShardResult],
    board: Board,
    workers: int,
    executor: Executor | None = None,
) -> Generator[tuple[Shard, ShardResult]]:
    """Do the shards that are not finished, and yield the results of all in order.

    Whenever the iteration ends, by an error or by being left, workers are told to stop and are
    waited for.

    Raises:
        PreprocessError: a shard failed; it is the first in order that did.
        WorkerDied: a worker process ended without being asked to.
    """
    with contextlib.ExitStack() as stack:
        processes: LocalProcesses | None = None
        in_threads = False
        if executor is None and workers > 1 and len(finished) < len(shards):
            workers = min(workers, len(shards))
            in_threads = workers <= LocalThreads.AT_MOST and job.encodes_beside_threads
            if in_threads:
                _allow_copies(job, shards, workers)
                executor = stack.enter_context(LocalThreads(workers))
            else:
                executor = processes = stack.enter_context(LocalProcesses(workers))
        task: Callable[[InputFile, Shard], ShardResult]
        if executor is None:
            executor, workers = InThisProcess(), 1
            stack.enter_context(one_encoding_thread())
        if in_threads or isinstance(executor, InThisProcess):
            task = functools.partial(run_shard, job)
        else:
            task = functools.partial(run_pickled, pickle.dumps(job))
        stack.callback(board.stop_after, -1)

        def submit(shard: Shard) -> "Future[ShardResult]":
            if shard.index in finished:
                done: Future[ShardResult] = Future()
                done.set_result(finished[shard.index])
                return done
            return executor.submit(task, files[shard.file], shard)

        results = results_in_order(
            shards,
            submit,
            window=workers * _TASKS_PER_WORKER if workers > 1 else 1,
            stop_after=board.stop_after,
            look=(lambda: None) if processes is None else processes.observe,
        )
        try:
            for shard, future in results:
                yield shard, _result(shard, future, job.work.path)
        except BrokenExecutor as error:
            if processes is None:
                raise WorkerDied(
                    f"the executor broke ({error}). Finished shards are kept: run the same again"
                ) from error
            raise processes.death(board.running(), shards) from error


def _result(shard: Shard, future: "Future[ShardResult]", work: str) -> ShardResult:
    error = future.exception()
    if isinstance(error, OSError) and is_full(error):
        place = work if local_path(work) is not None else tempfile.gettempdir()
        raise PreprocessError(
            f"{shard.describe()}: what is made of it cannot be written in {place} "
            f"({error.strerror}). Make room there ({HOW_TO_SEE}) and run the same again: finished "
            "shards are kept. Or give another output prefix (--output-prefix)"
        ) from error
    if isinstance(error, OSError | ValueError):
        told = str(error)
        place = "" if shard.path in told else f"{shard.describe()}: "
        raise PreprocessError(place + told) from error
    if error is not None:
        error.add_note(f"while working on {shard.describe()}")
    return future.result()


def _allow_copies(job: Job, shards: Sequence[Shard], workers: int) -> None:
    """Let threads make encoders of their own, if there is so much to encode that it pays."""
    much = sum(shard.input_bytes for shard in shards) > workers * _MUCH
    if much and isinstance(job.tokenizer, GigatokenTokenizer):
        job.tokenizer.allow_copies(workers)
