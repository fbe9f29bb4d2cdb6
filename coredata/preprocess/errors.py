"""What ends a run of `preprocess` before its time."""


class PreprocessError(ValueError):
    """The input or the settings are at fault; the text says what, where and what to do."""


class WorkerDied(ChildProcessError):
    """A worker process ended without being asked to; the text names it and its shard."""


class ShardStopped(RuntimeError):
    """Raised inside a worker whose result nobody needs any more; users never see it."""
