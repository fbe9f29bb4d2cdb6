"""Makes coredata/text/assets/demo_tokenizer.json: a byte-level BPE learnt from Python's library.

    python scripts/train_demo_tokenizer.py [OUTPUT]

Deterministic for a given Python version and version of the `tokenizers` package: the same text in
the same order, no sampling. The package's own training breaks ties by token id.
"""

import argparse
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ASSET = Path(__file__).parents[1] / "coredata" / "text" / "assets" / "demo_tokenizer.json"
VOCABULARY = 8192
SPECIAL = ["<|endoftext|>", "<|pad|>"]
SKIPPED = {"test", "tests", "idle_test", "site-packages", "__pycache__", "lib2to3"}


def library_texts() -> Iterator[str]:
    """The sources of the standard library, tests left out, sorted by name; the prose twice."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if SKIPPED.isdisjoint(inside.parts):
            text = path.read_text(encoding="utf-8", errors="replace")
            yield from [text] * (2 if inside.parts[0] == "pydoc_data" else 1)


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(library_texts(), trainer)
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?", type=Path, default=ASSET)
    output = parser.parse_args().output
    parsed = json.loads(train().to_str())
    # Merges as strings, which every version of the package reads; no token holds a blank.
    parsed["model"]["merges"] = [" ".join(pair) for pair in parsed["model"]["merges"]]
    content = json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))
    output.write_text(content + "\n", encoding="utf-8")
    print(f"{output}: {VOCABULARY} tokens, {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
