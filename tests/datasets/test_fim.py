"""Fill-in-the-middle over GPT samples: the reference's stream, and samples that stay the same."""

import json
import pickle
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from coredata.datasets import (
    ArraySource,
    BlendedMegatronDatasetBuilder,
    Dataset,
    GPTDataset,
    GPTDatasetConfig,
)
from coredata.datasets.fim import GPTFIMDataset, _by_end_tokens
from coredata.datasets.fim_config import GPTFIMDatasetConfig
from coredata.datasets.gpt_batch import GatheredText
from coredata.datasets.sample_numbers import SampleNumbers
from coredata.fim import DEFAULT_TOKENS, FIMVocabularyError, Infilling, SampleDraws
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import SampleSpans, Split
from coredata.text import ByteTokenizer, NullTokenizer, TokenizerJson

GOLDEN = files("coredata.testing") / "golden" / "fim"
CASES = sorted(p.name[:-5] for p in GOLDEN.iterdir() if p.name.endswith(".json"))
EOD, FIM_PAD = 256, 261


def config(**options):
    settings = {
        "random_seed": 1,
        "sequence_length": 40,
        "tokenizer": ByteTokenizer(),
        "blend": (["unused"], None),
        "split": "1,0,0",
    }
    return GPTFIMDatasetConfig(**{**settings, **options})


def build(tokens, lengths, num_samples, settings, split=Split.train):
    documents = np.arange(len(lengths))
    source = ArraySource(tokens, lengths)
    return GPTFIMDataset(source, None, documents, num_samples, split, settings)


def corpus(documents=60, seed=0):
    rng = np.random.RandomState(seed)
    texts = [rng.randint(97, 123, size=rng.randint(1, 60)) for _ in range(documents)]
    tokens = np.concatenate([[*text, EOD] for text in texts])
    return tokens, np.array([len(text) + 1 for text in texts])


def load(name):
    settings = json.loads((GOLDEN / f"{name}.json").read_text())
    with (GOLDEN / f"{name}.npz").open("rb") as file:
        return settings, dict(np.load(file, allow_pickle=False))


def golden(name, **options):
    settings, arrays = load(name)
    made = config(
        random_seed=settings["random_seed"],
        sequence_length=settings["sequence_length"],
        randomness="stream",
        **settings["config"],
        **options,
    )
    dataset = build(arrays["flat_tokens"], arrays["doc_lengths"], settings["num_samples"], made)
    return dataset, settings["access_order"], arrays


def test_golden_cases_are_there():
    assert len(CASES) == 8


@pytest.mark.parametrize("size", [1, 5, 33])
@pytest.mark.parametrize("name", CASES)
def test_a_stream_matches_the_reference(name, size):
    dataset, order, arrays = golden(name)
    batches = [dataset.get_batch(order[i : i + size]) for i in range(0, len(order), size)]
    for field in ("tokens", "labels", "loss_mask"):
        ours = np.concatenate([batch[field] for batch in batches])
        assert ours.dtype == arrays[field].dtype
        np.testing.assert_array_equal(ours, arrays[field])


def test_single_samples_go_on_with_the_stream():
    dataset, order, arrays = golden("half")
    for k, sample in enumerate(order):
        np.testing.assert_array_equal(dataset[sample]["tokens"], arrays["tokens"][k])


def test_a_sample_is_the_same_in_any_order_batch_and_process():
    dataset = build(*corpus(), 50, config())
    assert isinstance(dataset, Dataset)
    batch = dataset.get_batch(np.arange(len(dataset)))
    other = pickle.loads(pickle.dumps(dataset))
    for k in (17, 3, 44, 3, 0):
        for reader in (dataset, other):
            np.testing.assert_array_equal(reader[k]["tokens"], batch["tokens"][k])
    samples = other.__getitems__([30, 2])
    np.testing.assert_array_equal(samples[1]["labels"], batch["labels"][2])


def test_what_is_permuted_is_the_gpt_sample():
    tokens, lengths = corpus()
    plain = GPTDataset(ArraySource(tokens, lengths), None, np.arange(60), 50, Split.train, config())
    never = build(tokens, lengths, 50, config(fim_rate=0.0))
    always = build(tokens, lengths, 50, config(fim_rate=1.0))
    numbers = np.arange(50)
    before = plain.get_batch(numbers)["tokens"]
    kept = before[:, 0] != EOD  # an end token without text before it is dropped, whatever the rate
    np.testing.assert_array_equal(never.get_batch(numbers)["tokens"][kept], before[kept])
    after = always.get_batch(numbers)["tokens"]
    assert ((after == 258).sum(axis=1) >= 1).all()
    assert (before < 258).all()


def test_seed_split_and_data_change_the_draws_and_places_do_not():
    tokens, lengths = corpus()
    draws = {}
    for name, dataset in {
        "one": build(tokens, lengths, 50, config()),
        "longer": build(tokens, lengths, 5000, config()),
        "seed": build(tokens, lengths, 50, config(random_seed=2)),
        "split": build(tokens, lengths, 50, config(), Split.valid),
        "data": build(*corpus(seed=1), 50, config()),
    }.items():
        numbers = SampleNumbers(np.arange(9), None)
        draws[name] = [d.randint(0, 10**6, size=3).tolist() for d in dataset._draws(numbers)]
    assert draws.pop("longer") == draws["one"]
    assert len({json.dumps(d) for d in draws.values()}) == len(draws)


def test_batch_padding_has_the_shapes_of_a_sample_and_no_loss():
    dataset = build(*corpus(), 50, config())
    batch = dataset.get_batch([3, -1])
    assert batch["loss_mask"][0].any()
    assert not batch["loss_mask"][1].any()
    assert not dataset[None]["loss_mask"].any()


def test_a_short_last_sample_is_permuted_within_its_length_then_padded():
    tokens = np.array([*b"abcdefgh" * 7, EOD])
    made = config(fim_rate=1.0, drop_last_partial_validation_sequence=False)
    dataset = build(tokens, np.array([57]), None, made, Split.valid)
    batch = dataset.get_batch(np.arange(len(dataset)))
    (short,) = np.flatnonzero((batch["tokens"] == 0).any(axis=1))
    sample = batch["tokens"][short]
    assert (sample[:17] > 0).all()
    assert (sample[17:] == 0).all()
    assert not batch["loss_mask"][short][16:].any()


def test_positions_and_masks_follow_the_permuted_documents():
    made = config(
        fim_rate=1.0,
        reset_position_ids=True,
        eod_mask_loss=True,
        reset_attention_mask=True,
        create_attention_mask=True,
    )
    batch = build(*corpus(), 50, made).get_batch(np.arange(50))
    for tokens, positions, loss in zip(
        batch["tokens"], batch["position_ids"], batch["loss_mask"], strict=True
    ):
        ends = np.flatnonzero(tokens == EOD)
        assert (positions[ends[ends < 39] + 1] == 0).all()
        assert (loss[ends] == 0).all()


def test_document_boundaries_are_those_of_the_permuted_text():
    made = config(fim_rate=1.0, inter_document_masking=True, segment_ids=True)
    dataset = build(*corpus(), 50, made)
    batch = dataset.get_batch(np.arange(50))
    for tokens, bounds, longest, ids, positions in zip(
        *(
            batch[name]
            for name in ("tokens", "cu_seqlens", "max_seqlen", "segment_ids", "position_ids")
        ),
        strict=True,
    ):
        ends = [int(end) + 1 for end in np.flatnonzero(tokens == EOD) if end + 1 < 40]
        expected = [0, *ends, 40]
        assert bounds.tolist() == expected + [40] * (41 - len(expected))
        sizes = np.diff(expected)
        assert longest == sizes.max()
        assert ids.tolist() == np.repeat(np.arange(1, len(expected)), sizes).tolist()
        assert positions.tolist() == [p for size in sizes for p in range(size)]


def test_what_lies_beyond_a_short_sample_is_no_part_of_it():
    made = config(fim_rate=1.0)
    dataset = build(*corpus(), 50, made)
    short = np.frombuffer(b"abcdefgh", np.uint8).astype(np.int64)
    spans = SampleSpans(*[np.empty(0, np.int64)] * 3, np.zeros(2, np.int64))
    gathered = GatheredText(np.array([[*short, 97, 97, 97]]), np.array([8]), spans)
    dataset._permute(gathered, SampleNumbers(np.array([5]), None))
    draws = SampleDraws(made.random_seed, dataset._draws_identity)
    alone = Infilling.of(made.fim_options(), made.tokenizer).sample(short, draws.at(5))
    assert gathered.text.tolist() == [[*alone.tolist(), 97, 97, 97]]


def test_what_lies_beyond_a_short_sample_ends_no_document():
    text = np.array([[7, EOD, 8, EOD, EOD], [7, 7, 7, 7, 7]])
    spans = SampleSpans(*[np.empty(0, np.int64)] * 3, np.zeros(3, np.int64))
    found = _by_end_tokens(GatheredText(text, np.array([3, 5]), spans), EOD).spans
    assert found.row_splits.tolist() == [0, 2, 3]
    assert (found.offsets.tolist(), found.lengths.tolist()) == ([0, 2, 0], [2, 1, 5])


def byte_level_tokenizer(directory):
    """As many models have it: special tokens, and a template that puts BOS before every text."""
    special = ["<s>", "<pad>", *DEFAULT_TOKENS.as_dict().values()]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*special, *alphabet])}
    native = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    native.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    native.decoder = decoders.ByteLevel()
    native.add_special_tokens(special)
    native.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    native.save(str(directory / "tokenizer.json"))
    return TokenizerJson(str(directory / "tokenizer.json"))


def test_no_special_token_sneaks_in_and_none_becomes_text(tmp_path):
    tokenizer = byte_level_tokenizer(tmp_path)
    bos, pad = tokenizer.token_id("<s>"), tokenizer.token_id("<pad>")
    assert (tokenizer.bos, tokenizer.pad) == (bos, pad)
    ids = tokenizer.encode("def äöü(x): return 🙂\n" * 40)
    tokens = np.array([*ids[:200], pad, *ids[200:], tokenizer.eod])
    made = config(tokenizer=tokenizer, fim_rate=1.0)
    batch = build(tokens, np.array([len(tokens)]), 200, made).get_batch(np.arange(200))
    assert not (batch["tokens"] == bos).any()
    assert not (batch["tokens"] == pad).any()
    marks = [tokenizer.token_id(name) for name in ("<fim_prefix>", "<fim_suffix>")]
    assert np.isin(batch["tokens"][:, 0], marks).all()


def test_keeping_lengths_keeps_documents_in_place():
    tokens, lengths = corpus()
    plain = GPTDataset(ArraySource(tokens, lengths), None, np.arange(60), 50, Split.train, config())
    kept = build(tokens, lengths, 50, config(fim_rate=1.0, fim_truncate_or_pad=True))
    before, after = (d.get_batch(np.arange(50))["tokens"] for d in (plain, kept))
    first = before[:, 0] == EOD
    np.testing.assert_array_equal((before == EOD)[~first], (after == EOD)[~first])
    assert (before != after).any()


def test_fields_may_be_32_bit():
    wide = build(*corpus(), 50, config()).get_batch([1, 2])
    narrow = build(*corpus(), 50, config(output_dtype="int32")).get_batch([1, 2])
    assert narrow["tokens"].dtype == np.int32
    np.testing.assert_array_equal(wide["tokens"], narrow["tokens"])


def write(prefix, seed):
    tokens, lengths = corpus(seed=seed)
    with IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16) as builder:
        for document in np.split(tokens, np.cumsum(lengths)[:-1]):
            builder.add_document(document, [len(document)])
        builder.finalize(f"{prefix}.idx")
    return str(prefix)


def test_it_builds_blends_and_caches_like_gpt(tmp_path):
    paths = [write(tmp_path / name, seed) for seed, name in enumerate("ab")]
    cache = tmp_path / "cache"
    made = config(blend=(paths, [0.5, 0.5]), split="8,1,1", path_to_cache=str(cache))
    train, valid, _ = BlendedMegatronDatasetBuilder(
        GPTFIMDataset, [60, 4, 0], lambda: True, made
    ).build()
    assert (len(train), len(valid)) == (60, 4)
    names = [path.name for path in cache.rglob("*-GPTFIMDataset-train-document_index.npy")]
    assert len(names) == 2
    descriptions = [p.read_text() for p in cache.rglob("*-GPTFIMDataset-train-description.txt")]
    assert all('"class": "GPTFIMDataset"' in text for text in descriptions)
    again, *_ = BlendedMegatronDatasetBuilder(GPTFIMDataset, [60, 4, 0], lambda: True, made).build()
    np.testing.assert_array_equal(
        train.get_batch(np.arange(60))["tokens"], again.get_batch(np.arange(60))["tokens"]
    )
    rates = replace(made, fim_rate=0.1)
    other, *_ = BlendedMegatronDatasetBuilder(
        GPTFIMDataset, [60, 4, 0], lambda: True, rates
    ).build()
    assert {path.name for path in cache.rglob("*-document_index.npy")} >= set(names)
    assert other.fingerprint() != train.fingerprint()


def test_the_fingerprint_tells_all_settings_apart():
    tokens, lengths = corpus()
    variants = [
        {},
        {"fim_rate": 0.4},
        {"fim_spm_rate": 0.4},
        {"fim_split_sample": "<file_sep>", "fim_fragment_rate": 0.5},
        {"fim_no_prefix": "#"},
        {"fim_truncate_or_pad": True},
        {"randomness": "stream"},
    ]
    prints = [build(tokens, lengths, 50, config(**v)).fingerprint() for v in variants]
    assert len({json.dumps(p, sort_keys=True) for p in prints}) == len(variants)
    assert all(isinstance(v, str | int | float | bool | type(None)) for v in prints[0].values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fim_rate": 1.5}, "fim_rate must be a probability from 0 to 1, found 1.5"),
        ({"randomness": "chaos"}, 'randomness: got \'chaos\', need "sample" or "stream"'),
        ({"fim_split_sample": "<file_sep>"}, "fim_fragment_rate, .* is None"),
        ({"fim_extra_tokens": {"prefix": "a"}}, "missing: eod, middle, pad, suffix"),
        ({"tokenizer": object()}, "tokenizer: infilling decodes and encodes text, but object"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        config(**options)


def test_a_vocabulary_without_the_tokens_is_refused():
    made = config(tokenizer=NullTokenizer(vocab_size=1000))
    with pytest.raises(FIMVocabularyError, match="lacks tokens that infilling needs: prefix '<fim"):
        build(*corpus(), 50, made)


def test_made_up_data_are_refused():
    made = GPTFIMDatasetConfig(random_seed=1, sequence_length=8, tokenizer=ByteTokenizer())
    with pytest.raises(ValueError, match=r"GPTFIMDataset reads files\. Give it blend and split"):
        BlendedMegatronDatasetBuilder(GPTFIMDataset, [4, 0, 0], lambda: True, made).build()


def test_errors_of_reading_say_which_samples():
    dataset = build(*corpus(), 50, config())
    with pytest.raises(IndexError, match="sample 5000 was asked of the train split"):
        dataset.get_batch([5000])


def test_a_configuration_is_one_of_gpt_too():
    assert isinstance(config(), GPTDatasetConfig)
    assert config().token_dtype_code == 8
