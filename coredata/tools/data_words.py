"""Errors of the library in the words of the command line: flags where it names arguments."""

import re

_WORDS = (
    (
        r"Open with block_size=0 for a streaming file interface\.?",
        "Download the file first, and give its local path.",
    ),
    (r"max_errors=100 \(--max-errors 100\)", "--max-errors 100"),
    (r"pass widen=True\b", "give --widen"),
    (r"\(skip_bad_rows=True\)", "(--skip-bad-rows)"),
    (r" Give one, such as template=ChatTemplate\(text\), or a \.jinja file\.", ""),
    (
        r"give the one that read_chat_template\(directory\) finds, or ChatTemplate\(text\)",
        "give --chat-template PATH",
    ),
    (r"; make one's own with PromptFormat\(name, counts, template\)", ""),
    (r"e\.g\. fim_extra_tokens=\{.*?\}", "with --fim-prefix-token TOKEN and its like"),
    (
        r"Give it a chat template \(coredata\.text\.ChatTokenizer\), or use "
        r"coredata\.text\.ByteConversationTokenizer for a first try",
        "Give --chat-template PATH, a .jinja file or the directory of a model that has one; or "
        "--tokenizer-type ByteTokenizer for a first try",
    ),
    (
        r"set path_to_cache to another directory, or to None to build indices in memory",
        "give another --data-cache-path, or none to build indices in memory",
    ),
    (
        r"Set path_to_cache to a directory, which need not exist yet, or to None to build indices "
        r"in memory",
        "Give a directory as --data-cache-path, which need not exist yet, or none to build indices "
        "in memory",
    ),
    (r"because full_validation takes one", "because --full-validation takes one"),
    (
        r"Give None as weights to take one epoch of each, or full_validation=False",
        "Leave --full-validation out, or name the files of each split (--train-data-path, "
        "--valid-data-path, --test-data-path), those of validation without weights",
    ),
    (
        r"Give None as weights to take one epoch of every file, or a size, such as 1000",
        "Leave the weights out to take one epoch of every file, or give --num-samples a number, "
        "such as 1000, in place of epoch",
    ),
    (
        r"A script that calls preprocess with several workers .*?; or use workers=1",
        "Use --workers 1",
    ),
    (
        r"Use a limit of (\d+) or more, or overflow='split', 'truncate' or 'drop'",
        r"Give a --max-seqlen-per-dp-cp-rank with which a row holds \1, or a shorter --seq-length",
    ),
    (r"\bmax_seqlen_per_dp_cp_rank=(\d+)", r"--max-seqlen-per-dp-cp-rank \1"),
    (r"\bcontext_parallel_size=(\d+)", r"--context-parallel-size \1"),
    (r"or a smaller max_seqlen_per_dp_cp_rank\b", "or a smaller --max-seqlen-per-dp-cp-rank"),
    (
        r"global_batch_size is (\d+), need a multiple of micro_batch_size × data_parallel_size",
        r"--global-batch-size \1: need a multiple of --micro-batch-size × --data-parallel-size",
    ),
    (r"\b(workers|max_errors|batch_bytes|log_interval)=(-?\d+)", r"--\1 \2"),
    (r"\bshard_bytes=(-?\d+)", r"--shard-size: \1 bytes"),
    (
        r"a tokenizer\.json as model, GPT-2's vocab_file and merge_file, or a type",
        "--tokenizer-model tokenizer.json, GPT-2's --vocab-file and --merge-file, or a "
        "--tokenizer-type",
    ),
    (r"error_report='bad\.jsonl' \(--error-report bad\.jsonl\)", "--error-report bad.jsonl"),
    (r"\(json_keys, --json-keys\)", "(--json-keys)"),
    (r"\bjson_keys (is empty|names)", r"--json-keys \1"),
)
"""What the library says, as a pattern, and what the command line says instead."""


def in_flags(text: str) -> str:
    """The text with flags in the place of arguments of Python functions."""
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return re.sub(r"--(?:max_errors|batch_bytes|log_interval)", _dashed, text)


def _dashed(flag: re.Match[str]) -> str:
    return flag.group().replace("_", "-")
