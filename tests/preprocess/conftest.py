import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, best_dtype
from coredata.preprocess import preprocess
from coredata.text import ByteTokenizer


class Corpus:
    """Writes inputs into a directory, runs preprocess on them, reads outputs back."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.prefix = str(directory / "out")

    def write(self, name: str, data: bytes) -> str:
        path = self.directory / name
        path.write_bytes(data)
        return str(path)

    def write_rows(self, name: str, rows) -> str:
        return self.write(name, b"".join(json.dumps(row).encode() + b"\n" for row in rows))

    def run(self, inputs, **options):
        """With the byte tokenizer: texts come back as bytes."""
        return preprocess(inputs, self.prefix, ByteTokenizer(), **options)

    def texts(self, key: str = "text", level: str = "document") -> list[list[str]]:
        """What `run` wrote: documents as lists of sequences as texts, the end token as "∎"."""
        return [
            ["".join("∎" if i == 256 else chr(i) for i in sequence) for sequence in document]
            for document in self.documents(key, level)
        ]

    def documents(self, key: str = "text", level: str = "document") -> list[list[list[int]]]:
        """Documents as lists of sequences as lists of ids."""
        source = IndexedDataset(f"{self.prefix}_{key}_{level}")
        edges = source.document_indices.tolist()
        return [
            [source[number].tolist() for number in range(start, end)]
            for start, end in itertools.pairwise(edges)
        ]

    def output_bytes(self) -> dict[str, bytes]:
        """Name -> contents of everything whose name begins as the output prefix does."""
        name = Path(self.prefix).name
        return {
            path.name.removeprefix(name): path.read_bytes()
            for path in Path(self.prefix).parent.glob(f"{name}_*")
        }

    def parts(self) -> list[str]:
        """Names of the files that an unfinished run has left."""
        return sorted(path.name for path in Path(f"{self.prefix}.parts").glob("*"))

    def write_slowly(self, rows, keys, *, append_eod=False, drop_empty=False) -> None:
        """The rule of the format, a sentence at a time, written for reading."""
        tokenizer = ByteTokenizer()
        for key in keys:
            prefix = f"{self.prefix}_{key}_document"
            with IndexedDatasetBuilder(prefix, best_dtype(tokenizer.vocab_size)) as builder:
                for row in rows:
                    texts = [row[key]] if isinstance(row[key], str) else row[key]
                    sentences = [tokenizer.encode(text) for text in texts]
                    sentences = [sentence for sentence in sentences if sentence]
                    if sentences and append_eod:
                        sentences[-1].append(tokenizer.eod)
                    if not sentences and drop_empty:
                        continue
                    for sentence in sentences:
                        builder.add_item(np.array(sentence))
                    builder.end_document()
                builder.finalize()


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    """Nothing here cuts the power."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    return Corpus(tmp_path)


@pytest.fixture(scope="session")
def new_corpus(tmp_path_factory):
    """Makes corpora, for tests that need several."""
    return lambda: Corpus(tmp_path_factory.mktemp("corpus"))
