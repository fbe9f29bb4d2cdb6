"""Positions, sizes and sample numbers that are no integers are refused by name; numpy's are taken.

In a process of its own: here, annotations are checked before the library comes to see anything.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = {
    "build": "consumed_samples",
    "config": "micro_batch_size",
    "config global": "global_batch_size",
    "config prefetch": "prefetch",
    "full": "consumed_samples",
    "global": "consumed_samples",
    "global size": "global_batch_size",
    "hybrid": "global_batch_size",
    "micro batch": "micro_batch_size",
    "padded": "consumed_samples",
    "ramp": "start_batch_size",
    "random": "consumed_samples",
    "room": "max_seqlen_per_dp_cp_rank",
    "sampler": "consumed_samples",
    "seed": "random_seed",
    "seek": "consumed_samples",
    "sequential": "consumed_samples",
    "skip": "samples",
    "skip array": "samples",
    "steps": "global_batch_size",
    "threads": "threads",
    "torch seek": "consumed_samples",
    "valid": "consumed_samples",
    "valid by name": "consumed_samples",
    "workers": "num_workers",
}
MAY_BE_NONE = {"config global"}


def test_numbers_that_are_none():
    paths = [ROOT, ROOT / "adapters" / "torch"]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("wrong_numbers.py")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers.keys() == NAMES.keys()
    for call, found in answers.items():
        kind, value, of = found.pop("int64")
        assert kind == "ok", (call, value)
        assert value in (4, None, "4"), call
        assert of in ("int", "NoneType", "str"), call
        for given, (kind, text, _) in found.items():
            if given == "None" and call in MAY_BE_NONE:
                continue
            assert kind == "TypeError", (call, given, text)
            assert text.startswith(f"{NAMES[call]}: got "), (call, given, text)
            assert "need an int, such as" in text, (call, given, text)
