"""`preprocess`: from files of text to token files, shard by shard."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from coredata.formats import best_dtype, merge
from coredata.preprocess.board import Board
from coredata.preprocess.checks import (
    check_keys,
    check_least,
    check_reach,
    check_report,
    check_writable,
)
from coredata.preprocess.encoder import choose_encoder
from coredata.preprocess.errors import PreprocessError
from coredata.preprocess.execution import execute
from coredata.preprocess.growing_output import GrowingOutput
from coredata.preprocess.plan import default_shard_bytes, inspect_inputs, plan_shards
from coredata.preprocess.problems import ProblemLog
from coredata.preprocess.progress import ProgressPrinter, TextStream
from coredata.preprocess.report import PreprocessReport, RowCounts, count_of
from coredata.preprocess.sentences import SentenceSplitter
from coredata.preprocess.shard import BATCH_BYTES, Job
from coredata.preprocess.tally import Tally
from coredata.preprocess.work import OpenedWork, ShardResult, WorkDirectory
from coredata.storage import local_path, remove
from coredata.text import Tokenizer, require_eod

_PARTS_VERSION = 2


def preprocess(
    inputs: str | Sequence[str],
    output_prefix: str,
    tokenizer: Tokenizer,
    *,
    json_keys: Sequence[str] = ("text",),
    append_eod: bool = False,
    drop_empty: bool = False,
    splitter: SentenceSplitter | None = None,
    workers: int = 1,
    max_errors: int = 0,
    error_report: str | None = None,
    shard_bytes: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    executor: Executor | None = None,
    encoder: str = "auto",
    progress: TextStream | None = None,
    log_interval: int | None = None,
    checksums: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> PreprocessReport:
    """Tokenise JSON lines or parquet into `.bin`/`.idx` pairs, one pair for each key.

    Per row and key: a value is a string or a list of strings; texts that give no tokens are left
    out; the rest are the sequences of one document. A row without tokens is a document without
    sequences. Blank lines are no rows: they are passed over and counted. Lone surrogates become
    U+FFFD and are counted. Documents come in input order, and the bytes of the output depend on
    nothing but the input, the tokenizer and the first four options below.

    The input is cut into shards (a compressed file is one shard, a parquet file is cut between row
    groups); each becomes part files in `{output_prefix}.parts`, which are put together: on a local
    disk while later ones are being made, behind a URL at the end. A run that was stopped goes on
    from its finished shards when it is started again with the same input and settings; files of the
    same size and time of last change count as the same. One run at a time writes to a local output.
    Memory holds a batch of text per worker and the longest line, whatever the size of the input.

    Args:
        inputs: paths, URLs or patterns: JSON lines (also .gz, .zst) or .parquet. Local ones are
            regular files: a pipe cannot be read in stretches, or again.
        output_prefix: path or URL; the pairs are `{output_prefix}_{key}_document`, or `…_sentence`
            with a splitter.
        tokenizer: text to ids, adding none of its own.
        json_keys: keys (columns) to take texts from.
        append_eod: put the tokenizer's end id behind the last sequence of documents with tokens.
        drop_empty: leave out, key by key, documents without tokens.
        splitter: cuts texts into sentences, which become sequences; None for no cutting.
        workers: processes; with 1 the work is done in this one. More need an importable main
            module: call under `if __name__ == "__main__":`. Up to four are threads where gigatoken
            encodes.
        max_errors: how many bad rows (no JSON object, not UTF-8, a key missing, no text under it,
            refused by the tokenizer) are skipped; one more ends the run.
        error_report: where skipped rows are listed, as JSON lines with file, line, byte, reason
            and the beginning of the line; default `{output_prefix}_errors.jsonl`. Not written if
            there are none.
        shard_bytes: size of shards; None for a size that suits input and workers.
        batch_bytes: text encoded in one call of the tokenizer; up to twice as much at times.
        executor: does the shards instead of local processes; `workers` then says how many it can
            do at a time.
        encoder: "auto" for the gigatoken package if it is installed and gives the tokenizer's ids
            for a sample (of the input, of odd texts and of the added tokens), else the tokenizer
            itself; "gigatoken" to insist on it; "tokenizers" to do without. The ids are the same.
        progress: where progress is printed, if it is a terminal or `log_interval` is given.
        log_interval: print a line of progress every so many documents.
        checksums: also write a `.crc` file beside each pair, so that readers of a URL can find
            flipped bytes (`ReadOptions.checksums`); the pairs are the same without.
        storage_options: for URLs, passed to fsspec.

    Raises:
        PreprocessError: a bad row too many; a broken or changing file; nothing to write. The text
            names the first place in input order.
        WorkerDied: a worker process was killed.
        FileNotFoundError: an input that does not exist.
        OSError: the directory of the output cannot be written (such as PermissionError).
        ValueError: settings that make no sense, an end id asked for that the tokenizer lacks.
        EncoderMismatchError: gigatoken passed on the sample, but gives other ids for later text.
        ModuleNotFoundError: a package for .zst, parquet or sentences is missing.
    """
    begun = time.monotonic()
    keys = tuple(json_keys)
    check_keys(keys)
    check_writable(output_prefix)
    check_least("workers", workers, 1)
    check_least("max_errors", max_errors, 0)
    check_least("batch_bytes", batch_bytes, 1)
    check_least("shard_bytes", shard_bytes, 1)
    check_least("log_interval", log_interval, 1)
    end_token = require_eod(tokenizer) if append_eod else None
    end_text = "" if end_token is None else tokenizer.decode([end_token])
    if splitter is not None:
        splitter.check()
    files = inspect_inputs(inputs, keys, storage_options)
    paths = [file.path for file in files]
    report_path = error_report or f"{output_prefix}_errors.jsonl"
    check_reach(paths, output_prefix, workers)
    check_report(paths, report_path)
    class_name = type(tokenizer).__name__
    chosen = choose_encoder(encoder, tokenizer, files, keys, storage_options)
    identity: dict[str, Any] = {
        "version": _PARTS_VERSION,
        "inputs": [[file.path, file.size, file.stamp] for file in files],
        "json_keys": list(keys),
        "tokenizer": [class_name, tokenizer.content_hash, tokenizer.vocab_size],
        "encoder": chosen.encoder,
        "end_token": end_token,
        "drop_empty": drop_empty,
        "splitter": None if splitter is None else splitter.identity(),
        "shard_bytes": shard_bytes,
    }
    level = "document" if splitter is None else "sentence"
    prefixes = {key: f"{output_prefix}_{key}_{level}" for key in keys}
    work = WorkDirectory(f"{output_prefix}.parts", storage_options)
    cut = default_shard_bytes(files, workers) if shard_bytes is None else shard_bytes
    with work.held():
        opened = work.open(identity, plan_shards(files, cut))
        shards = opened.shards
        reused = _finished(work, opened, keys)
        if progress is not None:
            _tell_beginning(progress, opened, len(reused))
        remove(report_path, storage_options)

        with contextlib.ExitStack() as stack:
            board = Board.create(len(shards))
            stack.callback(board.remove)
            for index, result in reused.items():
                board.note(index, result.progress(shards[index].input_bytes))
            job = Job(
                tokenizer=chosen.tokenizer,
                json_keys=keys,
                end_token=end_token,
                drop_empty=drop_empty,
                splitter=splitter,
                max_errors=max_errors,
                work=work,
                shards=len(shards),
                board=board.path,
                batch_bytes=batch_bytes,
                storage_options=storage_options,
            )
            total = sum(shard.input_bytes for shard in shards)
            if progress is not None:
                stack.enter_context(ProgressPrinter(board.totals, total, progress, log_interval))
            problems = stack.enter_context(ProblemLog(report_path, storage_options))
            tally = Tally(keys, max_errors, work, problems)
            output: GrowingOutput | None = None
            if local_path(output_prefix) is not None:
                dtype = best_dtype(tokenizer.vocab_size)
                output = stack.enter_context(
                    GrowingOutput(work, list(prefixes.values()), dtype, checksums)
                )
            results = execute(files, shards, job, reused, board, workers, executor)
            with contextlib.closing(results):
                for shard, result in results:
                    tally.add(shard, result)
                    if output is not None:
                        output.add()
            written = any(counts.tokens for counts in tally.keys.values())
            if written and output is not None:
                output.finish()

        if not written:
            work.remove(shards, len(keys))
            raise _nothing_written(len(files), tally.rows, keys)
        if output is None:
            for number, prefix in enumerate(prefixes.values()):
                parts = [work.part_prefix(shard.index, number) for shard in shards]
                merge(parts, prefix, checksums=checksums, storage_options=storage_options)
        work.remove(shards, len(keys))
    return PreprocessReport(
        prefixes=prefixes,
        rows=tally.rows,
        keys=tally.keys,
        dtype=best_dtype(tokenizer.vocab_size).name,
        files=len(files),
        input_bytes=sum(file.size for file in files),
        shards=len(shards),
        shards_reused=len(reused),
        error_report=report_path if problems.count else None,
        encoder=chosen.encoder,
        encoder_reason=chosen.reason,
        end_token=end_token,
        end_token_text=end_text,
        seconds=time.monotonic() - begun,
    )


def _finished(
    work: WorkDirectory, opened: OpenedWork, keys: Sequence[str]
) -> dict[int, ShardResult]:
    """Results of the shards that an earlier run has finished."""
    if not opened.continues:
        return {}
    joined = work.joined(len(keys)).shards
    results = (work.finished(shard.index, keys, joined) for shard in opened.shards)
    return {result.shard: result for result in results if result is not None}


def _tell_beginning(progress: TextStream, opened: OpenedWork, reused: int) -> None:
    if opened.continues:
        print(f"going on from {reused} of {len(opened.shards)} finished shards", file=progress)
    if opened.changed:
        what = ", ".join(opened.changed)
        print(f"beginning anew: not as in the stopped run before: {what}", file=progress)


def _nothing_written(files: int, rows: RowCounts, keys: Sequence[str]) -> PreprocessError:
    left = rows.lines - rows.blank_lines - rows.bad_lines
    text = f"no token was written: the input has {count_of(files, 'file')} with "
    text += count_of(rows.lines, "line")
    if rows.lines:
        text += f", {rows.blank_lines:,} of them blank and {rows.bad_lines:,} skipped"
    if not left:
        return PreprocessError(f"{text}. Is it the right input, and was it written to its end?")
    which = "the other has" if left == 1 else f"the other {left:,} have"
    return PreprocessError(
        f"{text}; {which} no text under {', '.join(keys)}. Is it the right input and the right "
        "keys (json_keys, --json-keys)?"
    )
