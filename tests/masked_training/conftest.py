"""Real prose, a WordPiece vocabulary trained on it, and token files that the command made of it.

What imports JAX is in `inside/` and runs in a process of its own: JAX starts threads, which the
forks of other tests would not survive.
"""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from coredata import BlendedMegatronDatasetBuilder
from coredata.datasets import (
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.text import TokenizerJson
from coredata.tools.demo_text import json_lines, library_prose, library_sources, take

ROOT = Path(__file__).parents[2]
DIRECTORY = "COREDATA_MASKED_TRAINING"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"<extra_id_{n}>" for n in range(100))]
LENGTH, DECODER = 64, 48

collect_ignore = [] if DIRECTORY in os.environ else ["inside"]


def train_word_pieces(path, texts):
    """A lower-cased WordPiece vocabulary of 800, as a `tokenizer.json`."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=800, special_tokens=SPECIAL, show_progress=False, limit_alphabet=80
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))


def run_command(*arguments):
    """The command `coredata`, as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "coredata", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="session")
def prose(tmp_path_factory):
    """A directory with `a.jsonl`, `b.jsonl`, `tokenizer.json` and the token files of both."""
    if DIRECTORY in os.environ:
        return Path(os.environ[DIRECTORY])
    directory = tmp_path_factory.mktemp("prose")
    documents = take(library_prose(islice(library_sources(), 150)), 300_000)
    half = len(documents) // 2
    train_word_pieces(directory / "tokenizer.json", [text for _, text in documents])
    for name, part in (("a", documents[:half]), ("b", documents[half:])):
        (directory / f"{name}.jsonl").write_bytes(b"".join(json_lines(part)))
        run_command(
            "preprocess",
            *("--input", directory / f"{name}.jsonl", "--output-prefix", directory / name),
            *("--tokenizer-model", directory / "tokenizer.json", "--split-sentences"),
        )
    return directory


@pytest.fixture(scope="session")
def texts(prose):
    """The documents of `a.jsonl`."""
    return [json.loads(line)["text"] for line in (prose / "a.jsonl").read_text().splitlines()]


@pytest.fixture(scope="session")
def tokenizer(prose):
    """The vocabulary; T5's start and end are BERT's."""
    return TokenizerJson(str(prose / "tokenizer.json"), bos="[CLS]", eod="[SEP]")


@pytest.fixture(scope="session")
def build(prose, tokenizer):
    """Makes the training set of a model, "BERT" or "T5": a blend of both files."""

    def make(model, samples, **options):
        shared = {
            "random_seed": 1234,
            "sequence_length": LENGTH,
            "blend": ([str(prose / f"{name}_text_sentence") for name in "ab"], [0.6, 0.4]),
            "split": "90,10,0",
            "tokenizer": tokenizer,
            "path_to_cache": str(prose / "cache"),
            **options,
        }
        if model == "BERT":
            cls, config = BERTMaskedWordPieceDataset, BERTMaskedWordPieceDatasetConfig(**shared)
        else:
            cls = T5MaskedWordPieceDataset
            config = T5MaskedWordPieceDatasetConfig(**shared, sequence_length_decoder=DECODER)
        return BlendedMegatronDatasetBuilder(cls, (samples, 0, 0), config=config).build()[0]

    return make
