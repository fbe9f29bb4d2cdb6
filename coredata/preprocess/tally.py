"""Results of shards, taken in input order: sums, the error budget, and the report of bad lines."""

from collections.abc import Sequence
from dataclasses import replace

from coredata.preprocess.errors import PreprocessError
from coredata.preprocess.plan import Shard
from coredata.preprocess.problems import Problem, ProblemLog
from coredata.preprocess.report import KeyCounts, RowCounts
from coredata.preprocess.work import ShardResult, WorkDirectory


class Tally:
    """Adds up shards. Because they come in input order, line numbers and the budget are exact.

    Attributes:
        rows: what was read so far.
        keys: key -> what was written so far.
    """

    def __init__(
        self,
        json_keys: Sequence[str],
        max_errors: int,
        work: WorkDirectory,
        report: ProblemLog,
    ) -> None:
        self.rows = RowCounts()
        self.keys = dict.fromkeys(json_keys, KeyCounts())
        self._max_errors = max_errors
        self._work = work
        self._report = report
        self._file = -1
        self._lines_before = 0

    def add(self, shard: Shard, result: ShardResult) -> None:
        """Take the next shard.

        Raises:
            PreprocessError: there are more bad lines than allowed; it tells about the first that
                is too many. The report is complete up to this one.
        """
        if shard.file != self._file:
            self._file, self._lines_before = shard.file, 0
        if result.rows.bad_lines:
            for problem in self._work.problems(shard.index):
                self._note(self._located(problem, shard))
        self._lines_before += result.rows.lines
        self.rows += result.rows
        for key, counts in result.keys.items():
            self.keys[key] += counts

    def _located(self, problem: Problem, shard: Shard) -> Problem:
        """Shards number their lines from 1, parquet rows have their number in the file already."""
        if shard.is_parquet:
            return problem
        return replace(problem, line=problem.line + self._lines_before)

    def _note(self, problem: Problem) -> None:
        if self._max_errors:
            self._report.add(problem)
            if self._report.count <= self._max_errors:
                return
            self._report.publish()
            raise PreprocessError(
                f"{problem}. This is bad line {self._report.count}, and max_errors "
                f"(--max-errors) is {self._max_errors}; {self._report.path} lists them all so far"
            )
        raise PreprocessError(
            f"{problem}. Mend it, or let bad lines be skipped and listed in a report: "
            "max_errors=100 (--max-errors 100) allows a hundred"
        )
