import inspect

import numpy as np
import pytest
from coredata_torch import (
    LoaderConfig,
    PlanMismatchError,
    PretrainingDataLoader,
    build_pretraining_data_loader,
    build_train_valid_test_data_iterators,
    check_agreement,
    torch_ranks,
)

from coredata.datasets.ranks import RankLostError, SingleProcess
from coredata.sampling import (
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.testing import numbered_dataset

CONFIG = LoaderConfig(micro_batch_size=2, data_parallel_rank=1, data_parallel_size=2)


def first_samples(loader, steps):
    return [int(next(loader)["tokens"][0, 0]) // 4 for _ in range(steps)]


@pytest.mark.parametrize(
    ("options", "validation", "expected"),
    [
        ({}, False, MegatronPretrainingSampler(97, 8, 2, 1, 2)),
        ({"drop_last": False}, True, MegatronPretrainingSampler(97, 8, 2, 1, 2, False)),
        (
            {"dataloader_type": "cyclic"},
            False,
            MegatronPretrainingRandomSampler(97, 8, 2, 1, 2, True),
        ),
        (
            {"dataloader_type": "cyclic", "data_sharding": False},
            False,
            MegatronPretrainingRandomSampler(97, 8, 2, 1, 2, False),
        ),
        (
            {"hybrid_context_parallel": True, "global_batch_size": 8},
            False,
            HybridCPMegatronPretrainingSampler(97, 8, 2, 8, 1, 2),
        ),
        ({"full_validation": "exact"}, True, MegatronFullValidationSampler(97, 1, 2, 0)),
        ({"full_validation": "padded"}, True, PaddedPretrainingSampler(97, 0, 2, 1, 2)),
        ({"full_validation": "exact"}, False, MegatronPretrainingSampler(97, 8, 2, 1, 2)),
    ],
)
def test_the_sampler_that_a_configuration_means(numbers, options, validation, expected):
    config = LoaderConfig(2, 1, 2, **options)
    loader = build_pretraining_data_loader(numbers, 8, config=config, validation=validation)
    assert loader.sampler == expected
    assert loader.consumed_samples == expected.consumed_samples


def test_options_reach_the_loader(numbers):
    config = LoaderConfig(2, num_workers=3, start_method="spawn", prefetch=4, pin_memory=False)
    loader = build_pretraining_data_loader(numbers, 0, config=config, repeat=True)
    found = (loader.num_workers, loader.start_method, loader.prefetch, loader.pin_memory)
    assert found == (3, "spawn", 4, False)
    assert loader.repeat


def test_no_dataset_and_external_loaders_pass_through():
    assert build_pretraining_data_loader(None, 0, config=CONFIG) is None
    mine = [1, 2, 3]
    config = LoaderConfig(2, dataloader_type="external")
    assert build_pretraining_data_loader(mine, 0, config=config) is mine
    iterators = build_train_valid_test_data_iterators(
        lambda sizes: (mine, [mine, None], None),
        [1, 1, 1],
        config=config,
        multiple_validation_sets=True,
    )
    assert iterators.train is mine
    assert iterators.valid == {"0": mine, "1": None}
    assert iterators.state_dict() == {}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"micro_batch_size": 0}, "micro_batch_size: 0 is below 1"),
        ({"data_parallel_rank": 2}, r"data_parallel_rank: 2 of data_parallel_size 2"),
        ({"global_batch_size": 6}, "6 is not a multiple.*8 would work"),
        ({"dataloader_type": "random"}, "need one of single, cyclic, external"),
        ({"full_validation": "yes"}, "need one of exact, padded, or None"),
        ({"hybrid_context_parallel": True}, "it needs a global_batch_size.*got None"),
        (
            {
                "hybrid_context_parallel": True,
                "global_batch_size": 8,
                "dataloader_type": "cyclic",
            },
            "dataloader_type 'single'; got 8 and 'cyclic'",
        ),
    ],
)
def test_configurations_out_of_range(options, text):
    base = {"micro_batch_size": 2, "data_parallel_rank": 1, "data_parallel_size": 2}
    with pytest.raises(ValueError, match=text):
        LoaderConfig(**{**base, **options})


def provider(valid):
    return lambda sizes: (numbered_dataset(sizes[0]), valid, numbered_dataset(sizes[2]))


def test_three_iterators_and_their_state(numbers):
    def make():
        return build_train_valid_test_data_iterators(
            provider(numbers),
            [40, 97, 20],
            config=CONFIG,
            consumed_train_samples=8,
            consumed_valid_samples=4,
        )

    iterators = make()
    train, valid, test = iterators
    assert first_samples(train, 2) == [10, 14]
    assert first_samples(valid, 1) == [6]
    assert first_samples(test, 1) == [2]
    state = iterators.state_dict()
    assert {k: v["consumed_samples"] for k, v in state.items()} == {
        "train": 16,
        "valid": 8,
        "test": 4,
    }
    again = make()
    again.load_state_dict(state)
    assert first_samples(again.train, 1) == [18]
    assert first_samples(again.valid, 1) == [10]
    again.close()
    iterators.close()
    assert train.closed
    assert test.closed


def test_several_validation_sets_have_a_counter_each():
    sets = {"code": numbered_dataset(12), "prose": numbered_dataset(20)}
    iterators = build_train_valid_test_data_iterators(
        provider(sets),
        [40, 8, 4],
        config=CONFIG,
        consumed_valid_samples={"code": 8, "prose": 12},
        multiple_validation_sets=True,
    )
    assert first_samples(iterators.valid["code"], 3) == [10, 2, 6]  # starts again after its end
    assert first_samples(iterators.valid["prose"], 1) == [14]
    counters = {k: v["consumed_samples"] for k, v in iterators.state_dict().items()}
    assert counters == {"train": 0, "test": 0, "valid.code": 8, "valid.prose": 16}
    with pytest.raises(ValueError, match=r"here are \['test', 'train', 'valid.code'"):
        iterators.load_state_dict({"train": {}})
    iterators.close()


@pytest.mark.parametrize(("kind", "steps"), [("exact", 4), ("padded", 2)])
def test_full_validation_reads_all_again_and_again(kind, steps):
    config = LoaderConfig(2, 0, 2, full_validation=kind)
    iterators = build_train_valid_test_data_iterators(
        provider(numbered_dataset(7)), [40, 7, 4], config=config, consumed_valid_samples=5
    )
    assert len(iterators.valid) == steps
    runs = [
        [
            b["tokens"][b["loss_mask"][:, 0] > 0, 0].tolist()
            for b in map(next, [iterators.valid] * steps)
        ]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    iterators.close()


def test_only_who_reads_has_iterators():
    def never(sizes):
        raise AssertionError("not to be called")

    found = build_train_valid_test_data_iterators(never, [1, 1, 1], config=CONFIG, reads=False)
    assert list(found) == [None, None, None]
    assert found.state_dict() == {}


def test_who_does_not_read_takes_the_runs_state(numbers):
    def make(reads):
        return build_train_valid_test_data_iterators(
            provider({"a": numbers}),
            [40, 97, 20],
            config=CONFIG,
            multiple_validation_sets=True,
            reads=reads,
        )

    state = make(True).state_dict()
    idle = make(False)
    idle.load_state_dict(state)
    idle.load_state_dict({})
    assert idle.state_dict() == {}
    with pytest.raises(ValueError, match="the loader state lacks version") as raised:
        idle.load_state_dict({**state, "valid.a": {}})
    assert raised.value.__notes__ == ["in the state of the loader valid.a; no loader was changed"]
    with pytest.raises(TypeError, match=r"a loader state is a dict.*got list"):
        idle.load_state_dict({"train": []})
    with pytest.raises(ValueError, match="the loader state has version 7"):
        idle.load_state_dict({"train": {**state["train"], "version": 7}})
    with pytest.raises(TypeError, match=r"the state of a run is a dict of its loaders.*NoneT"):
        inspect.unwrap(type(idle).load_state_dict)(idle, None)


def test_a_run_is_loaded_whole_or_not_at_all(numbers):
    """The last of the loaders cannot take its state: the first stays where it is."""

    def make(valid):
        return build_train_valid_test_data_iterators(
            provider(valid), [40, 97, 20], config=CONFIG, multiple_validation_sets=True
        )

    before = make({"a": numbers, "b": numbers})
    first_samples(before.train, 2)
    state = before.state_dict()
    wrong = {
        "of other data": {**state["valid.b"], "fingerprint": {}},
        "too far": {**state["valid.b"], "consumed_samples": 98},
        "of no place": {**state["valid.b"], "place": -1},
    }
    after = make({"a": numbers, "b": numbers})
    first_samples(after.train, 1)
    for broken in wrong.values():
        with pytest.raises(ValueError, match=r"saved over|98 of 97|place is -1") as raised:
            after.load_state_dict({**state, "valid.b": broken})
        assert "valid.b; no loader was changed" in raised.value.__notes__[0]
        assert after.train.consumed_samples == 4
    after.valid["b"].close()
    with pytest.raises(RuntimeError, match="is closed, so its position cannot be changed"):
        after.load_state_dict(state)
    assert first_samples(after.train, 1) == [6]
    before.close()
    after.close()


@pytest.mark.parametrize(
    ("valid", "options", "text"),
    [
        ([1, 2], {}, "multiple_validation_sets is False.*2 validation sets; set it to True"),
        (numbered_dataset(4), {"multiple_validation_sets": True}, "one validation set; set it to"),
        (numbered_dataset(4), {"consumed_valid_samples": {"a": 4}}, "give one number"),
        (
            {"a": numbered_dataset(4)},
            {"multiple_validation_sets": True, "consumed_valid_samples": 4},
            r"each of which has its own counter; give a dict with the keys \['a'\]",
        ),
        (
            {"a": numbered_dataset(4)},
            {"multiple_validation_sets": True, "consumed_valid_samples": {"b": 4}},
            r"counters for \['b'\], but the validation sets are \['a'\]",
        ),
    ],
)
def test_validation_sets_that_do_not_fit(valid, options, text):
    with pytest.raises(ValueError, match=text):
        build_train_valid_test_data_iterators(provider(valid), [4, 4, 4], config=CONFIG, **options)


def test_a_provider_of_two():
    with pytest.raises(ValueError, match="gave 2 datasets, need train, valid and test"):
        build_train_valid_test_data_iterators(lambda sizes: (1, 2), [4, 4, 4], config=CONFIG)


class Talk:
    """Ranks of which the others have said something already."""

    rank, world_size, node_rank, builds = 0, 3, 0, True

    def __init__(self, *others):
        self.others = others

    def all_gather(self, message):
        return [message, *(self.others or [message])]


def test_processes_with_different_datasets(numbers):
    build_pretraining_data_loader(numbers, 0, config=CONFIG, ranks=SingleProcess())
    ranks = Talk('{"name": "numbers", "samples": 98, "seed": 1}', '{"name": "numbers"}')
    with pytest.raises(PlanMismatchError) as raised:
        build_pretraining_data_loader(numbers, 0, config=CONFIG, ranks=ranks)
    text = str(raised.value)
    assert "the dataset of rank 1, 2 of 3 is not that of rank 0" in text
    assert "samples: rank 0 has 97, rank 1 has 98" in text
    assert "seed: rank 0 has '(absent)', rank 1 has 1" in text
    check_agreement(Talk(), {"samples": np.int64(3)})


def _build(rank, kind):
    ranks = torch_ranks(timeout=10)
    data, broken = numbered_dataset(40), rank == 1

    def datasets(sizes):
        if kind == "provider" and broken:
            raise FileNotFoundError("no such file")
        valid = {"a": data, **({} if kind == "sets" and broken else {"b": data})}
        return data, valid, data

    if kind in ("none", "position"):
        dataset = None if kind == "none" and broken else data
        consumed = 41 if kind == "position" and broken else 0
        return build_pretraining_data_loader(dataset, consumed, config=CONFIG, ranks=ranks)
    found = build_train_valid_test_data_iterators(
        datasets, [40] * 3, config=CONFIG, multiple_validation_sets=True, ranks=ranks
    )
    return sorted(found.loaders())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("ok", None),
        ("none", ["rank 1 has '(absent)'"] * 2),
        ("sets", ["valid.b.samples: rank 0 has 40, rank 1 has '(absent)'"] * 2),
        (
            "provider",
            ["1 of 2 could not make its datasets: FileNotFoundError: no such f", "no such file"],
        ),
        ("position", ["1 of 2 could not make its dataset: ValueError: consumed_sam", "41 of 40"]),
    ],
)
def test_no_process_waits_for_one_that_could_not_build(run_ranks, kind, texts):
    found = run_ranks(_build, 2, kind, timeout=20)
    if texts is None:
        assert found == [["test", "train", "valid.a", "valid.b"]] * 2
        return
    for error, text in zip(found, texts, strict=True):
        assert not isinstance(error, RankLostError)
        assert text in str(error)


def test_a_loader_is_what_is_built(numbers):
    with build_pretraining_data_loader(numbers, 0, config=CONFIG) as loader:
        assert isinstance(loader, PretrainingDataLoader)
