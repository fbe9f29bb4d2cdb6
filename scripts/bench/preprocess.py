"""Text to token files, beside the reference's method and beside the raw rate of the encoder.

The reference's method: a pool of processes, each of which parses a line and encodes its document,
`imap(…, 32)`, one writer. Its workers are forked with the tokenizer loaded; ours is given a
tokenizer that is ready too, with cold caches, so that neither side's times hold any loading.
"""

import functools
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from coredata.preprocess import preprocess
from coredata.text import Tokenizer, demo_tokenizer
from coredata.text.fast import GigatokenTokenizer, accelerated
from coredata.text.native import NativeTokenizer
from scripts.bench import assets
from scripts.bench.harness import Row, compare, compare_each

WORKERS = 2
_worker: dict[str, Any] = {}


def rows(full: bool) -> list[Row]:
    # The package starts threads at its import, in a process that is forked below.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if full:
            path = assets.json_lines(directory / "in.jsonl", assets.conversation_texts(), 60)
            tokenizers = {"GPT-2": assets.gpt2(), "DeepSeek": assets.deepseek()}
        else:
            path = assets.json_lines(directory / "in.jsonl", assets.library_texts(), 6)
            tokenizers = {"demo": demo_tokenizer()}
        return [
            row
            for name, tokenizer in tokenizers.items()
            for row in (
                *_beside_reference(name, tokenizer, path),
                _beside_raw(name, tokenizer, path),
            )
        ]


def _beside_reference(name: str, tokenizer: NativeTokenizer, path: Path) -> list[Row]:
    def ours(encoder: str) -> Callable[[], dict[str, bytes]]:
        ready = _ready(tokenizer, encoder)
        return lambda: _written(path, functools.partial(_ours, next(ready), encoder))

    def reference() -> dict[str, bytes]:
        return _written(path, functools.partial(_reference, tokenizer))

    what = f"{_size(path)}, {WORKERS} cores, {name} ({tokenizer.vocab_size:,}), "
    sides = {what + encoder: ours(encoder) for encoder in ("gigatoken", "tokenizers")}
    return compare_each("preprocess", sides, reference, _same)


def _beside_raw(name: str, tokenizer: NativeTokenizer, path: Path) -> Row:
    texts = [json.loads(line)["text"] for line in path.read_bytes().splitlines()]
    mine, raw = _ready(tokenizer, "gigatoken"), _ready(tokenizer, "gigatoken", copies=1)

    def ours() -> int:
        return _ours(next(mine), "gigatoken", path, path.parent / "raw").tokens

    def encode() -> int:
        backend = next(raw)._copies[0].backend  # its own caches, as cold as ours
        return len(backend.encode_batch(texts, parallel=True).layout.content) + len(texts)

    def same(a: int, b: int) -> None:
        assert a == b, f"{a} tokens, and {b} raw"

    what = f"{_size(path)}, {name}: files to files, beside gigatoken from memory to memory"
    return compare("preprocess / raw rate", ours, encode, same, what)


def _ready(tokenizer: NativeTokenizer, encoder: str, copies: int = WORKERS) -> Iterator[Any]:
    """The tokenizer again and again, each time with cold caches; made ready in advance."""
    assert tokenizer.vocab_size
    assert accelerated(tokenizer).encoder == "gigatoken"
    if encoder == "tokenizers":
        return iter([tokenizer] * 6)
    return iter([GigatokenTokenizer(tokenizer, copies=copies) for _ in range(6)])


def _written(path: Path, write: Callable[[Path, Path], Any]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        write(path, Path(directory) / "out")
        return {
            suffix: (Path(directory) / f"out_text_document{suffix}").read_bytes()
            for suffix in (".bin", ".idx")
        }


def _same(a: dict[str, bytes], b: dict[str, bytes]) -> None:
    for suffix, content in a.items():
        assert content == b[suffix], f"{suffix} files differ"


def _ours(tokenizer: Tokenizer, encoder: str, path: Path, prefix: Path) -> Any:
    wanted: Any = "tokenizers" if encoder == "tokenizers" else "auto"
    report = preprocess(
        str(path), str(prefix), tokenizer, append_eod=True, workers=WORKERS, encoder=wanted
    )
    assert report.encoder == encoder, report.encoder_reason
    return report


def _reference(tokenizer: NativeTokenizer, path: Path, prefix: Path) -> None:
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    dtype = np.uint16 if tokenizer.vocab_size <= 65500 else np.int32
    builder = IndexedDatasetBuilder(f"{prefix}_text_document.bin", dtype=dtype)
    _worker.update(tokenizer=tokenizer, native=tokenizer._opened())
    fork = multiprocessing.get_context("fork")
    with path.open(encoding="utf-8") as lines, fork.Pool(WORKERS) as pool:
        for ids in pool.imap(_encode, lines, 32):
            builder.add_document(ids, [len(ids)])
    builder.finalize(f"{prefix}_text_document.idx")


def _encode(line: str) -> list[int]:
    ids = _worker["native"].encode(json.loads(line)["text"], add_special_tokens=False).ids
    return [*ids, _worker["tokenizer"].eod]


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.0f} MB"
