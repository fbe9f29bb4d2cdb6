"""Where shards are worked on: in this process, or in several others on this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any

from coredata.preprocess.errors import WorkerDied
from coredata.preprocess.plan import Shard

_START_METHOD = "spawn"


class InThisProcess(Executor):
    """An executor that does the work at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` and return a future that is done.

        Errors of data and files are kept in the future, as with any executor; anything else that
        `fn` raises, a KeyboardInterrupt say, is raised at once.
        """
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except (OSError, ValueError) as error:
            future.set_exception(error)
        return future


class LocalThreads(ThreadPoolExecutor):
    """Threads of this process, for tokenizers that let other threads run while they encode.

    They start at once, where a process takes half a second to import what it needs. Reading rows
    is Python, one thread at a time: more than a few of them wait for each other.
    """

    AT_MOST = 4

    def __init__(self, workers: int) -> None:
        super().__init__(workers, thread_name_prefix="coredata-preprocess")


class LocalProcesses(Executor):
    """A pool of worker processes on this machine, which end when this process does."""

    def __init__(self, workers: int) -> None:
        self._others = set(multiprocessing.active_children())
        self._workers: dict[int, BaseProcess] = {}
        self._pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context(_START_METHOD), initializer=_begin_worker
        )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand a task to the pool, which may start a process for it.

        A process inherits that Ctrl-C is blocked, so that none is interrupted while it starts.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            future = self._pool.submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.observe()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes once they are done with their tasks."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def observe(self) -> None:
        """Remember the processes that there are, to tell later how they ended."""
        for process in multiprocessing.active_children():
            if process not in self._others and process.pid is not None:
                self._workers[process.pid] = process

    def death(self, running: dict[int, int], shards: Sequence[Shard]) -> WorkerDied:
        """The error for a pool that broke.

        Args:
            running: shard -> process id, of the shards that were being worked on.
            shards: the plan.
        """
        for process in self._workers.values():
            process.join(timeout=5)
        ends = {pid: process.exitcode for pid, process in self._workers.items()}
        # The pool ends the others itself, with SIGTERM.
        culprits = {pid for pid, code in ends.items() if code not in (0, None, -signal.SIGTERM)}
        culprits = culprits or set(running.values())
        blamed = {shard: pid for shard, pid in running.items() if pid in culprits}
        if not blamed:
            codes = sorted({str(code) for code in ends.values()})
            return WorkerDied(
                f"a worker process ended while it worked on no shard (exit codes "
                f"{', '.join(codes)}). A script that calls preprocess with several workers must do "
                "so under `if __name__ == '__main__':`; or use workers=1."
            )
        told = [
            f"worker process {pid} {_ending(ends.get(pid))} while it worked on "
            f"{shards[shard].describe()}"
            for shard, pid in sorted(blamed.items())
        ]
        return WorkerDied(
            "; ".join(told) + ". Finished shards are kept: run the same again to go on from them, "
            "with fewer workers if memory ran out."
        )

    def __enter__(self) -> "LocalProcesses":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown(wait=True, cancel_futures=True)


def _ending(exit_code: int | None) -> str:
    if exit_code is None or exit_code == 0:
        return "ended"
    if exit_code > 0:
        return f"ended with exit code {exit_code}"
    hint = ", as the system does when memory runs out" if exit_code == -signal.SIGKILL else ""
    return f"was killed by signal {-exit_code} ({signal.Signals(-exit_code).name}{hint})"


def _begin_worker() -> None:
    """Prepare a worker: one thread, no reaction to Ctrl-C, and an end when its parent ends."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
