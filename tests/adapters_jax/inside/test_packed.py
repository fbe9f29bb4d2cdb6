"""Rows of several samples: as laid out by hand, on any mesh, stopped and continued anywhere."""

import json
import pickle
from itertools import islice, pairwise

import numpy as np
import pytest
from coredata_jax import (
    PackedBatches,
    PackedRows,
    PlanMismatchError,
    Plans,
    RowSampler,
    check_same_plan,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec
from meshes import Told, as_numpy, mesh_of
from ragged import Ragged, by_hand, ragged

from coredata.datasets import (
    ItemList,
    ReadWindows,
    SFTDataset,
    SFTDatasetConfig,
    VarlenDataset,
    VarlenDatasetConfig,
)
from coredata.indices import Split
from coredata.loading import BatchLoader, StateMismatchError
from coredata.testing import assert_resume_exact, assert_same_batch
from coredata.text import ByteConversationTokenizer
from coredata.varlen import PACKERS, PackWindows, RowPosition

LIMIT, SEGMENTS = 16, 4
MESH = mesh_of(data=4, model=2)


@st.composite
def cases(draw):
    """Samples, how they are packed, and the size of a batch."""
    original = draw(st.lists(st.integers(1, 14), max_size=25))
    multiple = draw(st.sampled_from([1, 1, 2, 4]))
    dataset = Ragged(original, [-(-n // multiple) * multiple for n in original])
    overflow = draw(st.sampled_from(["split", "truncate", "drop"]))
    packer, window = draw(st.sampled_from(PACKERS)), draw(st.integers(1, 9))
    options = (draw(st.integers(4, 12)), window, packer, draw(st.integers(1, 4)), overflow)
    return dataset, PackWindows(np.array(dataset.padded, np.int64), *options)


def expected(dataset, windows, rows, drop_last):
    plans = [plan for plan, _ in windows.batches(rows, drop_last=drop_last)]
    return [by_hand(dataset, plan, windows.max_segments) for plan in plans]


def loader(dataset, windows, rows, drop_last):
    plans = Plans(windows)
    packed = PackedRows(dataset, plans, windows.max_segments, whole=True)
    return BatchLoader(packed, RowSampler(plans, rows, 0, drop_last), prefetch=0)


@settings(max_examples=100)
@given(cases(), st.integers(1, 5), st.booleans())
def test_rows_are_as_laid_out_by_hand(case, rows, drop_last):
    wanted = expected(*case, rows, drop_last)
    with loader(*case, rows, drop_last) as batches:
        assert len(batches) == len(wanted)
        for step, batch in enumerate(batches):
            assert_same_batch(batch, wanted[step], f"batch {step}")
            assert len(batches) == len(wanted) - step - 1
        assert step + 1 == len(wanted) if wanted else len(batches) == 0


@settings(max_examples=40)
@given(cases(), st.integers(1, 4), st.integers(1, 4), st.data())
def test_a_run_stops_anywhere_and_goes_on_with_batches_of_another_size(case, rows, other, data):
    with loader(*case, rows, False) as batches:
        count = len(batches)
        stop = data.draw(st.integers(0, count))
        before = list(islice(batches, stop))
        state = json.loads(json.dumps(batches.state_dict()))
    with loader(*case, other, False) as batches:
        batches.load_state_dict(state)
        after = list(batches)
    (whole,) = expected(*case, 1000, False) or [None]
    if whole is None:
        return
    found = {name: np.concatenate([batch[name] for batch in before + after]) for name in whole}
    used = whole["cu_seqlens_padded"][:, -1] > 0
    kept = found["cu_seqlens_padded"][:, -1] > 0
    assert_same_batch(
        {name: array[kept] for name, array in found.items()},
        {name: array[used] for name, array in whole.items()},
        f"stopped at {stop}",
    )


GRID = {
    "one device": ({"data": 1}, None, False),
    "data": ({"data": 8}, None, False),
    "data x model": ({"data": 4, "model": 2}, None, False),
    "sequence": ({"data": 2, "sequence": 4}, "sequence", False),
    "balanced": ({"data": 2, "model": 2, "sequence": 2}, "sequence", True),
}
SAMPLES = ragged(3, multiple=2)
LENGTHS = np.array(SAMPLES.padded)
WINDOWS = PackWindows(LENGTHS, LIMIT, 10, max_segments=SEGMENTS)


def narrow(batch):
    """With 64-bit integers as 32."""
    return {k: v.astype(np.int32) if v.dtype == np.int64 else v for k, v in batch.items()}


def packed(mesh=MESH, dataset=SAMPLES, axis=None, balanced=False, size=8, **options):
    options = {"max_segments": SEGMENTS, "lengths": LENGTHS, "window": 10, **options}
    return PackedBatches(
        dataset, size, LIMIT, mesh, "data", axis, load_balanced=balanced, **options
    )


def on(case, **options):
    axes, axis, balanced = GRID[case]
    return packed(mesh_of(**axes), axis=axis, balanced=balanced, **options)


def host(batches, batch):
    """A global batch in the order of the text."""
    back = batches.sequence_order(LIMIT).inverse
    whole = as_numpy(batch)
    return {k: v if k.startswith("cu") else v[:, back] for k, v in whole.items()}


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("case", GRID)
def test_global_batches_have_fixed_shapes_on_every_mesh(case, drop_last):
    wanted = expected(SAMPLES, WINDOWS, 8, drop_last)
    with on(case, drop_last=drop_last) as batches:
        found = list(batches)
        assert len(found) == len(wanted) > 2
        for step, batch in enumerate(found):
            assert {v.shape for k, v in batch.items() if k.startswith("cu")} == {(8, SEGMENTS + 1)}
            assert {v.shape for k, v in batch.items() if not k.startswith("cu")} == {(8, LIMIT)}
            assert_same_batch(host(batches, batch), narrow(wanted[step]), f"step {step}")
        assert found[0]["tokens"].sharding == batches.sharding
        assert found[0]["cu_seqlens"].sharding.spec == PartitionSpec("data")
        assert batches.consumed_samples == len(SAMPLES) or drop_last


@pytest.mark.parametrize("number", range(len(GRID)))
def test_a_run_moves_to_another_mesh(number):
    random = np.random.default_rng(number)
    before, after = list(GRID)[number], list(GRID)[int(random.integers(len(GRID)))]
    wanted = expected(SAMPLES, WINDOWS, 8, False)
    stop = int(random.integers(1, len(wanted)))
    with on(before, drop_last=False) as batches:
        assert len(list(islice(batches, stop))) == stop
        state = json.loads(json.dumps(batches.get_state()))
    with on(after, drop_last=False) as batches:
        batches.set_state(state)
        assert batches.state_dict() == state
        found = [host(batches, batch) for batch in batches]
    assert len(found) == len(wanted) - stop
    for step, batch in enumerate(found):
        assert_same_batch(batch, narrow(wanted[stop + step]), f"{before} to {after}, step {step}")


@pytest.mark.parametrize("device_prefetch", [0, 2])
def test_resume_is_exact_at_every_step(device_prefetch):
    assert_resume_exact(lambda: packed(device_prefetch=device_prefetch, drop_last=False), 9)


def test_only_the_samples_of_its_rows_are_read_where_lengths_are_given():
    watched = ragged(3, multiple=2)
    with packed(dataset=watched, prefetch=0, device_prefetch=0) as batches:
        next(batches)
    plan, _ = next(WINDOWS.batches(8))
    assert watched.reads == sorted(plan.segments.samples.tolist())


def test_without_lengths_windows_are_read_once_to_know_them():
    watched = ragged(3, multiple=2)
    with packed(dataset=watched, lengths=None, prefetch=0, device_prefetch=0) as batches:
        found = [as_numpy(batch) for batch in batches]
    for step, batch in enumerate(expected(SAMPLES, WINDOWS, 8, True)):
        assert_same_batch(found[step], narrow(batch), f"step {step}")
    assert max(watched.reads.count(number) for number in range(60)) == 2


def test_seek_goes_to_the_start_of_a_window():
    with packed(size=4) as batches:
        first = as_numpy(next(batches))
        batches.seek(20)
        assert batches.position == RowPosition(2, 0)
        assert as_numpy(next(batches))["tokens"][0, 0] // 1000 - 1 == 20
        batches.rewind()
        assert_same_batch(as_numpy(next(batches)), first, "after rewind")


def chat(number):
    return [
        {"role": "system", "content": ""},
        {"role": "user", "content": "q" * (number % 5)},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def rows_of(kind, items, config):
    options = {"random_seed": 1, "sequence_length": 64, "tokenizer": ByteConversationTokenizer()}
    config = config(blend=(["x"], None), split="1", **options)
    return kind(ItemList(items), None, np.arange(len(items)), None, Split.train, config)


def pieces(batches):
    """The tokens of every segment of every row."""
    for batch in batches:
        whole = as_numpy(batch)
        for row, ids in enumerate(whole["segment_ids"]):
            for number in range(1, ids.max() + 1):
                yield whole["tokens"][row][ids == number].tolist()


def test_rows_of_conversations_of_varying_length():
    dataset = rows_of(VarlenDataset, [chat(i) for i in range(40)], VarlenDatasetConfig)
    with PackedBatches(
        dataset, 4, 256, MESH, max_segments=8, lengths=dataset.lengths, drop_last=False
    ) as batches:
        found = list(pieces(batches))
    with PackedBatches(dataset, 4, 256, MESH, max_segments=8, drop_last=False) as batches:
        assert list(pieces(batches)) == found
    wanted = [
        s["tokens"][: s["original_seq_len"][0]].tolist() for s in dataset.__getitems__([*range(40)])
    ]
    assert sorted(found) == sorted(wanted)


def test_packs_of_conversations_are_cut_apart():
    items = [[turn for k in range(i % 3 + 1) for turn in chat(i + k)] for i in range(20)]
    dataset = rows_of(SFTDataset, items, SFTDatasetConfig)
    wanted = []
    for sample in dataset.__getitems__([*range(20)]):
        bounds = sample["cu_seqlens"].tolist()
        wanted += [sample["tokens"][a:b].tolist() for a, b in pairwise(bounds)]
    wanted = [tokens for tokens in wanted if tokens]
    assert len(wanted) > 20
    with PackedBatches(dataset, 4, 64, MESH, max_segments=3, drop_last=False) as batches:
        assert sorted(pieces(batches)) == sorted(wanted)


def test_processes_with_other_lengths_differ():
    plans = [packed().plan(), packed(lengths=LENGTHS[::-1].copy()).plan(), packed().plan()]
    with pytest.raises(PlanMismatchError, match="rows: process 1 has") as caught:
        check_same_plan(packed(), Told(plans))
    assert "process 1 of 3 differs from process 0" in str(caught.value)
    check_same_plan(packed(), Told([packed().plan()] * 3))


BAD = {
    "rows": ({"size": 6}, r"6 rows cannot be split evenly over 4 shards .* 8 would work"),
    "axis": ({"axis": "context"}, "sequence_axis: the mesh has no axis 'context'"),
    "segments": ({"max_segments": 0}, "max_segments is 0, expected 1 or more, such as 16"),
    "lengths": ({"lengths": LENGTHS[:7]}, "got 7 for a dataset of 60 samples; give one for each"),
    "window": ({"window": 0}, "window must be at least 1 sample, found 0"),
    "read window": ({"window": 0, "lengths": None}, "window must be at least 1 sample, found 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_settings_that_cannot_be(case):
    options, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        packed(**options)


def test_samples_that_are_not_as_long_as_was_said():
    with (
        packed(lengths=np.full(60, 2), prefetch=0) as batches,
        pytest.raises(ValueError, match=r"sample \d+ has \d+ tokens, but its length was given"),
    ):
        next(batches)
    with (
        packed(dataset=ragged(3, longest=40), lengths=None, prefetch=0) as batches,
        pytest.raises(ValueError, match="tokens, more than the 16 of a row"),
    ):
        next(batches)


def test_states_of_something_else():
    with packed(window=30) as batches:
        next(batches)
        state = batches.state_dict()
        assert state["packing"]["row"] > 0
    with packed(window=30) as batches:
        with pytest.raises(ValueError, match="packing None, expected a row and a plan"):
            batches.load_state_dict({k: v for k, v in state.items() if k != "packing"})
        with pytest.raises(ValueError, match=r"no window of 30 samples begins after 7\. 0 wo"):
            batches.load_state_dict({**state, "consumed_samples": 7})
        wrong = {**state, "packing": {**state["packing"], "row": -1}}
        with pytest.raises(ValueError, match=r"packing row is -1, expected 0 or more"):
            batches.load_state_dict(wrong)
        wrong = {**state, "packing": {**state["packing"], "row": 1.5}}
        with pytest.raises(TypeError, match=r"packing row: got 1\.5 of type float"):
            batches.load_state_dict(wrong)
        wrong = {**state, "packing": {**state["packing"], "row": 99}}
        with pytest.raises(ValueError, match=r"row=99\) lies in none of the 2 windows"):
            batches.load_state_dict(wrong)
    other = LENGTHS[np.random.default_rng(0).permutation(60)]
    with (
        packed(window=30, lengths=other) as batches,
        pytest.raises(StateMismatchError, match="are packed otherwise than when the state was"),
    ):
        batches.load_state_dict(state)
    with (
        packed(window=30, max_segments=5) as batches,
        pytest.raises(StateMismatchError, match=r"order\.max_segments: the state has 4, this"),
    ):
        batches.load_state_dict(state)


def test_after_close():
    batches = packed()
    next(batches)
    batches.close()
    state = batches.state_dict()
    with pytest.raises(RuntimeError, match=r"PackedBatches is closed \(at consumed_samples=20"):
        next(batches)
    for use in (lambda: batches.seek(0), batches.rewind, lambda: batches.load_state_dict(state)):
        with pytest.raises(RuntimeError, match=r"PackedBatches is closed, so its position"):
            use()


def test_a_start_with_kept_plans_plans_nothing(tmp_path, monkeypatch):
    rows = [
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a" * (i % 17)}]
        for i in range(50)
    ]

    def dataset():
        config = VarlenDatasetConfig(
            random_seed=1,
            sequence_length=64,
            tokenizer=ByteConversationTokenizer(),
            blend=(["x"], None),
            split="1",
            path_to_cache=str(tmp_path / "cache"),
            data_parallel_size=1,
            sequence_parallel_size=2,
        )
        return VarlenDataset(ItemList(rows), None, np.arange(50), 60, Split.train, config)

    def batches_of(**options):
        with PackedBatches(
            dataset(), 4, 80, MESH, max_segments=3, window=16, drop_last=False, **options
        ) as batches:
            found = [as_numpy(batch) for batch in batches]
            return found, batches.state_dict()

    wanted, end = batches_of(lengths=dataset().lengths)
    first, _ = batches_of(cached=True)
    planned = []
    for cls in (PackWindows, ReadWindows):
        monkeypatch.setattr(cls, "plan", lambda *arguments: planned.append(arguments))
    monkeypatch.setattr(VarlenDataset, "padded_lengths", planned.append)
    again, state = batches_of(cached=True)
    assert planned == []
    assert state == end
    assert len(wanted) == len(first) == len(again) > 4
    for step, batch in enumerate(wanted):
        assert_same_batch(first[step], batch, f"step {step}")
        assert_same_batch(again[step], batch, f"step {step}")
    with pytest.raises(ValueError, match="lengths and cached exclude each other; leave lengths"):
        batches_of(cached=True, lengths=dataset().lengths)
    with pytest.raises(TypeError, match="plans are kept for SFTDataset"):
        packed(lengths=None, cached=True)


def test_plans_are_pickled_as_their_windows():
    plans = pickle.loads(pickle.dumps(Plans(WINDOWS)))
    assert plans.plan(2) == WINDOWS.plan(2)
    rows = PackedRows(SAMPLES, Plans(ReadWindows(SAMPLES, LIMIT, 10, "first_fit", 4, "error")), 4)
    assert len(rows) == sum(rows.plans.facts(window).rows for window in range(6))
    assert_same_batch(rows[None], {k: v[0] for k, v in rows.get_batch(np.array([-1])).items()}, "")
    assert not rows[None]["segment_ids"].any()
    assert rows.__getitems__([0])[0]["tokens"][0] == 1000


def test_storage_is_told_of_the_samples_of_rows_to_come():
    class Hinted(Ragged):
        def prefetch(self, indices):
            hints.append(indices.tolist())

    hints = []
    with packed(dataset=Hinted(SAMPLES.original, SAMPLES.padded)) as batches:
        next(batches)
    plan, _ = next(WINDOWS.batches(8))
    assert hints[0] == sorted(plan.segments.samples.tolist())
