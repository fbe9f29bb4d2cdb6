import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = ["the cat sat on the mat", "naïve café 你好 🙂", "def f(x):\n    return x + 1\n"] * 3


@pytest.fixture
def build(tmp_path):
    """Makes a `tokenizer.json` (byte-level BPE over a few texts) and returns its path."""

    def make(
        special=("<|endoftext|>", "<|pad|>"),
        plain=(),
        tweak=None,
        edit=None,
        directory="tokenizer",
        **configuration,
    ):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=list(special),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(TEXTS, trainer)
        tokenizer.add_tokens([AddedToken(name, special=False) for name in plain])
        if tweak is not None:
            tweak(tokenizer)
        content = json.loads(tokenizer.to_str())
        if edit is not None:
            edit(content)
        folder = tmp_path / directory
        folder.mkdir()
        (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        for name, value in configuration.items():
            (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
        return str(folder / "tokenizer.json")

    return make


@pytest.fixture
def cut_and_fill():
    """Truncation to 4 ids and padding to 128, as some published files have it."""

    def tweak(tokenizer):
        tokenizer.enable_truncation(4)
        tokenizer.enable_padding(length=128, pad_id=1, pad_token="<|pad|>")

    return tweak


@pytest.fixture
def add_start():
    """A post-processor that puts a start token before every text."""

    def tweak(tokenizer):
        tokenizer.add_special_tokens([AddedToken("<s>", special=True)])
        start = tokenizer.token_to_id("<s>")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", start)]
        )

    return tweak
