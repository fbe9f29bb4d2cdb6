"""One shard: its rows read, tokenised and written to part files. This is what a worker runs."""

import contextlib
import dataclasses
import functools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats import IndexedDatasetBuilder, best_dtype
from coredata.preprocess.board import Board
from coredata.preprocess.documents import TokenizedDocuments, tokenize_documents
from coredata.preprocess.errors import PreprocessError, ShardStopped
from coredata.preprocess.plan import InputFile, Shard, size_and_stamp
from coredata.preprocess.problems import Problem, ProblemLog
from coredata.preprocess.reading import RowBatch, ShardRows, TextRow
from coredata.preprocess.report import KeyCounts
from coredata.preprocess.sentences import SentenceSplitter
from coredata.preprocess.work import ShardResult, WorkDirectory
from coredata.text import Tokenizer
from coredata.text.fast import GigatokenTokenizer

BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class Job:
    """What all shards of a run have in common. Worker processes get it pickled.

    Attributes:
        tokenizer: text to ids.
        json_keys: one output each.
        end_token: appended to documents; None for none.
        drop_empty: leave out documents without tokens.
        splitter: cuts texts into sentences; None to keep them whole.
        max_errors: bad lines allowed in the whole run, so in one shard.
        work: where part files go.
        shards: how many there are.
        board: file for notes on progress.
        batch_bytes: text encoded in one call of the tokenizer.
        storage_options: for URLs.
    """

    tokenizer: Tokenizer
    json_keys: tuple[str, ...]
    end_token: int | None
    drop_empty: bool
    splitter: SentenceSplitter | None
    max_errors: int
    work: WorkDirectory
    shards: int
    board: str
    batch_bytes: int = BATCH_BYTES
    storage_options: Mapping[str, Any] | None = None

    @property
    def encodes_beside_threads(self) -> bool:
        """Whether encoding lets other threads of the process run."""
        return isinstance(self.tokenizer, GigatokenTokenizer)


def run_pickled(pickled_job: bytes, file: InputFile, shard: Shard) -> ShardResult:
    """`run_shard` for another process: the pickled job is unpickled once there."""
    return run_shard(_unpickled(pickled_job), file, shard)


@functools.lru_cache(maxsize=1)
def _unpickled(pickled_job: bytes) -> Job:
    return pickle.loads(pickled_job)


def run_shard(job: Job, file: InputFile, shard: Shard) -> ShardResult:
    """Do one shard; its files and its mark of completion are in place afterwards.

    Args:
        job: what to do with every shard.
        file: the file as it was when the plan was made.
        shard: the stretch of it to do.

    Raises:
        PreprocessError: the file has changed since.
        DamagedFileError: the file is broken.
        ShardStopped: the result is not needed any more.
    """
    board = Board.attach(job.board, job.shards)
    if board is None:
        return _ShardRun(job, shard, None).run(file)
    board.begin(shard.index)
    try:
        return _ShardRun(job, shard, board).run(file)
    finally:
        board.end(shard.index)


class _ShardRun:
    """The work on one shard."""

    def __init__(self, job: Job, shard: Shard, board: Board | None) -> None:
        self._job = job
        self._shard = shard
        self._board = board
        self._dtype = best_dtype(job.tokenizer.vocab_size)
        self._rows = ShardRows(shard, job.json_keys, job.storage_options)
        self._counts = dict.fromkeys(job.json_keys, KeyCounts())

    def run(self, file: InputFile) -> ShardResult:
        work, index = self._job.work, self._shard.index
        if size_and_stamp(file.path, self._job.storage_options) != (file.size, file.stamp):
            raise PreprocessError(
                f"{file.path} has changed while it was being read; leave the input alone and run "
                "again"
            )
        with ProblemLog(work.problems_path(index), self._job.storage_options) as problems:
            complete = self._write(problems)
        result = self._result(complete, problems.count)
        if complete:
            work.save(result)
        return result

    def _write(self, problems: ProblemLog) -> bool:
        """Write the part files; False if there are too many problems, and then no files."""
        job = self._job
        with contextlib.ExitStack() as open_files:
            prefixes = [
                job.work.part_prefix(self._shard.index, number)
                for number in range(len(job.json_keys))
            ]
            builders = [
                open_files.enter_context(
                    IndexedDatasetBuilder(
                        prefix, self._dtype, durable=False, storage_options=job.storage_options
                    )
                )
                for prefix in prefixes
            ]
            for batch in self._rows.batches(job.batch_bytes):
                good = self._sort_out(batch, problems)
                if problems.count > job.max_errors:
                    return False
                for key, builder, documents in zip(job.json_keys, builders, good, strict=True):
                    builder.add_documents(
                        documents.tokens, documents.sequence_lengths, documents.document_sizes
                    )
                    self._counts[key] += documents.counts()
                self._note_progress()
            for builder in builders:
                builder.finalize()
        return True

    def _sort_out(self, batch: RowBatch, problems: ProblemLog) -> list[TokenizedDocuments]:
        """Tokenise the good rows of a batch, for each key; note the others."""
        if batch.texts is not None:
            # Where a text is refused, the rows tell which.
            with contextlib.suppress(ValueError):
                return self._tokenize(batch.texts)
        rows = batch.rows()
        try:
            tokenized = self._tokenize_good(rows)
        except ValueError:
            rows = [self._judged(row) for row in rows]
            tokenized = self._tokenize_good(rows)
        for row in rows:
            if row.problem is not None and problems.count <= self._job.max_errors:
                problems.add(
                    Problem(self._shard.path, row.number, row.offset, row.problem, row.excerpt)
                )
        return tokenized

    def _judged(self, row: TextRow) -> TextRow:
        if row.problem is not None:
            return row
        try:
            self._tokenize_good([row])
        except ValueError as error:
            return dataclasses.replace(row, problem=f"the tokenizer refuses it: {error}")
        return row

    def _tokenize_good(self, rows: list[TextRow]) -> list[TokenizedDocuments]:
        good = [row.texts for row in rows if row.problem is None]
        keys = range(len(self._job.json_keys))
        return self._tokenize([[texts[number] for texts in good] for number in keys])

    def _tokenize(self, texts: Sequence[list[list[str]]]) -> list[TokenizedDocuments]:
        job = self._job
        return [
            tokenize_documents(
                job.tokenizer,
                [self._sentences(document) for document in of_key],
                end_token=job.end_token,
                drop_empty=job.drop_empty,
                dtype=self._dtype,
            )
            for of_key in texts
        ]

    def _sentences(self, texts: list[str]) -> list[str]:
        splitter = self._job.splitter
        if splitter is None:
            return texts
        return [sentence for text in texts for sentence in splitter(text)]

    def _result(self, complete: bool, bad_lines: int) -> ShardResult:
        counts = self._rows.counts(bad_lines)
        return ShardResult(self._shard.index, complete, counts, dict(self._counts))

    def _note_progress(self) -> None:
        if self._board is None:
            return
        index = self._shard.index
        if not self._board.needed(index):
            raise ShardStopped(f"shard {index} is not needed any more")
        done = self._result(complete=False, bad_lines=0).progress(self._rows.input_bytes)
        self._board.note(index, done)
