"""From the texts of a batch of rows to the sequences and documents that are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int32, Int64, Integer
from coredata.preprocess.end_tokens import insert_after
from coredata.preprocess.report import KeyCounts
from coredata.text import Tokenizer

_WIDE = np.dtype(np.int32)


@dataclass(frozen=True)
class TokenizedDocuments:
    """A batch of documents, ready to be written.

    Attributes:
        tokens: of all sequences, end to end.
        sequence_lengths: in tokens; none is 0.
        document_sizes: sequences in each document; 0 for a document without tokens.
        empty_documents: how many had no tokens, left out or not.
    """

    tokens: Integer[np.ndarray, " tokens"]
    sequence_lengths: Int64[np.ndarray, " sequences"]
    document_sizes: Int64[np.ndarray, " documents"]
    empty_documents: int

    def counts(self) -> KeyCounts:
        """How much this is."""
        return KeyCounts(
            documents=len(self.document_sizes),
            empty_documents=self.empty_documents,
            sequences=len(self.sequence_lengths),
            tokens=len(self.tokens),
        )


def tokenize_documents(
    tokenizer: Tokenizer,
    documents: Sequence[Sequence[str]],
    *,
    end_token: int | None = None,
    drop_empty: bool = False,
    dtype: np.dtype[Any] = _WIDE,
) -> TokenizedDocuments:
    """Encode documents given as lists of texts, in one call of the tokenizer.

    Args:
        tokenizer: adds no tokens of its own.
        documents: each one's texts (sentences, or the whole as one).
        end_token: see `assemble`.
        drop_empty: see `assemble`.
        dtype: see `assemble`.

    Raises:
        ValueError: the tokenizer refuses a text.
    """
    tokens, lengths = tokenizer.encode_batch([text for texts in documents for text in texts])
    sizes = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    return assemble(tokens, lengths, sizes, end_token=end_token, drop_empty=drop_empty, dtype=dtype)


def assemble(
    tokens: Int32[np.ndarray, " tokens"],
    text_lengths: Int64[np.ndarray, " texts"],
    texts_per_document: Int64[np.ndarray, " documents"],
    *,
    end_token: int | None = None,
    drop_empty: bool = False,
    dtype: np.dtype[Any] = _WIDE,
) -> TokenizedDocuments:
    """Texts that gave no tokens go; the others are the sequences of their document.

    Args:
        tokens: of all texts, end to end.
        text_lengths: tokens of each text.
        texts_per_document: how many texts each document has.
        end_token: put behind the last sequence of every document that has tokens; None for none.
        drop_empty: leave out documents without tokens instead of writing them without sequences.
        dtype: that they will be written in: where end tokens are put in, it is taken at once.
    """
    document_of_text = np.repeat(np.arange(len(texts_per_document)), texts_per_document)
    kept = text_lengths > 0
    lengths = text_lengths[kept]
    sizes = np.bincount(document_of_text[kept], minlength=len(texts_per_document)).astype(np.int64)
    if end_token is not None:
        last = np.cumsum(sizes)[sizes > 0] - 1
        tokens = insert_after(tokens, np.cumsum(lengths)[last], end_token, dtype)
        lengths[last] += 1
    empty = int(np.count_nonzero(sizes == 0))
    if drop_empty:
        sizes = sizes[sizes > 0]
    return TokenizedDocuments(tokens, lengths, sizes, empty)
