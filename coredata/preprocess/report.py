"""What a run did, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class KeyCounts:
    """What was written for one key, in a shard or in all.

    Attributes:
        documents: written, those without tokens included.
        empty_documents: rows without a token: written as documents without sequences, or dropped.
        sequences: written; none is without tokens.
        tokens: written, end tokens included.
    """

    documents: int = 0
    empty_documents: int = 0
    sequences: int = 0
    tokens: int = 0

    def __add__(self, other: "KeyCounts") -> "KeyCounts":
        return KeyCounts(
            self.documents + other.documents,
            self.empty_documents + other.empty_documents,
            self.sequences + other.sequences,
            self.tokens + other.tokens,
        )


@dataclass(frozen=True)
class RowCounts:
    """What was read, in a shard or in all.

    Attributes:
        lines: lines of text files and rows of parquet files, of whatever kind.
        blank_lines: lines with nothing but white space; they are no rows.
        bad_lines: rows skipped within the error budget.
        replaced_surrogates: lone surrogates that became U+FFFD.
        text_bytes: decompressed size of what was read.
    """

    lines: int = 0
    blank_lines: int = 0
    bad_lines: int = 0
    replaced_surrogates: int = 0
    text_bytes: int = 0

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(
            self.lines + other.lines,
            self.blank_lines + other.blank_lines,
            self.bad_lines + other.bad_lines,
            self.replaced_surrogates + other.replaced_surrogates,
            self.text_bytes + other.text_bytes,
        )


@dataclass(frozen=True)
class PreprocessReport:
    """What a whole run of `preprocess` did.

    Attributes:
        prefixes: key -> prefix of its `.bin` and `.idx`.
        rows: what was read.
        keys: key -> what was written.
        dtype: name of the dtype of the tokens, such as "uint16".
        files: number of input files.
        input_bytes: their size together.
        shards: into how many they were cut.
        shards_reused: how many of these an earlier, interrupted run had finished.
        error_report: file that lists the bad lines; None if there were none.
        seconds: duration of this run.
        encoder: which package encoded: gigatoken, tokenizers, or the tokenizer's own class.
        encoder_reason: why it was not gigatoken; empty if it was.
        end_token: id put at the end of documents with tokens; None if none was asked for.
        end_token_text: how the tokenizer writes it; empty where it has no text.
    """

    prefixes: Mapping[str, str]
    rows: RowCounts
    keys: Mapping[str, KeyCounts]
    dtype: str
    files: int
    input_bytes: int
    shards: int
    shards_reused: int
    error_report: str | None
    seconds: float
    encoder: str = ""
    encoder_reason: str = ""
    end_token: int | None = None
    end_token_text: str = ""

    @property
    def documents(self) -> int:
        """Documents of the key that has most: the good rows, unless empty ones were dropped."""
        return max(counts.documents for counts in self.keys.values())

    @property
    def tokens(self) -> int:
        """Tokens written, over all keys."""
        return sum(counts.tokens for counts in self.keys.values())

    def summary(self) -> str:
        """A few lines for people."""
        seconds = max(self.seconds, 1e-9)
        rate = f"{size_text(round(self.rows.text_bytes / seconds))}/s, "
        rate += f"{self.tokens / seconds:,.0f} tokens/s"
        lines = [
            f"read     {count_of(self.files, 'file')}, "
            f"{count_of(self.rows.lines - self.rows.blank_lines, 'row')}, "
            f"{size_text(self.rows.text_bytes)} of text"
        ]
        for key, counts in self.keys.items():
            lines.append(
                f"written  {self.prefixes[key]}.bin/.idx: "
                f"{count_of(counts.documents, 'document')} "
                f"({count_of(counts.empty_documents, 'row')} without tokens), "
                f"{count_of(counts.sequences, 'sequence')}, "
                f"{count_of(counts.tokens, 'token')} of {self.dtype}"
            )
        if self.encoder:
            why = f" ({self.encoder_reason})" if self.encoder_reason else ""
            lines.append(f"encoded  by {self.encoder}{why}")
        if self.end_token is not None:
            shown = _shown(self.end_token, self.end_token_text)
            lines.append(f"ended    documents with token {shown}")
        if self.rows.blank_lines:
            lines.append(f"passed   {count_of(self.rows.blank_lines, 'blank line')}")
        if self.rows.bad_lines:
            lines.append(
                f"skipped  {count_of(self.rows.bad_lines, 'bad line')}, listed in "
                f"{self.error_report}"
            )
        if self.rows.replaced_surrogates:
            lines.append(
                f"mended   {count_of(self.rows.replaced_surrogates, 'lone surrogate')}, replaced "
                "by U+FFFD"
            )
        reused = f", {self.shards_reused:,} from an earlier run" if self.shards_reused else ""
        lines.append(
            f"took     {self.seconds:,.1f} s: {rate} ({count_of(self.shards, 'shard')}{reused})"
        )
        return "\n".join(lines)


def _shown(token: int, text: str) -> str:
    """A token by id and text, such as "0 <|endoftext|>"; the id alone if that says it all."""
    if text in ("", str(token)):
        return str(token)
    plain = text.isprintable() and text.strip() == text
    return f"{token} {text if plain else repr(text)}"


def count_of(number: int, noun: str) -> str:
    """A number of things, such as "1 file"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size_text(count: int) -> str:
    """Bytes, such as "1.5 MB"; below a kilobyte all of them."""
    if count < 1000:
        return f"{count:,.0f} B"
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count < 1000 * size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e12:,.1f} TB"
