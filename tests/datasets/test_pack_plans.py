"""Packing plans of a run in the cache: as made, for what they were made for, and checked."""

import json
import os
import pickle
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.datasets import (
    BlendedDataset,
    BlendedMegatronDatasetBuilder,
    CachedSchedule,
    CachedWindows,
    IndexCacheError,
    IndexCacheWarning,
    KeptPlans,
    ReadWindows,
    Schedule,
    ScheduleWindows,
    SFTDataset,
    SFTDatasetConfig,
    VarlenDataset,
    VarlenDatasetConfig,
    WithoutSamples,
    cached_lengths,
    padded_lengths,
)
from coredata.sampling import HybridCPMegatronPretrainingSampler
from coredata.testing import numbered_dataset
from coredata.text import ByteConversationTokenizer
from coredata.varlen import OVERFLOWS, PACKERS, PackWindows, dp_balanced

S = 48


def chat(number):
    answer = "a" * (1 + 7 * number % 11)
    turns = [{"role": "user", "content": "q" * (number % 5)}]
    return [*turns, {"role": "assistant", "content": answer}]


def two_chats(number):
    system = {"role": "system", "content": ""}
    return [turn for n in (number, number + 3) for turn in (system, *chat(n))]


def write_rows(path, count, make=chat, first=0):
    rows = ({"messages": make(first + i)} for i in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path):
    return [write_rows(tmp_path / "a.jsonl", 20), write_rows(tmp_path / "b.jsonl", 9, first=50)]


def build(files, cache, samples=50, kind=VarlenDataset, **options):
    config = (VarlenDatasetConfig if kind is VarlenDataset else SFTDatasetConfig)(
        random_seed=1,
        sequence_length=S,
        tokenizer=ByteConversationTokenizer(),
        blend=(files, [1.0] * len(files) if len(files) > 1 else None),
        split="1",
        path_to_cache=None if cache is None else str(cache),
        **options,
    )
    return BlendedMegatronDatasetBuilder(kind, [samples, None, None], config=config).build()[0]


@pytest.fixture
def planned(monkeypatch):
    """Every window that is planned, by class, and every row that is tokenised for it."""
    counted = []

    def count(cls, name):
        real = getattr(cls, name)

        def counting(self, *arguments):
            counted.append(cls.__name__)
            return real(self, *arguments)

        monkeypatch.setattr(cls, name, counting)

    for cls in (PackWindows, ReadWindows, ScheduleWindows):
        count(cls, "plan")
    count(VarlenDataset, "padded_lengths")
    return counted


def digests(windows):
    return [windows.plan(number).digest for number in range(len(windows))]


@given(
    st.lists(st.integers(0, 20), max_size=40),
    st.integers(1, 9),
    st.sampled_from(PACKERS),
    st.sampled_from(OVERFLOWS[1:]),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_kept_plans_are_those_that_were_made(lengths, window, packer, overflow, segments):
    windows = PackWindows(np.array(lengths, np.int64), 12, window, packer, segments, overflow)
    made = [windows.plan(number) for number in range(len(windows))]
    kept = KeptPlans.of(made, 12)
    assert [kept.plan(number) for number in range(len(kept))] == made
    assert [kept.plan(n).lost_samples for n in range(len(kept))] == [p.lost_samples for p in made]
    assert all(kept.plan(n).segments.samples.dtype == np.int64 for n in range(len(kept)))


def test_numbers_beyond_32_bits_are_kept():
    far = 2**31
    plan = dp_balanced(np.array([3, 4]), 8, 1, samples=np.array([far - 1, far]))
    kept = KeptPlans.of([plan], 8)
    assert kept.segments.dtype == np.int64
    assert kept.plan(0) == plan
    edge = dp_balanced(np.array([3]), 8, 1, samples=np.array([far - 1]))
    assert KeptPlans.of([edge], 8).segments.dtype == np.int32
    assert KeptPlans.of([edge], 8).plan(0) == edge


@pytest.mark.parametrize("blended", [False, True])
@pytest.mark.parametrize("kind", [VarlenDataset, SFTDataset])
def test_the_second_start_plans_nothing(files, tmp_path, planned, kind, blended):
    if kind is SFTDataset:
        write_rows(tmp_path / "a.jsonl", 20, two_chats)
    files = files if blended else files[:1]
    dataset = build(files, tmp_path / "cache", kind=kind)
    assert isinstance(dataset, BlendedDataset) == blended
    options = (64, 8, "best_fit_decreasing", 3, "error")
    wanted = digests(ReadWindows(dataset, *options))
    assert len(wanted) == 7
    first = CachedWindows(dataset, *options)
    planned.clear()
    assert digests(first) == wanted
    assert planned.count("PackWindows" if kind is VarlenDataset else "ReadWindows") == 7
    assert planned.count("VarlenDataset") == (len(files) if kind is VarlenDataset else 0)
    assert len(pickle.dumps(first)) == len(pickle.dumps(CachedWindows(dataset, *options)))
    planned.clear()
    for again in (
        CachedWindows(build(files, tmp_path / "cache", kind=kind), *options),
        CachedWindows(build(files, tmp_path / "cache", kind=kind, fast_cache_load=True), *options),
        pickle.loads(pickle.dumps(first)),
    ):
        assert digests(again) == wanted
    assert planned == []
    assert digests(CachedWindows(build(files, None, kind=kind), *options)) == wanted
    assert planned


def test_a_segment_of_a_pack_is_a_conversation(tmp_path):
    rows = write_rows(tmp_path / "two.jsonl", 6, two_chats)
    sft = CachedWindows(build([rows], tmp_path / "cache", kind=SFTDataset, samples=None), 64)
    assert not sft.whole
    assert set(sft.plan(0).segments.offsets.tolist()) > {0}
    varlen = CachedWindows(build([rows], tmp_path / "cache", samples=None), 64)
    assert varlen.whole
    assert not varlen.plan(0).segments.offsets.any()


def test_lengths_of_rows_blends_and_parts(files, tmp_path, planned):
    blend = build(files, tmp_path / "cache")
    wanted = [len(blend[number]["tokens"]) for number in range(len(blend))]
    assert len(set(wanted)) > 3
    assert padded_lengths(blend).tolist() == wanted
    part = WithoutSamples(blend, [0, 7, 8])
    assert padded_lengths(part).tolist() == [n for i, n in enumerate(wanted) if i not in (0, 7, 8)]
    assert planned.count("VarlenDataset") == 2
    one = build(files[:1], tmp_path / "cache", samples=45)
    np.testing.assert_array_equal(cached_lengths(one), one.padded_lengths(range(45)))
    assert padded_lengths(build(files, None, kind=SFTDataset)) is None
    longer = cached_lengths(build(files[:1], tmp_path / "cache", samples=70))
    assert len(longer) == 70
    assert planned.count("VarlenDataset") == 3, "a longer run tokenises no row again"


def test_what_changes_a_plan_changes_its_key(files, tmp_path):
    cache = tmp_path / "cache"
    dataset = build(files, cache)

    def key(windows):
        return windows.cache().path("")

    base = CachedWindows(dataset, 64, 8, "first_fit", 3, "drop")
    schedule = Schedule(8, 64, 2)
    others = [
        CachedWindows(dataset, 65, 8, "first_fit", 3, "drop"),
        CachedWindows(dataset, 64, 9, "first_fit", 3, "drop"),
        CachedWindows(dataset, 64, 8, "best_fit", 3, "drop"),
        CachedWindows(dataset, 64, 8, "first_fit", None, "drop"),
        CachedWindows(dataset, 64, 8, "first_fit", 3, "split"),
        CachedWindows(build(files, cache, samples=51), 64, 8, "first_fit", 3, "drop"),
        CachedWindows(build(files[:1], cache), 64, 8, "first_fit", 3, "drop"),
        CachedWindows(build(files, cache, sequence_parallel_size=2), 64, 8, "first_fit", 3, "drop"),
        CachedWindows(WithoutSamples(dataset, [3]), 64, 8, "first_fit", 3, "drop"),
        CachedWindows(build(files, cache, kind=SFTDataset), 64, 8, "first_fit", 3, "drop"),
        CachedSchedule(dataset, schedule),
        CachedSchedule(dataset, Schedule(8, 64, 4)),
        CachedSchedule(dataset, Schedule(8, 64, 2, 2)),
        CachedSchedule(dataset, Schedule(8, 32, 2, 1, 2)),
        CachedSchedule(dataset, Schedule(8, 64, 2, 1, 1, 2)),
    ]
    keys = {key(windows) for windows in (base, *others)}
    assert len(keys) == len(others) + 1
    assert key(CachedWindows(build(files, cache), 64, 8, "first_fit", 3, "drop")) in keys
    # The same number of bytes and rows, at another time.
    os.utime(files[1], ns=(1, 1))
    assert key(CachedWindows(build(files, cache), 64, 8, "first_fit", 3, "drop")) not in keys


def test_a_rewritten_file_is_tokenised_again(tmp_path):
    path = tmp_path / "a.jsonl"
    write_rows(path, 20)
    before = padded_lengths(build([str(path)], tmp_path / "cache", samples=None))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(reversed(lines)))
    after = padded_lengths(build([str(path)], tmp_path / "cache", samples=None))
    np.testing.assert_array_equal(after, before[::-1])
    assert after.tolist() != before.tolist()


def damage(cache, name, change):
    (path,) = cache.glob(f"*-PackPlans-train-{name}")
    change(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-8]),
        lambda path: path.write_bytes(path.read_bytes()[:-8] + b"\1" * 8),
        lambda path: path.unlink(),
    ],
)
@pytest.mark.parametrize("name", ["segments.npy", "row_splits.npy", "windows.npy"])
def test_damaged_plans_are_made_again(files, tmp_path, planned, name, change):
    cache = tmp_path / "cache"
    dataset = build(files, cache)
    wanted = digests(CachedWindows(dataset, 64, 8))
    planned.clear()
    damage(cache, name, change)
    with pytest.warns(IndexCacheWarning, match="is damaged and is built again"):
        assert digests(CachedWindows(dataset, 64, 8)) == wanted
    assert planned.count("PackWindows") == 7
    assert "VarlenDataset" not in planned, "the lengths were kept"
    planned.clear()
    assert digests(CachedWindows(dataset, 64, 8)) == wanted
    assert planned == []


def rewrite(path, change):
    array = np.load(path)
    np.save(path, change(array))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("segments", lambda a: a[:, :2], "the arrays are int32"),
        ("segments", lambda a: a.astype(np.float32), "the arrays are float32"),
        ("segments", lambda a: a[:-1], "do not belong together"),
        ("segments", lambda a: a + np.array([0, 0, 60]), r"window 0: Row \d+ has \d+ tokens"),
        ("row_splits", lambda a: a + 1, "do not belong together"),
        ("row_splits", lambda a: a[:-1], "do not belong together"),
        ("row_splits", lambda a: a.astype(np.int32), "the arrays are"),
        ("windows", lambda a: a[:-1], "the run has 7 windows"),
        ("windows", lambda a: a[::-1].copy(), "do not belong together"),
    ],
)
def test_arrays_without_checksums_are_held_to_each_other(files, tmp_path, name, change, message):
    cache = tmp_path / "cache"
    dataset = build(files, cache)
    wanted = digests(CachedWindows(dataset, 64, 8))
    damage(cache, "checksums.json", lambda path: path.unlink())
    assert digests(CachedWindows(dataset, 64, 8)) == wanted
    damage(cache, f"{name}.npy", lambda path: rewrite(path, change))
    with pytest.warns(IndexCacheWarning, match=message):
        assert digests(CachedWindows(dataset, 64, 8)) == wanted


def test_a_directory_that_cannot_be_written(files, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    dataset = build(files, cache)
    wanted = digests(CachedWindows(dataset, 64, 8))
    monkeypatch.setattr(os, "makedirs", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13)))
    assert digests(CachedWindows(dataset, 64, 8)) == wanted
    with pytest.raises(IndexCacheError, match=r"cannot write the index cache in .*cache"):
        CachedWindows(dataset, 65, 8).open()


def test_files_appear_whole(files, tmp_path):
    cache = tmp_path / "cache"
    CachedWindows(build(files, cache), 64, 8).open()
    names = [path.name for path in cache.iterdir()]
    assert not [name for name in names if name.startswith(".")]
    assert sum("-PackPlans-train-" in name for name in names) == 6
    assert all(stat.S_ISREG(path.stat().st_mode) for path in cache.iterdir())


def test_without_samples_to_pack(files, tmp_path):
    dataset = WithoutSamples(build(files[:1], tmp_path / "cache", samples=4), [0, 1, 2, 3])
    for _ in range(2):
        windows = CachedWindows(dataset, 64, 8)
        assert len(windows) == len(windows.open()) == 0
        with pytest.raises(IndexError, match="There is no window 0; 0 are numbered from 0"):
            windows.plan(0)


def test_fast_loading_needs_finished_plans(files, tmp_path):
    cache = tmp_path / "cache"
    build(files, cache)
    fast = build(files, cache, fast_cache_load=True)
    with pytest.raises(FileNotFoundError, match="fast_cache_load and workers expect a finished"):
        CachedWindows(fast, 64, 8).open()


def test_other_datasets_have_no_plans_here():
    other = WithoutSamples(numbered_dataset(3), [])
    with pytest.raises(TypeError, match="plans are kept for SFTDataset, VarlenDataset and blends"):
        CachedWindows(other, 64).open()
    with pytest.raises(ValueError, match="window must be at least 1 sample, found 0"):
        CachedWindows(other, 64, 0)


@pytest.mark.parametrize("kind", [VarlenDataset, SFTDataset])
def test_schedules_are_those_of_the_samplers_ranks(files, tmp_path, kind, planned):
    if kind is SFTDataset:
        write_rows(tmp_path / "a.jsonl", 20, two_chats)
    dataset = build(files, tmp_path / "cache", samples=45, kind=kind)
    schedule = Schedule(12, 64, 3, 2)
    cached = CachedSchedule(dataset, schedule)
    assert len(cached) == 3
    samplers = [HybridCPMegatronPretrainingSampler(45, 0, 2, 12, rank, 3) for rank in range(3)]
    for step, taken in enumerate(zip(*samplers, strict=True)):
        samples = [dataset[int(number)] for numbers in taken for number in numbers]
        if kind is SFTDataset:
            lengths = [n for s in samples for n in np.diff(s["cu_seqlens"]).tolist() if n]
        else:
            lengths = [int(s["padded_seq_len"][0]) for s in samples]
        wanted = dp_balanced(np.array(lengths), 64, 3)
        assert cached.step(12 * (step + 1)) == wanted
    assert step == 2
    assert [cached.step(n) for n in (0, 11, 13, 48)] == [None] * 4
    planned.clear()
    again = CachedSchedule(build(files, tmp_path / "cache", samples=45, kind=kind), schedule)
    assert again.step(24) == cached.step(24)
    assert planned == []


def test_a_schedule_that_does_not_divide():
    with pytest.raises(ValueError, match=r"global_batch_size is 10, need a multiple of .* 2 × 3"):
        Schedule(10, 64, 3, 2)
