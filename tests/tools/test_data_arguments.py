import argparse
import json
import re

import numpy as np
import pytest

import coredata
from coredata import datasets
from coredata.text import demo_tokenizer
from coredata.tools.data_arguments import (
    add_data_arguments,
    check_counts,
    data_plan,
    datasets_from_args,
    packing_scheduler,
)
from coredata.tools.data_config import config_fields, dataset_class

NULL = ("--tokenizer-type", "NullTokenizer", "--vocab-size", "1000")
SIZES = ("--seq-length", "16", "--num-samples", "20", "5", "5")
BYTES = ("--tokenizer-type", "ByteTokenizer")


def test_public_names():
    assert coredata.add_data_arguments is add_data_arguments
    assert coredata.datasets_from_args is datasets_from_args


def test_a_launch_script_gives_what_the_builder_gives_by_hand(write_pair, parse, tmp_path):
    a, b = write_pair("a"), write_pair("b", 60)
    args = parse(
        *("--data-path", "0.3", a, "0.7", b, "--split", "8,1,1", "--seq-length", 16),
        *("--seed", 7, "--data-cache-path", tmp_path / "cache", *NULL),
        *("--global-batch-size", 4, "--train-iters", 10, "--eval-interval", 5, "--eval-iters", 1),
        *("--reset-position-ids", "--eod-mask-loss", "--no-mmap-bin-files"),
    )
    made = datasets_from_args(args)
    config = datasets.GPTDatasetConfig(
        random_seed=7,
        sequence_length=16,
        blend=([a, b], [0.3, 0.7]),
        split="8,1,1",
        tokenizer=coredata.load_tokenizer("NullTokenizer", vocab_size=1000),
        reset_position_ids=True,
        eod_mask_loss=True,
    )
    by_hand = coredata.BlendedMegatronDatasetBuilder(
        datasets.GPTDataset, [40, 12, 4], config=config
    ).build()
    for one, other in zip(made, by_hand, strict=True):
        assert len(one) == len(other)
        for sample in range(len(one)):
            for name, values in other[sample].items():
                np.testing.assert_array_equal(one[sample][name], values)


def test_samples_to_skip_are_passed_over_in_training_alone(write_pair, parse):
    data = ("--data-path", write_pair("a"), "--split", "8,1,1", *NULL, *SIZES)
    train, valid, _ = datasets_from_args(parse(*data))
    kept, same, _ = datasets_from_args(parse(*data, "--skip-samples", "0,2-4"))
    assert len(kept) == len(train) - 4
    assert len(same) == len(valid)
    np.testing.assert_array_equal(kept[0]["tokens"], train[1]["tokens"])
    np.testing.assert_array_equal(kept[1]["tokens"], train[5]["tokens"])
    assert kept.fingerprint()["skipped_samples"] == "0,2-4"
    with pytest.raises(ValueError, match=r"parse\('0,2-5'\).* or all of them in --skip-samples"):
        datasets.WithoutSamples(kept, [5])
    with pytest.raises(IndexError, match="sample 999999 is to be skipped"):
        datasets_from_args(parse(*data, "--skip-samples", "999999"))
    with pytest.raises(ValueError, match="--skip-samples: skip list, line 1: 'x'"):
        datasets_from_args(parse(*data, "--skip-samples", "x"))


def test_weights_without_a_number_of_samples_are_told_in_flags(write_pair, parse):
    a, b = write_pair("a"), write_pair("b")
    data = ("--data-path", "0.7", a, "0.3", b, "--split", "8,1,1", *NULL, *SIZES)
    with pytest.raises(ValueError, match=r"the valid split has weights \(0\.7, 0\.3\)") as raised:
        datasets_from_args(parse(*data, "--full-validation"))
    text = str(raised.value)
    assert "because --full-validation takes one epoch of every file" in text
    assert "Leave --full-validation out, or name the files of each split (--train-data-path" in text
    assert "full_validation" not in text
    assert "None" not in text
    with pytest.raises(ValueError, match=r"Leave the weights out .* give --num-samples a n"):
        datasets_from_args(parse(*data, "--num-samples", "10", "epoch", "0"))
    each = ["--train-data-path", "0.7", a, "0.3", b, "--valid-data-path", a, b]
    each += ["--test-data-path", a]
    made = datasets_from_args(parse(*each, *NULL, *SIZES, "--full-validation"))
    assert all(map(len, made))


def test_flags_reach_the_configuration(write_pair, parse, tmp_path):
    (tmp_path / "counts.json").write_text(json.dumps({str(tmp_path / "a"): [40, 41]}))
    args = parse(
        *("--data-path", write_pair("a"), "--split", "1,1,0", *NULL, *SIZES),
        *("--reset-attention-mask", "--create-attention-mask-in-dataloader"),
        *("--data-cache-path", tmp_path, "--dataloader-fast-cache-load"),
        *("--dataloader-defer-npy-index-mmap", "--num-dataset-builder-threads", 3),
        *("--per-dataset-sequences-path", tmp_path / "counts.json", "--full-validation"),
        *("--multiple-validation-sets", "--object-storage-cache-path", "x"),
        *("--mid-level-dataset-surplus", 0.01, "--allow-ambiguous-pad-tokens"),
        *("--context-parallel-size", 2, "--data-parallel-size", 4, "--segment-ids"),
        *("--tensor-model-parallel-size", 8, "--sequence-parallel", "--output-dtype", "int32"),
    )
    plan = data_plan(args)
    config = plan.config
    assert plan.dataset_class is datasets.GPTDataset
    assert plan.sizes == (20, 5, 5)
    assert plan.notes == ()
    expected = {
        "random_seed": 1234,
        "reset_attention_mask": True,
        "create_attention_mask": True,
        "fast_cache_load": True,
        "defer_npy_index_mmap": True,
        "num_dataset_builder_threads": 3,
        "full_validation": True,
        "multiple_validation_sets": True,
        "object_storage_cache_path": "x",
        "mid_level_dataset_surplus": 0.01,
        "allow_ambiguous_pad_tokens": True,
        "context_parallel_size": 2,
        "data_parallel_size": 4,
        "sequence_parallel_size": 8,
        "segment_ids": True,
        "output_dtype": "int32",
        "mmap_bin_files": True,
        "sequences_per_dataset": {str(tmp_path / "a"): [40, 41]},
    }
    assert {name: getattr(config, name) for name in expected} == expected


def test_no_dense_mask_unless_asked(parse):
    assert not parse().create_attention_mask_in_dataloader
    assert not parse("--no-create-attention-mask-in-dataloader").create_attention_mask_in_dataloader


def test_flags_are_not_abbreviated(parse, capsys):
    with pytest.raises(SystemExit):
        parse("--data-pat", "x")
    assert "unrecognized arguments: --data-pat" in capsys.readouterr().err


def test_the_reference_s_split_unless_told(write_pair, parse):
    plan = data_plan(parse("--data-path", write_pair("a"), *NULL, *SIZES))
    assert plan.config.split == "969, 30, 1"
    assert plan.notes == ("--split is not given: 969, 30, 1, as in the reference",)


def test_kinds(write_pair, parse, chats):
    mock = ("--mock-data", *SIZES)
    pair = ("--data-path", write_pair("a"), "--split", "1", "--seq-length", 16)
    pair += ("--num-samples", "20", "0", "0")
    rows = ("--data-path", chats, "--split", "1", "--seq-length", 16, *BYTES)
    rows += ("--num-samples", "20", "0", "0")
    fim = [f"--fim-{name}-token" for name in ("prefix", "middle", "suffix", "pad")]
    spelled = zip(fim, ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"), strict=True)
    for flags, expected in (
        ((*mock, *NULL), "MockGPTDataset"),
        ((*mock, *NULL, "--sft"), "MockSFTDataset"),
        ((*mock, *NULL, "--use-varlen-dataset"), "MockVarlenDataset"),
        ((*rows, "--sft"), "SFTDataset"),
        ((*rows, "--use-varlen-dataset"), "VarlenDataset"),
        ((*pair, *NULL), "GPTDataset"),
    ):
        train = datasets_from_args(parse(*flags))[0]
        assert type(train).__name__ == expected
        assert train[3]["tokens"].size
    infilling = parse(
        *(*pair, *BYTES, "--fim-data", "--fim-rate", 0.25, "--fim-randomness", "stream"),
        *("--fim-eod-token", "<|end|>", *(word for two in spelled for word in two)),
    )
    config = data_plan(infilling).config
    assert (config.fim_rate, config.randomness) == (0.25, "stream")
    assert config.fim_extra_tokens["middle"] == "<|user|>"


def test_the_scheduler_of_samples_of_varying_length(parse):
    assert packing_scheduler(parse()) is None
    assert packing_scheduler(parse("--sft")) is None
    assert packing_scheduler(parse("--use-varlen-dataset")) == "dp_balanced"
    dynamic = ("--use-varlen-dataset", "--dynamic-context-parallel")
    assert packing_scheduler(parse(*dynamic)) == "default_dynamic_cp"
    assert packing_scheduler(parse("--use-varlen-dataset", "--varlen-sbhd-validation")) is None
    told = ("--use-varlen-dataset", "--sequence-packing-scheduler", "default_dynamic_cp")
    assert packing_scheduler(parse(*told)) == "default_dynamic_cp"
    plan = data_plan(parse("--mock-data", "--use-varlen-dataset", *NULL, *SIZES))
    assert plan.scheduler == "dp_balanced"
    assert plan.notes == ("--sequence-packing-scheduler is not given: dp_balanced",)


def test_varlen_flags(parse):
    args = parse(
        *("--mock-data", "--use-varlen-dataset", *NULL, *SIZES, "--context-parallel-size", 2),
        *("--varlen-mock-dataset-config-json", '{"min_seq_len": 3, "max_seq_len": 3, '),
    )
    args.varlen_mock_dataset_config_json += (
        '"mode": "distribution", "type": "lognormal", "mean_seq_len": 3, "lognormal_sigma": 1.1}'
    )
    assert datasets_from_args(args)[0][0]["tokens"].tolist()[:2] == [1, 2]
    assert data_plan(args).config.multiple == 4


_DATA = ("--data-path", "p")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), r"no data are named: give --data-path PREFIX, or instead of it .* or --mock-data"),
        ((*_DATA, "--mock-data"), r"--data-path and --mock-data exclude each other"),
        ((*_DATA, "--train-data-path", "q"), r"--data-path and --train-data-path, .* exclude"),
        ((*_DATA, "--data-args-path", "q"), r"--data-path and --data-args-path exclude"),
        (
            ("--valid-data-path", "q", "--per-split-data-args-path", "r"),
            r"--test-data-path and --per-split-data-args-path exclude each other; leave one out",
        ),
        (("--train-data-path", "q", "--split", "1"), r"--split is given with --train-data-path"),
        (
            (*_DATA, "--use-varlen-dataset", "--sft"),
            r"--use-varlen-dataset and --sft exclude each other: each is another kind",
        ),
        ((*_DATA, "--fim-data", "--sft"), r"--fim-data and --sft exclude each other"),
        ((*_DATA, "--dataset", "bert", "--sft"), r"--dataset bert and --sft exclude"),
        (
            ("--mock-data", "--dataset", "t5"),
            r"--mock-data cannot make up samples for --da.* t5",
        ),
        (("--mock-data", "--fim-data"), r"--mock-data makes up numbers, and --fim-data permutes"),
        (
            (*_DATA, "--varlen-sbhd-validation"),
            r"--varlen-sbhd-validation means nothing without --use-varlen-dataset; add it",
        ),
        (
            ("--mock-data", "--use-varlen-dataset", "--varlen-sbhd-validation"),
            r"--varlen-sbhd-validation and --mock-data exclude each other: .* Name data with",
        ),
        (
            (*_DATA, "--use-varlen-dataset", "--varlen-sbhd-validation")
            + ("--sequence-packing-scheduler", "dp_balanced"),
            r"--varlen-sbhd-validation and --sequence-packing-scheduler dp_balanced exclude",
        ),
        (
            (*_DATA, "--use-varlen-dataset", "--varlen-sbhd-validation")
            + ("--dynamic-context-parallel",),
            r"--varlen-sbhd-validation and --dynamic-context-parallel exclude each other",
        ),
        (
            (*_DATA, "--sequence-packing-scheduler", "dp_balanced"),
            r"--sequence-packing-scheduler dp_balanced packs samples of --use-varlen-dataset or",
        ),
        (
            (*_DATA, "--sft", "--sft-mock-dataset-config-json", "{}"),
            r"--sft-mock-dataset-config-json is for made-up data; add --mock-data",
        ),
        (
            ("--mock-data", "--varlen-mock-dataset-config-json", "{}"),
            r"--varlen-mock-dataset-config-json means nothing without --use-varlen-dataset",
        ),
        (
            (*_DATA, "--dataloader-fast-cache-load"),
            r"--dataloader-fast-cache-load needs a finished cache: give --data-cache-path DIR",
        ),
        (
            (*_DATA, "--dataloader-defer-npy-index-mmap"),
            r"--dataloader-defer-npy-index-mmap needs a finished cache",
        ),
        (_DATA, r"--seq-length is missing: the tokens of a sample, such as 4096"),
        (
            (*_DATA, "--seq-length", "8", "--encoder-seq-length", "8"),
            r"--seq-length and --encoder-seq-length are one; leave one out",
        ),
        (
            (*_DATA, "--seq-length", "8", "--train-iters", "8", "--train-samples", "8"),
            r"--train-iters and --train-samples exclude each other",
        ),
        (
            (*_DATA, "--dataset", "t5", "--seq-length", "8"),
            r"--dataset t5 needs --decoder-seq-length",
        ),
    ],
)
def test_flags_that_exclude_each_other(parse, flags, message):
    with pytest.raises(ValueError, match=message):
        datasets_from_args(parse(*flags))


def test_counts_that_are_none(write_pair, parse, tmp_path):
    path = tmp_path / "counts.json"
    flags = ("--data-path", write_pair("a"), *NULL, *SIZES, "--per-dataset-sequences-path", path)
    path.write_text("[1")
    with pytest.raises(ValueError, match=r"counts.json is not JSON"):
        data_plan(parse(*flags))
    path.write_text("[1]")
    with pytest.raises(ValueError, match=r"holds no object; `coredata sequences` writes one"):
        data_plan(parse(*flags))
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"a is not among its 0 prefixes"):
        datasets_from_args(parse(*flags))


def test_a_parser_that_has_one_of_the_flags():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed")
    with pytest.raises(argparse.ArgumentError, match=r"conflicting option string: --seed"):
        add_data_arguments(parser)


def test_ranks_and_tokenizer_of_the_caller(write_pair, parse, tmp_path):
    tokenizer = coredata.load_tokenizer("NullTokenizer", vocab_size=2000)
    args = parse("--data-path", write_pair("a"), *SIZES, "--data-cache-path", tmp_path / "c")
    train = datasets_from_args(
        args, sizes=[3, 0, 0], tokenizer=tokenizer, ranks=datasets.SingleProcess()
    )[0]
    assert train.num_samples == 3
    assert train.config.tokenizer is tokenizer


def test_bert_and_t5(write_pair, parse):
    base = ("--data-path", write_pair("a"), "--split", "1", *SIZES, "--no-masking-full-word")
    t5 = (*base, "--dataset", "t5", "--decoder-seq-length", 12, "--mask-prob", 0.2)
    with pytest.raises(ValueError, match="tokenizer"):
        data_plan(parse(*t5, *NULL), tokenizer=demo_tokenizer())
    bert = parse(*base, "--dataset", "bert", "--bert-no-binary-head", "--short-seq-prob", 0.3)
    assert not bert.bert_binary_head
    assert bert.short_seq_prob == 0.3
    assert dataset_class(bert)[0] is datasets.BERTMaskedWordPieceDataset
    assert dataset_class(parse(*t5))[0] is datasets.T5MaskedWordPieceDataset
    fields = config_fields(bert)
    assert fields["short_sequence_probability"] == 0.3
    assert not fields["classification_head"]
    assert not fields["masking_do_full_word"]
    fields = config_fields(parse(*t5, "--masking-word-start", "▁"))
    assert (fields["sequence_length_decoder"], fields["masking_probability"]) == (12, 0.2)
    assert fields["masking_word_start"] == "▁"


def test_errors_of_the_configuration_name_the_flag(write_pair, parse):
    base = ("--data-path", write_pair("a"), *SIZES)
    for flags, message in (
        ((*NULL, "--split", "1", "--seed", -1), r"random_seed: got -1, need .* \(flag: --seed\)"),
        ((*NULL, "--split", "9;1"), r"9;1.*"),
        (
            (*NULL, "--split", "1", "--num-dataset-builder-threads", 0),
            r"got 0, need at least 1 \(flag: --num-dataset-builder-threads\)",
        ),
        (
            (*NULL, "--split", "1", "--dataset", "bert", "--mask-prob", 2),
            r"\(flag: --.*\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            data_plan(parse(*base, *flags))


def test_a_file_of_counts_that_is_not_there(write_pair, parse, tmp_path):
    (tmp_path / "counts.json").touch()
    flags = ("--data-path", write_pair("a"), *NULL, *SIZES)
    with pytest.raises(
        FileNotFoundError,
        match=r"--per-dataset-sequences-path: there is no file .* Did you mean .*counts.json\?",
    ):
        data_plan(parse(*flags, "--per-dataset-sequences-path", tmp_path / "count.json"))


def test_samples_are_whole_numbers(parse):
    args = parse("--mock-data", *SIZES, *NULL)
    for wrong in (8.5, -1, "8"):
        text = f"sizes: {wrong!r} samples; need whole numbers of at least 0"
        with pytest.raises(ValueError, match=re.escape(text)):
            check_counts([wrong, 0, 0])
    check_counts([np.int64(8), None, 0])
    with pytest.raises(ValueError, match="sizes: -1 samples"):
        data_plan(args, sizes=[-1, 0, 0])
