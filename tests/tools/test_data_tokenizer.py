import json

import pytest

from coredata.text import ByteConversationTokenizer, ByteTokenizer, ChatTokenizer
from coredata.text.shipped import demo_tokenizer
from coredata.tools.data_tokenizer import tokenizer_from_args

TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}{% endgeneration %}"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}"
)


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "tokenizer.json").write_text(demo_tokenizer().serialized())
    return directory


def test_by_type(parse):
    null = tokenizer_from_args(parse("--tokenizer-type", "NullTokenizer", "--vocab-size", "10"))
    assert (null.vocab_size, null.eod) == (11, 10)
    bytes_ = tokenizer_from_args(parse("--tokenizer-type", "ByteTokenizer"))
    assert type(bytes_) is ByteTokenizer
    chat = tokenizer_from_args(parse("--tokenizer-type", "ByteTokenizer", "--sft"))
    assert type(chat) is ByteConversationTokenizer


def test_a_model_with_a_template(parse, model):
    (model / "chat_template.jinja").write_text(TEMPLATE)
    plain = parse("--tokenizer-model", model, "--eod", "<|endoftext|>")
    assert not isinstance(tokenizer_from_args(plain), ChatTokenizer)
    for kind in ((), ("--tokenizer-type", "SFTTokenizer")):
        chat = tokenizer_from_args(parse("--tokenizer-model", model, "--sft", *kind))
        assert isinstance(chat, ChatTokenizer)
        assert chat.format.name == "assistant"
    flags = ("--tokenizer-model", model, "--sft", "--sft-tokenizer-prompt-format", "default")
    assert tokenizer_from_args(parse(*flags)).format.counts == "all"


def test_a_model_without_a_template(parse, model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no chat template in .*Give --chat-template PATH"):
        tokenizer_from_args(parse("--tokenizer-model", model, "--sft"))
    varlen = tokenizer_from_args(parse("--tokenizer-model", model, "--use-varlen-dataset"))
    assert not isinstance(varlen, ChatTokenizer)
    (tmp_path / "own.jinja").write_text(TEMPLATE)
    flags = ("--tokenizer-model", model, "--sft", "--chat-template", tmp_path / "own.jinja")
    assert isinstance(tokenizer_from_args(parse(*flags)), ChatTokenizer)
    flags = ("--tokenizer-model", model, "--sft", "--sft-tokenizer-prompt-format", "identity")
    assert tokenizer_from_args(parse(*flags)).format.name == "identity"


def test_an_unknown_prompt_format(parse, model):
    flags = ("--tokenizer-model", model, "--sft", "--sft-tokenizer-prompt-format", "asistant")
    with pytest.raises(
        ValueError, match=r"--sft-tokenizer-prompt-format: unknown .* Did you mean 'assistant'"
    ):
        tokenizer_from_args(parse(*flags))


def test_what_caches_know_it_by(parse, tmp_path):
    null = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "10", "--tokenizer-identifiers")
    own = {"class": "mine", "n": "1"}
    gpt = {"class": "GPTDataset", "index_split": "train", "tokenizer": own}
    blend = {"class": "BlendedDataset", "datasets": [gpt, gpt], "split": "train"}
    for number, content in enumerate((own, gpt, blend)):
        text = json.dumps(content)
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        for given in (text, path):
            assert tokenizer_from_args(parse(*null, given)).unique_identifiers == own
    with pytest.raises(ValueError, match=r"--tokenizer-identifiers: .* need a JSON object"):
        tokenizer_from_args(parse(*null, "{x"))
    (tmp_path / "list").write_text("[1]")
    with pytest.raises(ValueError, match=r"holds no object that identifies a tokenizer; give"):
        tokenizer_from_args(parse(*null, tmp_path / "list"))
