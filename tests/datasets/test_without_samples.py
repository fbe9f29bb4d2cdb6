"""Skipped samples are passed over by every loader, as if the order did not contain them."""

import json
from itertools import islice

import numpy as np
import pytest
from coredata_torch import (
    LoaderConfig,
    PaddedToLongest,
    TorchBatchSampler,
    build_pretraining_data_loader,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig, WithoutSamples
from coredata.indices import Split
from coredata.loading import BatchLoader, StateMismatchError, state_with_skip_list
from coredata.sampling import (
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    SkipList,
)
from coredata.testing import assert_dataset_contract, numbered_dataset
from coredata.text import ByteTokenizer


def dataset(samples=40):
    """GPT samples whose tokens are all different, so that a token tells its sample."""
    tokens = np.arange(2 * samples + 1)
    source = ArraySource(tokens, np.array([len(tokens)]))
    config = GPTDatasetConfig(
        random_seed=1, sequence_length=2, split="1", blend=(["x"], None), tokenizer=ByteTokenizer()
    )
    return GPTDataset(source, None, np.arange(1, dtype=np.int32), None, Split.train, config)


def firsts(batches):
    """The first token of each sample, batch by batch."""
    return [np.asarray(batch["tokens"])[:, 0].tolist() for batch in batches]


def flat(lists):
    return [item for part in lists for item in part]


def everything(data):
    return data.get_batch(np.arange(len(data)))["tokens"][:, 0]


@given(st.sets(st.integers(0, 39), max_size=39))
def test_samples_are_those_kept(skipped):
    whole = dataset()
    view = WithoutSamples(whole, sorted(skipped))
    kept = [k for k in range(40) if k not in skipped]
    assert everything(view).tolist() == everything(whole)[kept].tolist()
    assert [int(item["tokens"][0]) for item in view.__getitems__(range(len(view)))] == (
        everything(whole)[kept].tolist()
    )
    assert view.original(np.arange(len(view))).tolist() == kept


def test_it_is_a_dataset():
    view = WithoutSamples(dataset(), SkipList.parse("0, 7-12, 39"))
    assert_dataset_contract(view)
    assert (view[None]["loss_mask"] == 0).all()
    padded = view.get_batch(np.array([-1, 0]))
    assert padded["loss_mask"].tolist() == [[0, 0], [1, 1]]
    with pytest.raises(IndexError, match=r"sample 32 was asked of a dataset of 40 samples of whi"):
        view[32]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_rank_skips_the_same_and_counts_the_same(ranks):
    view = WithoutSamples(dataset(), [3, 4, 5, 20])
    loaders = [
        BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 8 // ranks, rank, ranks))
        for rank in range(ranks)
    ]
    read, counts = [], set()
    for _ in range(4):
        rows = [firsts([next(loader)])[0] for loader in loaders]
        read.append(flat(rows))
        counts.add(tuple(loader.consumed_samples for loader in loaders))
    for loader in loaders:
        loader.close()
    expected = everything(view)[:32].reshape(4, 8)
    assert read == expected.tolist()
    assert counts == {(8 * k,) * ranks for k in range(1, 5)}


def test_resume_is_exact_on_other_ranks_and_in_other_frameworks():
    view = WithoutSamples(dataset(), [3, 4, 5, 20])
    with BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 4, 0, 2)) as loader:
        next(loader)
        state = json.loads(json.dumps(loader.state_dict()))
    assert state["fingerprint"]["skipped_samples"] == "3-5,20"
    expected = everything(view)[8:].tolist()
    with BatchLoader(view, GlobalBatchSampler(len(view), 0, 4)) as loader:
        loader.load_state_dict(state)
        assert flat(firsts(loader)) == expected
    config = LoaderConfig(micro_batch_size=4, data_parallel_rank=0, data_parallel_size=1)
    torch_loader = build_pretraining_data_loader(view, 0, config=config)
    torch_loader.load_state_dict(state)
    assert flat(firsts(torch_loader)) == expected
    torch_loader.close()


def test_a_state_with_another_list_is_refused():
    whole = dataset()

    def loader(*skip):
        view = WithoutSamples(whole, skip) if skip else whole
        return BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 4, 0, 1))

    state = loader(3, 4).state_dict()
    loader(3, 4).load_state_dict(state)
    text = r'skipped_samples: the state has "3-4", this loader has "3,5"'
    with pytest.raises(StateMismatchError, match=text):
        loader(3, 5).load_state_dict(state)
    text = r'skipped_samples: the state has "3-4", this loader has \(absent\)'
    with pytest.raises(StateMismatchError, match=text):
        loader().load_state_dict(state)
    text = r'skipped_samples: the state has \(absent\), this loader has "3-4"'
    with pytest.raises(StateMismatchError, match=text):
        loader(3, 4).load_state_dict(loader().state_dict())


def test_storage_is_told_of_the_samples_that_will_be_read():
    class Told:
        def __init__(self):
            self.samples = []

        def __len__(self):
            return 10

        def prefetch(self, indices):
            self.samples += indices.tolist()

        def __getitem__(self, index):
            raise NotImplementedError

        def fingerprint(self):
            return {}

        __getitems__ = get_batch = __getitem__

    told = Told()
    WithoutSamples(told, [1, 4]).prefetch(np.array([0, 1, 2, 3, -1]))
    assert told.samples == [0, 2, 3, 5, -1]
    WithoutSamples(numbered_dataset(5), [1]).prefetch(np.array([0]))


def test_an_empty_list_changes_nothing():
    whole = dataset()
    view = WithoutSamples(whole, [])
    assert view.fingerprint() == whole.fingerprint()
    assert everything(view).tolist() == everything(whole).tolist()


def test_a_cyclic_order_shuffles_what_is_kept():
    view = WithoutSamples(dataset(), range(10, 20))
    sampler = MegatronPretrainingRandomSampler(len(view), 0, 5, 0, 1, False)
    with BatchLoader(view, sampler) as loader:
        epochs = [flat(firsts(islice(loader, 6))) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [sorted(everything(view).tolist())] * 2
    assert epochs[0] != epochs[1]


def test_numbers_that_there_are_not():
    text = (
        r"skip: sample 40 is to be skipped, but the dataset has 40 samples, numbered 0 to 39\. Is"
    )
    with pytest.raises(IndexError, match=text):
        WithoutSamples(dataset(), [40])
    with pytest.raises(ValueError, match="samples: -1 is negative"):
        WithoutSamples(dataset(), [-1])


@pytest.mark.parametrize("around", [lambda data: data, PaddedToLongest])
def test_a_second_list_is_refused(around):
    """Its numbers would be others, and a state would not tell the first list."""
    once = around(WithoutSamples(dataset(), [0, 1, 7]))
    with pytest.raises(ValueError, match=r"is without samples already \(0-1,7\)") as raised:
        WithoutSamples(once, [2, 3])
    text = str(raised.value)
    assert "a second list (2-3) would count what is left" in text
    assert "SkipList.parse('0-3,7'), over the dataset beneath" in text
    assert "--skip-samples" in text
    with pytest.raises(ValueError, match=r"a second list \(none\)"):
        WithoutSamples(once, [])
    with pytest.raises(ValueError, match=r"already \(0,2,4,.{190,200}, …\), and a second list"):
        WithoutSamples(WithoutSamples(dataset(400), range(0, 400, 2)), [1])
    with pytest.raises(ValueError, match=r"already \(none\), and a second list \(1\)"):
        WithoutSamples(WithoutSamples(dataset(), []), [1])


@settings(max_examples=40)
@given(
    st.sets(st.integers(0, 39), max_size=20),
    st.sets(st.integers(0, 39), max_size=20),
    st.integers(0, 40),
)
def test_a_state_goes_on_with_another_list_at_the_same_place(old, new, consumed):
    """What comes next is what lies beyond the last sample read, but for the new list."""
    whole = dataset()
    texts = everything(whole)

    def loader(skip):
        view = WithoutSamples(whole, sorted(skip))
        return BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 1, 0, 1), prefetch=0)

    with loader(old) as before, loader(new) as after:
        consumed = min(consumed, len(before))
        before.seek(consumed)
        after.load_state_dict(state_with_skip_list(before.state_dict(), SkipList.of(new)))
        kept = [k for k in range(40) if k not in old]
        place = kept[consumed - 1] + 1 if consumed else 0
        expected = [k for k in range(place, 40) if k not in new]
        assert flat(firsts(after)) == texts[expected].tolist()


SETS = st.sets(st.integers(0, 39), max_size=30)


@settings(max_examples=80)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("skip"), SETS),
            st.tuples(st.just("read"), st.integers(0, 6)),
            st.tuples(st.just("load"), st.booleans()),
        ),
        max_size=8,
    )
)
@example([("read", 6), ("read", 6), ("skip", {9, 10, 11, 12}), ("load", False), ("skip", set())])
@example([("read", 6), ("read", 6), ("skip", {9, 10, 11, 12}), ("load", True), ("skip", {3, 9})])
def test_lists_may_follow_each_other(acts):
    """A slow twin keeps the place itself: one more than the last sample that was read."""
    whole = dataset()
    texts = everything(whole)

    def loader(skip):
        view = WithoutSamples(whole, sorted(skip))
        return BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 1, 0, 1), prefetch=0)

    state = loader(()).state_dict()
    skip: set[int] = set()
    place = 0
    for act, value in acts:
        if act == "skip":
            skip = value
            state = json.loads(json.dumps(state_with_skip_list(state, SkipList.of(sorted(skip)))))
            continue
        with loader(skip) as batches:
            batches.load_state_dict(state)
            count = value if act == "read" else 0
            coming = [k for k in range(place, 40) if k not in skip][:count]
            assert flat(firsts(islice(batches, count))) == texts[coming].tolist()
            place = coming[-1] + 1 if coming else place
            if act == "load" and value:
                numbers = iter(TorchBatchSampler(batches.sampler, batches.dataset))
                numbers.load_state_dict(state)
                state = numbers.state_dict()
            else:
                state = batches.state_dict()
    with loader(skip) as batches:
        batches.load_state_dict(state)
        expected = [k for k in range(place, 40) if k not in skip]
        assert flat(firsts(batches)) == texts[expected].tolist()


def test_a_place_that_is_none():
    view = WithoutSamples(dataset(), [4, 5])
    with BatchLoader(view, MegatronPretrainingSampler(38, 0, 4, 0, 1)) as loader:
        next(loader)
        state = loader.state_dict()
    assert "place" not in state
    assert state_with_skip_list({**state, "place": 5}, SkipList())["consumed_samples"] == 5
    for place in (3, 7):
        text = f"before sample {place} of the whole dataset, but with consumed_samples 4 it is one "
        with pytest.raises(ValueError, match=text + "of 4 to 6"):
            state_with_skip_list({**state, "place": place}, SkipList())
    with pytest.raises(ValueError, match=r"the loader state's place is 4\.5, expected a whole num"):
        loader_of(view).load_state_dict({**state, "place": 4.5})


def loader_of(view):
    return BatchLoader(view, MegatronPretrainingSampler(len(view), 0, 4, 0, 1))


def test_states_that_cannot_go_on_with_another_list():
    view = WithoutSamples(dataset(), [1])
    with BatchLoader(view, MegatronPretrainingRandomSampler(39, 0, 3, 0, 1, False)) as loader:
        state = loader.state_dict()
    with pytest.raises(ValueError, match=r"the state is of the order 'random'; only a sequential"):
        state_with_skip_list(state, SkipList())
    with BatchLoader(view, MegatronPretrainingSampler(39, 0, 3, 0, 1)) as loader:
        state = loader.state_dict()
    with pytest.raises(ValueError, match=r"sample 40 is to be skipped, but the dataset has 40 sam"):
        state_with_skip_list(state, SkipList.of([40]))
    with pytest.raises(ValueError, match="the loader state lacks version, consumed_samples, fing"):
        state_with_skip_list({}, SkipList())
