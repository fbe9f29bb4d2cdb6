"""Configurations check themselves and say what would work."""

import dataclasses
import pickle

import pytest

from coredata.datasets import BlendedMegatronDatasetConfig, GPTDatasetConfig
from coredata.storage import read_options
from coredata.text import ByteTokenizer, NullTokenizer

BLEND = (["a", "b"], [0.3, 0.7])


def base(**options):
    return BlendedMegatronDatasetConfig(**{"random_seed": 1, "sequence_length": 8, **options})


def gpt(**options):
    given = {"random_seed": 1, "sequence_length": 8, "tokenizer": ByteTokenizer(), **options}
    return GPTDatasetConfig(**given)


def test_without_blend_data_are_mock_and_split_evenly():
    config = base(split="9,1,0")
    assert config.mock
    assert config.split == "1,1,1"
    assert [round(end, 3) for _, end in config.split_matrix] == [0.333, 0.667, 1.0]


def test_blends_of_none_are_no_blend():
    assert base(blend_per_split=[None, None, None]).mock


def test_split_matrix_of_a_blend():
    config = base(blend=BLEND, split="90,10,0")
    assert not config.mock
    assert config.split == "90,10,0"
    assert config.split_matrix == [(0, 0.9), (0.9, 1.0), None]


def test_blend_per_split_has_no_split():
    config = base(blend_per_split=[BLEND, None, (["c"], None)])
    assert not config.mock
    assert config.split is None
    assert config.split_matrix is None


def test_it_is_a_value():
    config = gpt(blend=BLEND, split="1,0,0")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.random_seed = 2
    changed = dataclasses.replace(config, random_seed=2)
    assert changed.random_seed == 2
    assert changed.split_matrix == config.split_matrix
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random_seed": -1}, "random_seed: got -1, need 0 to 4294967295"),
        ({"random_seed": 2**32}, "random_seed: got 4294967296"),
        ({"sequence_length": 0}, "sequence_length: got 0, need at least 1"),
        ({"num_dataset_builder_threads": 0}, "num_dataset_builder_threads: got 0"),
        ({"mid_level_dataset_surplus": -0.1}, "mid_level_dataset_surplus: got -0.1.*0.005"),
        ({"mid_level_dataset_surplus": float("nan")}, "mid_level_dataset_surplus: got nan"),
        ({"fast_cache_load": True}, "fast_cache_load: it is on, but path_to_cache is None"),
        ({"defer_npy_index_mmap": True}, "defer_npy_index_mmap: it is on, but path_to_cache"),
        ({"blend": BLEND}, 'split: got None together with blend.*split="969,30,1"'),
        ({"blend": BLEND, "split": "90,abc5,5"}, "split: 'abc5'"),
        ({"blend": BLEND, "split": "-1,1,0"}, "split: '-1'"),
        ({"blend": BLEND, "split": "0,0,0"}, "split: all shares"),
        ({"blend": BLEND, "split": "nan,1,0"}, "split: 'nan'"),
        ({"blend": (["a"],), "split": "1"}, "blend: got .*need .prefixes, weights."),
        ({"blend": ([], None), "split": "1"}, "blend: got prefixes"),
        ({"blend": ("a", None), "split": "1"}, "blend: got prefixes 'a'"),
        ({"blend": (["a", "b"], [1.0]), "split": "1"}, "blend: got 2 prefixes and 1 weights"),
        ({"blend": (["a"], [-1.0]), "split": "1"}, "blend: got weight -1.0 for a"),
        ({"blend": (["a"], [float("inf")]), "split": "1"}, "blend: got weight inf for a"),
        ({"blend": (["a"], [0.0]), "split": "1"}, "blend: all 1 weights are 0"),
        ({"blend": BLEND, "blend_per_split": [BLEND, None, None]}, "blend: got .* together with"),
        ({"split": "1", "blend_per_split": [BLEND, None, None]}, "split: got '1' together with"),
        ({"blend_per_split": [BLEND]}, "blend_per_split: got 1 blends, need 3"),
        ({"blend_per_split": [BLEND, (["c"], [1.0, 2.0]), None]}, r"blend_per_split\[1\] .valid."),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        base(**options)


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_no_number(value):
    with pytest.raises(TypeError, match=r"random_seed: got (True|False) of type bool, need an int"):
        base(random_seed=value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": None}, r"tokenizer: got None.*NullTokenizer"),
        ({"separate_final_epoch_threshold": 1.5}, "separate_final_epoch_threshold: got 1.5.*0.80"),
        ({"output_dtype": "int16"}, 'output_dtype: got \'int16\', need "int64" or "int32"'),
        ({"sequence_length": 2**31 - 1}, "sequence_length: got 2147483647"),
        ({"data_parallel_size": 0}, "data_parallel_size: got 0"),
        ({"sequence_parallel_size": -1}, "sequence_parallel_size: got -1"),
        ({"context_parallel_size": 0}, "context_parallel_size: got 0"),
    ],
)
def test_gpt_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        gpt(**options)


class WithoutEod:
    pad = 0
    vocab_size = 10

    @property
    def eod(self):
        raise NotImplementedError


@pytest.mark.parametrize("name", ["eod_mask_loss", "reset_position_ids", "reset_attention_mask"])
def test_end_of_document_is_needed_only_where_it_is_used(name):
    assert not getattr(gpt(tokenizer=WithoutEod()), name)
    with pytest.raises(ValueError, match=f"{name}: it is on, but the tokenizer WithoutEod has no"):
        gpt(tokenizer=WithoutEod(), **{name: True})


@pytest.mark.parametrize(
    ("vocab_size", "code"), [(268, 8), (65_499, 8), (65_500, 4), (65_536, 4), (65_537, 4)]
)
def test_token_dtype_code_follows_the_writers_rule(vocab_size, code):
    assert gpt(tokenizer=NullTokenizer(vocab_size - 1)).token_dtype_code == code


class WithoutVocabulary:
    eod = 0
    pad = 1


def test_known_counts_need_a_vocabulary_size():
    assert gpt(tokenizer=WithoutVocabulary()).token_dtype_code is None
    with pytest.raises(ValueError, match=r"sequences_per_dataset: .* has no vocab_size"):
        gpt(tokenizer=WithoutVocabulary(), sequences_per_dataset={"a": [1, 2]})


def test_defaults_that_differ_from_the_reference():
    config = gpt()
    assert config.create_attention_mask is False
    assert [config.reset_position_ids, config.reset_attention_mask] == [False, False]
    assert config.eod_mask_loss is False


def test_copies_of_indices_go_where_the_reference_s_option_says():
    config = gpt(object_storage_cache_path="here", storage_options={"anon": True})
    again = dataclasses.replace(config, sequence_length=9)
    for one in (config, again):
        assert one.storage_options["anon"] is True
        assert read_options(one.storage_options).copies == "here"
    assert gpt().storage_options is None
