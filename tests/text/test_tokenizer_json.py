import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.text import (
    LoneSurrogateError,
    Tokenizer,
    TokenizerFileError,
    TokenizerJson,
    demo_tokenizer,
)

SENTENCE = "the cat sat on the mat, naïve café 你好 🙂\n\n  x"


def test_a_file_in_and_out(build):
    tokenizer = TokenizerJson(build())
    assert isinstance(tokenizer, Tokenizer)
    ids = tokenizer.encode(SENTENCE)
    assert tokenizer.decode(ids) == SENTENCE
    assert (tokenizer.eod, tokenizer.eos, tokenizer.pad, tokenizer.bos) == (0, 0, 1, None)
    assert tokenizer.decode([0, 1]) == "<|endoftext|><|pad|>"
    assert tokenizer.token_id("<|pad|>") == 1
    assert tokenizer.token_id("<|no such|>") is None


def test_truncation_and_padding_in_the_file_are_off(build, cut_and_fill):
    path = build(tweak=cut_and_fill)
    parsed = json.loads(Path(path).read_text())
    assert parsed["truncation"] is not None
    assert parsed["padding"] is not None
    tokenizer = TokenizerJson(path)
    expected = TokenizerJson(build(directory="plain")).encode(SENTENCE)
    assert len(expected) > 4
    assert tokenizer.encode(SENTENCE) == expected
    ids, lengths = tokenizer.encode_batch([SENTENCE, "", "x"])
    assert lengths.tolist() == [len(expected), 0, 1]
    assert ids[: len(expected)].tolist() == expected


def test_no_special_tokens_are_added(build, add_start):
    path = build(tweak=add_start)
    tokenizer = TokenizerJson(path)
    assert tokenizer.bos is not None
    assert tokenizer.bos not in tokenizer.encode("cat")
    assert tokenizer.encode("") == []
    assert tokenizer.bos not in tokenizer.encode_batch(["cat", "mat"])[0]


def test_vocabulary_size_is_the_largest_id_plus_one(build):
    def leave_a_gap(content):
        content["added_tokens"].append(
            {**content["added_tokens"][0], "id": 1000, "content": "<|far|>", "special": True}
        )
        content["model"]["vocab"]["<|far|>"] = 1000

    tokenizer = TokenizerJson(build(edit=leave_a_gap))
    assert tokenizer.token_id("<|far|>") == 1000
    assert tokenizer.vocab_size == 1001


def test_a_batch_is_its_texts_end_to_end():
    tokenizer = demo_tokenizer()

    @settings(max_examples=40)
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
    def check(texts):
        ids, lengths = tokenizer.encode_batch(texts)
        assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)
        assert ids.tolist() == [token for text in texts for token in tokenizer.encode(text)]
        assert [tokenizer.decode(part) for part in np.split(ids, np.cumsum(lengths))[:-1]] == texts

    check()


def test_a_lone_surrogate_is_named_with_its_place(build):
    tokenizer = TokenizerJson(build())
    with pytest.raises(LoneSurrogateError, match=r"U\+D83D at character 2: "):
        tokenizer.encode("ab\ud83d")
    with pytest.raises(LoneSurrogateError, match=r"U\+D83D at character 0 of text 1: "):
        tokenizer.encode_batch(["fine", "\ud83d"])


def test_special_tokens_in_text_are_tokens_unless_they_are_to_be_spelt_out(build):
    path = build()
    assert TokenizerJson(path).encode("a<|endoftext|>").count(0) == 1
    spelt = TokenizerJson(path, split_special_tokens=True)
    assert 0 not in spelt.encode("a<|endoftext|>")
    assert spelt.decode(spelt.encode("a<|endoftext|>")) == "a<|endoftext|>"
    assert spelt.content_hash != TokenizerJson(path).content_hash


def test_identity_is_the_content_not_the_place(build, tmp_path):
    path = build()
    tokenizer = TokenizerJson(path)
    elsewhere = str(tmp_path / "elsewhere.json")
    shutil.copy(path, elsewhere)
    assert TokenizerJson(elsewhere).unique_identifiers == tokenizer.unique_identifiers
    assert tokenizer.unique_identifiers == {
        "class": "TokenizerJson",
        "content_hash": tokenizer.content_hash,
    }
    other = TokenizerJson(build(special=("<|endoftext|>",), directory="other"))
    assert other.content_hash != tokenizer.content_hash


def test_identity_can_be_what_another_program_wrote(build):
    theirs = {"class": "megatron.core.x.GPTTokenizer", "tokenizer_path": "/models/x"}
    tokenizer = TokenizerJson(build(), unique_identifiers=theirs)
    assert tokenizer.unique_identifiers == theirs
    assert pickle.loads(pickle.dumps(tokenizer)).unique_identifiers == theirs


def test_a_copy_by_pickle_is_small_and_encodes_the_same():
    tokenizer = demo_tokenizer()
    data = pickle.dumps(tokenizer)
    assert len(data) < 2000
    copy = pickle.loads(data)
    assert copy.encode(SENTENCE) == tokenizer.encode(SENTENCE)
    assert (copy.eod, copy.pad, copy.vocab_size) == (0, 1, tokenizer.vocab_size)


def test_a_copy_notices_that_the_file_has_changed(build):
    path = build()
    data = pickle.dumps(TokenizerJson(path))
    content = Path(path).read_text()
    Path(path).write_text(content + "\n")
    with pytest.raises(TokenizerFileError, match="has changed since"):
        pickle.loads(data).encode("x")


def test_a_url_does_as_well(build):
    import fsspec

    path = build(tokenizer_config={"pad_token": "<|endoftext|>"})
    folder = Path(path).parent
    memory = fsspec.filesystem("memory")
    for file in folder.iterdir():
        memory.pipe_file(f"/remote/{file.name}", file.read_bytes())
    tokenizer = TokenizerJson("memory://remote/tokenizer.json")
    assert tokenizer.encode(SENTENCE) == TokenizerJson(path).encode(SENTENCE)
    assert tokenizer.pad == 0


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match=r"there is no nowhere/tokenizer\.json"):
        TokenizerJson("nowhere/tokenizer.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "its 0 bytes are no JSON"),
        ('{"model": ', "bytes are no JSON"),
        ('{"hello": 3}', 'JSON without a "model"'),
        ('{"model": {"type": "Unheard of"}}', "cannot read it"),
    ],
)
def test_a_file_that_is_something_else(tmp_path, content, reason):
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(TokenizerFileError, match=f"is not a tokenizer.json: .*{reason}"):
        TokenizerJson(str(path))


def _encode_in_child(tokenizer, texts, queue):
    queue.put(tokenizer.encode_batch(texts)[0].tolist())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.slow
def test_a_copy_works_in_every_kind_of_process(method):
    tokenizer = demo_tokenizer()
    expected = tokenizer.encode_batch([SENTENCE] * 3)[0].tolist()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_encode_in_child, args=(tokenizer, [SENTENCE] * 3, queue))
    process.start()
    assert queue.get(timeout=60) == expected
    process.join()
    assert process.exitcode == 0


def test_forking_after_use_prints_no_warning():
    code = """
import os, sys
from coredata.text import demo_tokenizer
tokenizer = demo_tokenizer()
tokenizer.encode_batch(["some text"] * 1000)
child = os.fork()
if child == 0:
    tokenizer.encode_batch(["some text"] * 1000)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shipped_tokenizer():
    tokenizer = demo_tokenizer()
    assert 4096 <= tokenizer.vocab_size <= 8192
    assert tokenizer.special_tokens_dict == {"eos_token": 0, "pad_token": 1}
    assert (tokenizer.token_id("<|endoftext|>"), tokenizer.token_id("<|pad|>")) == (0, 1)
    source = Path(subprocess.__file__).read_text()
    ids = tokenizer.encode(source)
    assert tokenizer.decode(ids) == source
    assert len(source.encode()) / len(ids) > 2.8
    size = Path(tokenizer._source).stat().st_size
    assert size < 400_000
