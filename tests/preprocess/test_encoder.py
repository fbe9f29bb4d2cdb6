import re
import sys
import threading

import pytest

from coredata.preprocess import PreprocessError, preprocess
from coredata.preprocess.encoder import sample_texts
from coredata.preprocess.plan import inspect_inputs
from coredata.text import ByteTokenizer, TokenizerJson, demo_tokenizer
from coredata.text.fast import EncoderMismatchError, GigatokenTokenizer

ROWS = [
    {"text": f"def f{i}(x):\n    return x * {i}  # naïve café 🙂\n" * (i % 7)} for i in range(300)
]
ROWS[3]["text"] = "<|endoftext|> in the middle <|pad|>x"
ROWS[11]["text"] = ["a list", "", "of texts"]


def run(corpus, path, **options):
    report = preprocess(path, corpus.prefix, demo_tokenizer(), append_eod=True, **options)
    return report, corpus.output_bytes()


def test_all_encoders_in_threads_or_processes_give_the_same_bytes(new_corpus):
    outputs = []
    for options in (
        {"encoder": "tokenizers"},
        {"encoder": "tokenizers", "workers": 2},
        {},
        {"encoder": "gigatoken", "batch_bytes": 500},
        {"encoder": "gigatoken", "workers": 2},
        {"workers": 3, "batch_bytes": 2000},
        {"workers": 5},
    ):
        corpus = new_corpus()
        path = corpus.write_rows("in.jsonl", ROWS)
        report, output = run(corpus, path, shard_bytes=6000, **options)
        asked = options.get("encoder") == "tokenizers"
        assert report.encoder == ("tokenizers" if asked else "gigatoken")
        assert report.encoder_reason == ("as asked" if asked else "")
        outputs.append(output)
    assert all(output == outputs[0] for output in outputs)


def test_the_summary_says_which_and_why(corpus, monkeypatch):
    path = corpus.write_rows("in.jsonl", ROWS[:20])
    report, _ = run(corpus, path)
    assert "\nencoded  by gigatoken\n" in report.summary()
    monkeypatch.setitem(sys.modules, "gigatoken", None)
    report, _ = run(corpus, path)
    assert "\nencoded  by tokenizers (gigatoken is not installed; " in report.summary()
    with pytest.raises(PreprocessError, match=r"'gigatoken' cannot be used: .*coredata\[fast\]"):
        run(corpus, path, encoder="gigatoken")
    with pytest.raises(PreprocessError, match="encoder='fast' is unknown; there are 'auto', 'gig"):
        run(corpus, path, encoder="fast")


def test_a_broken_gigatoken_is_named(corpus, tmp_path, monkeypatch):
    (tmp_path / "gigatoken.py").write_text("raise ImportError('gigatoken.so: undefined symbol: y')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gigatoken", raising=False)
    path = corpus.write_rows("in.jsonl", ROWS[:20])
    report, _ = run(corpus, path)
    assert report.encoder == "tokenizers"
    reason = r"gigatoken is installed, but cannot be imported \(ImportError: gigatoken.so: undef"
    assert re.match(reason, report.encoder_reason)
    with pytest.raises(PreprocessError, match=rf"'gigatoken' cannot be used: {reason}"):
        run(corpus, path, encoder="gigatoken")


def test_bytes_are_not_gigatokens_business(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": "a"}])
    report = preprocess(path, corpus.prefix, ByteTokenizer())
    assert (report.encoder, report.encoder_reason) == (
        "ByteTokenizer",
        "a ByteTokenizer encodes by itself",
    )


def test_lone_surrogates_are_replaced_and_counted(new_corpus):
    lines = [b'{"text": "a \\ud800 b"}\n', '{"text": "é \\ud83d\\ude42 \\udc00"}\n'.encode()]
    outputs = []
    for encoder in ("gigatoken", "tokenizers"):
        corpus = new_corpus()
        path = corpus.write("in.jsonl", b"".join(lines))
        report, output = run(corpus, path, encoder=encoder)
        assert report.rows.replaced_surrogates == 2
        outputs.append(output)
    assert outputs[0] == outputs[1]


def test_the_sample_is_of_several_places_and_passes_over_what_is_broken(corpus):
    rows = [{"text": f"row {i}", "n": i} for i in range(1000)]
    first = corpus.write_rows("a.jsonl", rows)
    second = corpus.write("b.jsonl", b'not json\n{"text": 1}\n{"text": "good"}\n')
    third = corpus.write("c.jsonl.gz", b"no gzip at all")
    texts = sample_texts(inspect_inputs([first, second, third], ["text"]), ["text"])
    assert texts[0] == "row 0"
    assert "row 999" in texts
    assert "good" in texts
    assert sum(map(len, texts)) < 3 * 4 * 4200
    assert sample_texts(inspect_inputs([second], ["text"]), ["text"]).count("good") >= 1


def test_other_ids_on_the_input_itself_are_seen_before_the_work(corpus, monkeypatch):
    def spoiled(self, texts):
        tokens, lengths = honest(self, texts)
        return (tokens + 1 if "needle" in texts else tokens), lengths

    honest = GigatokenTokenizer.encode_unchecked
    monkeypatch.setattr(GigatokenTokenizer, "encode_unchecked", spoiled)
    path = corpus.write_rows("in.jsonl", [{"text": "hay"}, {"text": "needle"}])
    report, _ = run(corpus, path)
    assert report.encoder == "tokenizers"
    assert report.encoder_reason.startswith("gigatoken gives other ids for")


def test_other_ids_later_on_end_the_run_and_leave_nothing(corpus, monkeypatch):
    def spoiled(self, texts):
        tokens, lengths = honest(self, texts)
        return (tokens + 1 if texts and "needle" in texts[0] else tokens), lengths

    honest = GigatokenTokenizer.encode_unchecked
    monkeypatch.setattr(GigatokenTokenizer, "encode_unchecked", spoiled)
    monkeypatch.setattr("coredata.preprocess.encoder.sample_texts", lambda *_: [])
    monkeypatch.setattr("coredata.text.fast._BATCHES_CHECKED", 1000)
    path = corpus.write_rows("in.jsonl", [{"text": "hay"}] * 50 + [{"text": "needle " * 9}])
    with pytest.raises(EncoderMismatchError, match="encoder='tokenizers' in preprocess"):
        run(corpus, path, batch_bytes=1, max_errors=5)
    assert not any(name.endswith(".bin") for name in corpus.output_bytes())
    report, _ = run(corpus, path, encoder="tokenizers")
    assert report.shards_reused == 0


def test_no_thread_is_left(corpus):
    path = corpus.write_rows("in.jsonl", ROWS)
    before = set(threading.enumerate())
    run(corpus, path, workers=3, shard_bytes=3000)
    assert set(threading.enumerate()) <= before
    bad = corpus.write("bad.jsonl", b'{"text": "a"}\n' * 2000 + b"broken\n")
    with pytest.raises(PreprocessError, match="line 2001"):
        run(corpus, bad, workers=3, shard_bytes=3000)
    assert set(threading.enumerate()) <= before


def test_a_pickled_tokenizer_finds_its_file_in_a_worker(corpus, tmp_path):
    path = str(tmp_path / "own.json")
    with open(path, "w") as file:
        file.write(demo_tokenizer().serialized())
    rows = corpus.write_rows("in.jsonl", ROWS)
    report = preprocess(rows, corpus.prefix, TokenizerJson(path), workers=5, shard_bytes=3000)
    assert report.encoder == "gigatoken"
