"""The scripts with the reference's names, run as it is run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from coredata.formats import IndexedDataset

ROOT = Path(__file__).parents[2]


def run(script, *flags):
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *map(str, flags)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_from_text_to_a_prepared_cache(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "words, and more words"}\n' * 40)
        run(
            *("preprocess_data.py", "--input", tmp_path / f"{name}.jsonl", "--append-eod"),
            *("--output-prefix", tmp_path / name, "--tokenizer-type", "ByteLevelTokenizer"),
            *("--workers", 1, "--partitions", 1),
        )
    parts = tmp_path / "parts"
    parts.mkdir()
    for path in tmp_path.glob("*_text_document.*"):
        path.rename(parts / path.name)
    merged = tmp_path / "merged"
    run("merge_datasets.py", "--input", parts, "--output-prefix", merged)
    assert len(IndexedDataset(merged)) == 80
    data = ("--data-path", "0.5", merged, "0.5", parts / "a_text_document")
    counts = tmp_path / "counts.json"
    run("build_sequences_per_dataset.py", *data, "--per-dataset-sequences-path", counts)
    assert json.loads(counts.read_text()) == {
        str(merged): [80, 81],
        str(parts / "a_text_document"): [40, 41],
    }
    told = run(
        *("prepare_cache.py", *data, "--split", "8,1,1", "--data-cache-path", tmp_path / "cache"),
        *("--seq-length", 16, "--micro-batch-size", 2, "--train-iters", 5, "--eval-iters", 1),
        *("--tokenizer-type", "ByteLevelTokenizer", "--prepare-cache-world-size", 2),
        *("--num-layers", 2, "--hidden-size", 64, "--bf16", "--per-dataset-sequences-path", counts),
    )
    assert "passed over, as not about data: --num-layers 2, --hidden-size 64, --bf16" in told.stderr
    assert "sizes from 5 steps of 4 samples, 4 a step, 2 data-parallel ranks" in told.stdout
    assert "9 built, 0 hit" in told.stdout
