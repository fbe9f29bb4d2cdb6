"""Starting a run: a builder over many prefixes with a warm cache, beside megatron-core's.

Both sides have their caches, and their files in the page cache. Time is measured in one process.
File-system calls (of the classes `file` and `desc` of strace) are counted in a process of its own
for each side, between two marks.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coredata import (
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
    IndexedDatasetBuilder,
)
from coredata.text import ByteTokenizer
from scripts.bench.harness import Row, compare

SIZES = [100_000, 1000, 1000]
BEGIN, END = "/coredata-bench-begins-here", "/coredata-bench-ends-here"


def rows(full: bool) -> list[Row]:
    prefixes = 1000 if full else 100
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write(directory, prefixes)
        what = f"{prefixes:,} prefixes, three splits, warm cache"
        return [row(directory, what), *calls(directory, what)]


def row(directory: Path, what: str) -> Row:
    return compare("start", builder("coredata", directory), builder("other", directory), same, what)


def calls(directory: Path, what: str) -> list[Row]:
    """File-system calls of one build with each; nothing where strace is not installed."""
    if shutil.which("strace") is None:
        print("file-system calls are not counted: strace is not installed", file=sys.stderr)
        return []
    ours, other = (count_calls(side, directory) for side in ("coredata", "other"))
    ratio = other / ours
    return [Row("start, file-system calls", ours, other, ratio, what, 0, 0, unit="")]


def write(directory: Path, prefixes: int, documents: int = 200) -> None:
    rng = np.random.default_rng(4)
    (directory / "data").mkdir()
    for number in range(prefixes):
        with IndexedDatasetBuilder(
            str(directory / "data" / f"{number:04d}"), dtype=np.uint16
        ) as out:
            lengths = rng.integers(16, 200, documents)
            out.add_documents(rng.integers(0, 256, int(lengths.sum()), dtype=np.uint16), lengths)


def settings(side: str, directory: Path) -> dict[str, Any]:
    files = sorted((directory / "data").glob("*.bin"))
    prefixes = [str(path.with_suffix("")) for path in files]
    return {
        "random_seed": 5,
        "sequence_length": 512,
        "split": "90,5,5",
        "blend": (prefixes, [float(1 + i % 7) for i in range(len(prefixes))]),
        "tokenizer": ByteTokenizer(),
        "path_to_cache": str(directory / f"cache-{side}"),
        "create_attention_mask": False,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
    }


def builder(side: str, directory: Path) -> Callable[[], Any]:
    """A function that builds the three datasets."""
    if side == "coredata":
        config = GPTDatasetConfig(**settings(side, directory))
        return lambda: BlendedMegatronDatasetBuilder(GPTDataset, SIZES, config=config).build()
    import torch.distributed
    from megatron.core.datasets import gpt_dataset
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder as ReferenceBuilder,
    )

    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    reference = gpt_dataset.GPTDatasetConfig(**settings(side, directory))

    def build() -> Any:
        return ReferenceBuilder(gpt_dataset.GPTDataset, SIZES, lambda: True, reference).build()

    return build


def same(ours: list[Any], reference: list[Any]) -> None:
    for a, b in zip(ours, reference, strict=True):
        assert len(a) == len(b)
        for sample in (0, len(a) // 2, len(a) - 1):
            np.testing.assert_array_equal(a[sample]["tokens"], b[sample]["tokens"].numpy())


def count_calls(side: str, directory: Path) -> int:
    """System calls on files of one build, in a process that has built before."""
    trace = directory / f"trace-{side}"
    subprocess.run(
        ["strace", "-f", "-qq", "-e", "trace=%file,%desc", "-o", str(trace)]
        + [sys.executable, "-m", "scripts.bench.start", side, str(directory)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return between_marks(trace)


def between_marks(trace: Path) -> int:
    """How many calls strace saw between the two marks."""
    counting, count = False, 0
    for line in trace.read_text(errors="replace").splitlines():
        if BEGIN in line:
            counting = True
        elif END in line:
            return count
        elif counting and re.match(r"\d+ +\w+\(", line):
            count += 1
    raise LookupError(f"{trace} has no mark at its end")


def main() -> None:
    warnings.filterwarnings("ignore")
    side, directory = sys.argv[1:]
    build = builder(side, Path(directory))
    build()
    Path(BEGIN).exists()
    build()
    Path(END).exists()


if __name__ == "__main__":
    main()
