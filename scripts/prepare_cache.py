"""Build a run's indices: `coredata prepare-cache` under the reference's name.

    python scripts/prepare_cache.py --data-path corpus_text_document --split 99,1,0 \\
        --seq-length 4096 --global-batch-size 512 --train-iters 100000 --data-cache-path cache \\
        --tokenizer-model tokenizer.json

A training script's other flags are passed over, as the reference's tool takes all of them.
"""

import sys

from coredata.tools.main import main

if __name__ == "__main__":
    sys.exit(main(["prepare-cache", "--ignore-unknown-flags", *sys.argv[1:]]))
