"""What rows become."""

import gzip

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.formats import IndexedDataset
from coredata.preprocess import PreprocessError, preprocess
from coredata.preprocess.documents import assemble
from coredata.preprocess.end_tokens import insert_after
from coredata.text import ByteTokenizer, NullTokenizer, demo_tokenizer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.one_of(TEXTS, st.lists(TEXTS, max_size=4))
ROWS = st.lists(st.fixed_dictionaries({"text": VALUES, "note": VALUES}), max_size=12)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    rows=ROWS,
    append_eod=st.booleans(),
    drop_empty=st.booleans(),
    shard_bytes=st.integers(20, 400),
    batch_bytes=st.integers(1, 200),
)
def test_equal_to_the_slow_twin(new_corpus, rows, append_eod, drop_empty, shard_bytes, batch_bytes):
    corpus, twin = new_corpus(), new_corpus()
    path = corpus.write_rows("in.jsonl", rows)
    rule = {"append_eod": append_eod, "drop_empty": drop_empty}
    cut = {"shard_bytes": shard_bytes, "batch_bytes": batch_bytes}
    keys = ["text", "note"]
    if not any("".join(value) for row in rows for value in row.values()):
        with pytest.raises(PreprocessError, match="no token was written"):
            corpus.run(path, json_keys=keys, **rule, **cut)
        assert corpus.output_bytes() == {}
        assert corpus.parts() == []
        return
    report = corpus.run(path, json_keys=keys, **rule, **cut)
    twin.write_slowly(rows, keys, **rule)
    assert corpus.output_bytes() == twin.output_bytes()
    assert report.rows.lines == len(rows)
    for key in keys:
        source = IndexedDataset(report.prefixes[key])
        assert report.keys[key].documents == len(source.document_indices) - 1
        assert report.keys[key].sequences == len(source)
        assert report.keys[key].tokens == source.sequence_lengths.sum()
        empty = sum(not "".join(row[key]) for row in rows)
        assert report.keys[key].empty_documents == empty


@given(
    documents=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8),
    end_token=st.sampled_from([None, 99]),
    drop_empty=st.booleans(),
)
def test_assemble_equals_a_loop(documents, end_token, drop_empty):
    lengths = np.array([n for texts in documents for n in texts], np.int64)
    tokens = np.arange(lengths.sum(), dtype=np.int32)
    sizes = np.array([len(texts) for texts in documents], np.int64)
    found = assemble(tokens, lengths, sizes, end_token=end_token, drop_empty=drop_empty)

    expected_tokens, expected_lengths, expected_sizes, position, empty = [], [], [], 0, 0
    for texts in documents:
        sentences = []
        for length in texts:
            if length:
                sentences.append(list(range(position, position + length)))
            position += length
        if sentences and end_token is not None:
            sentences[-1].append(end_token)
        empty += not sentences
        if sentences or not drop_empty:
            expected_sizes.append(len(sentences))
        expected_lengths += [len(sentence) for sentence in sentences]
        expected_tokens += [token for sentence in sentences for token in sentence]
    assert found.tokens.tolist() == expected_tokens
    assert found.sequence_lengths.tolist() == expected_lengths
    assert found.document_sizes.tolist() == expected_sizes
    assert found.empty_documents == empty
    assert found.tokens.dtype == np.int32


@given(
    tokens=st.lists(st.sampled_from([-1, 0, 7, 65535, 65536, 2**31 - 1]), max_size=9),
    places=st.lists(st.integers(0, 9), max_size=5),
    token=st.sampled_from([50256, 65536]),
    dtype=st.sampled_from(["uint16", "int32", "int64"]),
)
def test_insertion_equals_numpys(tokens, places, token, dtype):
    ends = np.sort(np.minimum(places, len(tokens))).astype(np.int64)
    values = np.array(tokens, np.int32)
    found = insert_after(values, ends, token, np.dtype(dtype))
    expected = np.insert(values, ends, np.int32(token))
    np.testing.assert_array_equal(found, expected)
    fits = dtype == "uint16" and expected.min(initial=0) >= 0 and expected.max(initial=0) < 1 << 16
    assert found.dtype == (np.uint16 if fits else np.int32)


def test_first_row_empty_with_end_tokens(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": ""}, {"text": "a"}, {"text": []}])
    corpus.run(path, append_eod=True)
    assert corpus.texts() == [[], ["a∎"], []]


def test_first_row_empty_and_dropped(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": ""}, {"text": "a"}, {"text": []}])
    report = corpus.run(path, append_eod=True, drop_empty=True)
    assert corpus.texts() == [["a∎"]]
    assert report.keys["text"].empty_documents == 2


def test_end_token_goes_behind_the_last_sentence_that_has_tokens(corpus):
    corpus.run(corpus.write_rows("in.jsonl", [{"text": ["a", "b", ""]}]), append_eod=True)
    assert corpus.texts() == [["a", "b∎"]]


def test_end_token_that_the_tokenizer_lacks(corpus):
    class Endless(NullTokenizer):
        @property
        def eod(self):
            return None

        @property
        def special_tokens_dict(self):
            return {}

    path = corpus.write_rows("in.jsonl", [{"text": "1"}])
    with pytest.raises(ValueError, match=r"an end-of-document token is asked for, but Endless has"):
        preprocess(path, corpus.prefix, Endless(5), append_eod=True)
    assert corpus.parts() == []
    assert preprocess(path, corpus.prefix, Endless(5)).tokens == 1


class Named(NullTokenizer):
    """Whose end token has a text."""

    def __init__(self, text):
        super().__init__(7)
        self.text = text

    def decode(self, ids):
        return self.text if list(ids) == [7] else super().decode(ids)


@pytest.mark.parametrize(
    ("tokenizer", "text", "shown"),
    [
        (demo_tokenizer(), "<|endoftext|>", "0 <|endoftext|>"),
        (NullTokenizer(9), "9", "9"),
        (ByteTokenizer(), "", "256"),
        (Named("\n"), "\n", r"7 '\n'"),
        (Named(" ."), " .", "7 ' .'"),
    ],
)
def test_the_report_names_the_end_token(corpus, tokenizer, text, shown):
    path = corpus.write_rows("in.jsonl", [{"text": "1 2"}])
    report = preprocess(path, corpus.prefix, tokenizer, append_eod=True)
    assert (report.end_token, report.end_token_text) == (tokenizer.eod, text)
    assert f"\nended    documents with token {shown}\n" in report.summary()
    report = preprocess(path, corpus.prefix, tokenizer)
    assert (report.end_token, report.end_token_text) == (None, "")
    assert "ended" not in report.summary()


def test_bom_crlf_blank_lines_and_missing_newline(corpus):
    data = b'\xef\xbb\xbf{"text": "a"}\r\n\r\n  \n{"text": "b"}'
    report = corpus.run(corpus.write("in.jsonl", data))
    assert corpus.texts() == [["a"], ["b"]]
    assert report.rows.lines == 4
    assert report.rows.blank_lines == 2
    assert report.rows.bad_lines == 0
    assert report.rows.text_bytes == len(data)
    assert "passed   2 blank lines" in report.summary()


def test_lone_surrogates_are_replaced_and_counted(corpus):
    data = rb'{"text": "a\ud800b\udc00"}' + b"\n" + rb'{"text": ["\ud83d\ude42", "\uDBFF"]}' + b"\n"
    report = corpus.run(corpus.write("in.jsonl", data))
    bytes_of = [
        bytes(sequence).decode() for document in corpus.documents() for sequence in document
    ]
    assert bytes_of == ["a\ufffdb\ufffd", "🙂", "\ufffd"]
    assert report.rows.replaced_surrogates == 3
    assert "mended   3 lone surrogates" in report.summary()


def test_files_of_all_kinds_in_the_order_given(corpus):
    rows = [b'{"text": "%d"}\n' % number for number in range(5)]
    paths = [
        corpus.write("z.jsonl", rows[0]),
        corpus.write("a.jsonl.gz", gzip.compress(rows[1])),
        corpus.write("m.jsonl.zst", zstandard.ZstdCompressor().compress(rows[2])),
        corpus.write("empty.jsonl", b""),
        corpus.write("b.json", rows[4]),
    ]
    pq.write_table(pa.table({"n": [1], "text": ["3"]}), corpus.directory / "c.parquet")
    paths.insert(4, str(corpus.directory / "c.parquet"))
    report = corpus.run(paths)
    assert corpus.texts() == [["0"], ["1"], ["2"], ["3"], ["4"]]
    assert report.files == 6
    assert report.input_bytes == sum((corpus.directory / path).stat().st_size for path in paths)


def test_patterns_sort_their_matches(corpus):
    for name in "cab":
        corpus.write_rows(f"part-{name}.jsonl", [{"text": name}])
    corpus.run([str(corpus.directory / "part-*.jsonl")])
    assert corpus.texts() == [["a"], ["b"], ["c"]]


def test_parquet_equals_json_lines(new_corpus):
    rows = [{"text": [str(i)] * (i % 3), "note": f"n{i}"} for i in range(50)]
    by_lines, by_parquet = new_corpus(), new_corpus()
    by_lines.run(by_lines.write_rows("in.jsonl", rows), json_keys=["text", "note"])
    table = pa.table({"note": [r["note"] for r in rows], "text": [r["text"] for r in rows]})
    path = by_parquet.directory / "in.parquet"
    pq.write_table(table, path, row_group_size=7)
    report = by_parquet.run(str(path), json_keys=["text", "note"], shard_bytes=200)
    assert report.shards > 2
    assert by_parquet.output_bytes() == by_lines.output_bytes()


def test_memory_urls():
    with fsspec.open("memory://preprocess/in.jsonl.gz", "wb") as file:
        file.write(gzip.compress(b'{"text": "ab"}\n{"text": "c"}\n'))
    prefix = "memory://preprocess/out"
    report = preprocess("memory://preprocess/in.jsonl.gz", prefix, ByteTokenizer())
    assert report.tokens == 3
    source = IndexedDataset(f"{prefix}_text_document")
    assert source[0].tolist() == [97, 98]
    left = fsspec.filesystem("memory").find("/preprocess")
    assert [name.rpartition("/")[2] for name in left] == [
        "in.jsonl.gz",
        "out_text_document.bin",
        "out_text_document.idx",
    ]
    with pytest.raises(PreprocessError, match=r"is in the memory of this process.*use workers=1"):
        preprocess("memory://preprocess/in.jsonl.gz", prefix, ByteTokenizer(), workers=2)


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [(65_499, "uint16"), (65_500, "int32"), (65_536, "int32"), (65_537, "int32")],
)
def test_dtype_follows_the_vocabulary(corpus, vocab_size, dtype):
    tokenizer = NullTokenizer(vocab_size - 1)
    assert tokenizer.vocab_size == vocab_size
    largest = vocab_size - 2
    path = corpus.write_rows("in.jsonl", [{"text": f"0 {largest}"}])
    report = preprocess(path, corpus.prefix, tokenizer, append_eod=True)
    assert report.dtype == dtype
    source = IndexedDataset(report.prefixes["text"])
    assert source.dtype == np.dtype(dtype)
    assert source[0].tolist() == [0, largest, vocab_size - 1]


def test_a_byte_pair_tokenizer(corpus):
    tokenizer = demo_tokenizer()
    texts = ["def f(x):\n    return x", "", "Grüße, 漢字 🙂"]
    path = corpus.write_rows("in.jsonl", [{"text": text} for text in texts])
    preprocess(path, corpus.prefix, tokenizer, append_eod=True)
    assert corpus.documents() == [
        [[*tokenizer.encode(text), tokenizer.eod]] if text else [] for text in texts
    ]


@pytest.mark.slow
def test_a_50_mb_line(corpus):
    rows = [{"text": "first"}, {"text": "x" * 50_000_000}, {"text": "last"}]
    report = corpus.run(corpus.write_rows("in.jsonl", rows), shard_bytes=10_000_000)
    assert report.tokens == 50_000_009
    source = IndexedDataset(report.prefixes["text"])
    assert source.sequence_lengths.tolist() == [5, 50_000_000, 4]
    assert source[2].tolist() == list(b"last")
