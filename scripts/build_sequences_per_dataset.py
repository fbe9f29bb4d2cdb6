"""Count sequences of every prefix: `coredata sequences` under the reference's name.

    python scripts/build_sequences_per_dataset.py --per-split-data-args-path blend.json \\
        --per-dataset-sequences-path sequences.json
"""

import sys

from coredata.tools.main import main

if __name__ == "__main__":
    sys.exit(main(["sequences", *sys.argv[1:]]))
