"""Merge token files: `coredata merge` under the reference's name.

python scripts/merge_datasets.py --input DIRECTORY --output-prefix merged
"""

import sys

from coredata.tools.main import main

if __name__ == "__main__":
    sys.exit(main(["merge", *sys.argv[1:]]))
