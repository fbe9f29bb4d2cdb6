"""Tokenise text: `coredata preprocess` under the reference's name.

    python scripts/preprocess_data.py --input text.jsonl --output-prefix corpus \\
        --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer.json --append-eod
"""

import sys

from coredata.tools.main import main

if __name__ == "__main__":
    sys.exit(main(["preprocess", *sys.argv[1:]]))
