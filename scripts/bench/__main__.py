"""`python -m scripts.bench [--full]`: every benchmark, as one table."""

import argparse
import platform
import tempfile
import warnings
from pathlib import Path

from scripts.bench import blend, get_batch, index_build
from scripts.bench.harness import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of the README's numbers")
    full = parser.parse_args().full
    warnings.filterwarnings("ignore")  # the reference's, at import
    resets = {"reset_position_ids": True, "eod_mask_loss": True}
    with tempfile.TemporaryDirectory() as directory:
        tokens = 100_000_000 if full else 10_000_000
        rows = [
            index_build.row(20_000_000 if full else 1_000_000),
            *(blend.row(d, 1_000_000 if full else 100_000) for d in (10, 100, 1000)),
            get_batch.row(Path(directory), 8, 4096, tokens),
            get_batch.row(Path(directory), 32, 1024, tokens),
            get_batch.row(Path(directory), 8, 4096, tokens, **resets),
        ]
    print(
        f"medians of 5 alternating runs; {platform.machine()}, Python {platform.python_version()}"
    )
    print(table(rows))


if __name__ == "__main__":
    main()
