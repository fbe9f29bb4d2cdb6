"""The small tokenizer that comes with the library."""

from importlib.resources import files

from coredata.text.tokenizer_json import TokenizerJson


def demo_tokenizer() -> TokenizerJson:
    """A byte-level BPE of some thousand tokens, learnt from Python's own library.

    For demonstrations and tests: no download, real text, `<|endoftext|>` and `<|pad|>`.
    `scripts/train_demo_tokenizer.py` made it.
    """
    return TokenizerJson(str(files("coredata.text") / "assets" / "demo_tokenizer.json"))
