"""Packing over data-parallel x context-parallel ranks, in real processes."""

import json

import numpy as np
import pytest
import torch.distributed as dist
from coredata_torch import (
    PackedLoader,
    PackedShapes,
    PackingConfig,
    PeerFailedError,
    exchange,
    pack_across_ranks,
    packing,
    share_shapes,
)

from coredata.datasets import (
    CachedSchedule,
    ItemList,
    Schedule,
    VarlenDataset,
    VarlenDatasetConfig,
    pack_windows,
)
from coredata.indices import Split
from coredata.sampling import HybridCPMegatronPretrainingSampler
from coredata.testing import assert_same_batch
from coredata.text import ByteConversationTokenizer
from coredata.varlen import TokenCounts, dp_balanced, pack_samples
from coredata.varlen.microbatch import clear_padding

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

CONFIG = PackingConfig(max_seqlen_per_dp_cp_rank=16, context_parallel_size=2)


class Rows:
    """Sample k has 1 + 7 k % 13 tokens, padded to a multiple of 4."""

    def __len__(self):
        return 48

    def __getitem__(self, index):
        original = 1 + 7 * index % 13
        padded = -(-original // 4) * 4
        tokens = 100 * (index + 1) + np.arange(padded, dtype=np.int64)
        return {
            "tokens": tokens,
            "labels": tokens + 1,
            "loss_mask": np.ones(padded, np.float32),
            "position_ids": np.arange(padded),
            "original_seq_len": np.array([original], np.int32),
            "padded_seq_len": np.array([padded], np.int32),
        }

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        raise ValueError("samples of different lengths")

    def fingerprint(self):
        return {"name": "rows"}


def arrays(microbatches):
    return [{name: tensor.numpy() for name, tensor in pack.items()} for pack in microbatches]


def expected(indices_of_ranks, size):
    """Microbatches of each data-parallel rank, computed in one process."""
    samples = [Rows()[index] for indices in indices_of_ranks for index in indices]
    lengths = np.array([sample["padded_seq_len"][0] for sample in samples], np.int64)
    plan = dp_balanced(lengths, 16, size, 2)
    shares = [plan.share(rank, size) for rank in range(size)]
    packs = [
        [clear_padding(pack_samples([samples[n] for n in s[row].samples])) for row in range(len(s))]
        for s in shares
    ]
    return packs, TokenCounts(int(lengths.sum()), int((lengths**2).sum()))


def _sampler(rank, size):
    return HybridCPMegatronPretrainingSampler(48, 0, 2, 12, rank, size)


def _run(rank, size, context, state, count):
    """dp x cp processes, context-parallel ranks next to each other."""
    groups = [
        dist.new_group([place + context * number for number in range(size)])
        for place in range(context)
    ]
    loader = PackedLoader(Rows(), _sampler(rank // context, size), CONFIG, groups[rank % context])
    if state:
        loader.load_state_dict(json.loads(state))
    found = [next(loader) for _ in range(count)]
    return (
        [(arrays(step.microbatches), step.counts) for step in found],
        json.dumps(loader.state_dict()),
        len(list(loader)),
    )


def check(found, size, context, first):
    for rank, (steps, _, _) in enumerate(found):
        for number, (packs, counts) in enumerate(steps, start=first):
            indices = [list(_sampler(other, size))[number].tolist() for other in range(size)]
            wanted, total = expected(indices, size)
            assert counts == total
            assert len(packs) == len(wanted[rank // context])
            for pack, other in zip(packs, wanted[rank // context], strict=True):
                assert_same_batch(pack, other, f"rank {rank}, step {number}")


def test_every_rank_gets_its_packs_and_a_stop_loses_nothing(run_ranks):
    found = run_ranks(_run, 4, 2, 2, None, 2)
    check(found, 2, 2, 0)
    assert [left for _, _, left in found] == [2] * 4
    (state,) = {state for _, state, _ in found}
    assert json.loads(state)["consumed_samples"] == 24
    again = run_ranks(_run, 3, 3, 1, state, 2)
    check(again, 3, 1, 2)


def _scheduled(rank, size, context, cache, wrong):
    rows = varlen_rows(cache)
    groups = [
        dist.new_group([place + context * number for number in range(size)])
        for place in range(context)
    ]
    group = groups[rank % context]
    config = PackingConfig(64, context)
    sampler = HybridCPMegatronPretrainingSampler(46, 0, 2, 12, rank // context, size)
    made = CachedSchedule(rows, Schedule(12, wrong or 64, size, 2, context))
    made.open()
    dist.barrier()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "dp_balanced", None)  # planning would fail
        patch.setattr(pack_windows, "dp_balanced", None)
        loader = PackedLoader(rows, sampler, config, group, schedule=made)
        found = [arrays(step.microbatches) for step in loader]
    plain = [arrays(step.microbatches) for step in PackedLoader(rows, sampler, config, group)]
    assert len(found) == len(plain) == 3
    for step, (packs, others) in enumerate(zip(found, plain, strict=True)):
        for pack, other in zip(packs, others, strict=True):
            assert_same_batch(pack, other, f"rank {rank}, step {step}")
    return True


def varlen_rows(cache):
    """46 samples of 17 conversations of different lengths."""
    turns = [
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a" * (i + 1)}]
        for i in range(17)
    ]
    config = VarlenDatasetConfig(
        random_seed=1,
        sequence_length=40,
        tokenizer=ByteConversationTokenizer(),
        blend=(["x"], None),
        split="1",
        path_to_cache=str(cache),
        context_parallel_size=2,
    )
    return VarlenDataset(ItemList(turns), None, np.arange(17), 46, Split.train, config)


def test_a_kept_schedule_is_followed_and_nothing_planned(run_ranks, tmp_path):
    assert run_ranks(_scheduled, 4, 2, 2, tmp_path, None) == [True] * 4


def test_a_schedule_of_another_run_is_refused_by_all(run_ranks, tmp_path):
    for error in run_ranks(_scheduled, 2, 2, 1, tmp_path, 65):
        assert isinstance(error, ValueError)
        assert "packs of up to 65; here are 12 samples of" in str(error)
        assert "2 data-parallel ranks, and packs of up to 64. Give the schedule of" in str(error)


@pytest.mark.parametrize(
    ("lengths", "ranks"), [([4, 8, 4], 1), ([4, 8], 1), ([8, 4, 4, 4], 1), ([4, 4, 8, 4], 3)]
)
def test_a_plan_is_held_to_the_samples(lengths, ranks):
    plan = dp_balanced(np.array([4, 4, 8, 4]), 16, 2)
    with pytest.raises(ValueError, match=r"the plan has 4 samples of 20 tokens in 2 packs"):
        packing._check_plan(plan, np.array(lengths), ranks, 16)
    packing._check_plan(plan, np.array([4, 4, 8, 4]), 2, 16)


def _packs_or_failure(rank, kind):
    samples = [Rows()[index] for index in range(6)] if rank == 0 else []
    if kind == "broken" and rank == 1:
        samples = [{"tokens": np.arange(3)}]
    if kind == "long":
        samples = [Rows()[5]]
    if kind == "few":
        samples = [Rows()[0]] if rank == 0 else []
    if kind == "none":
        samples = []
    config = PackingConfig(4 if kind == "long" else 16)
    return arrays(pack_across_ranks(samples, config).microbatches)


def test_a_rank_without_samples_gets_packs_all_the_same(run_ranks):
    first, second = run_ranks(_packs_or_failure, 2, "ok")
    assert len(first) == len(second) > 0
    tokens = np.concatenate([pack["tokens"] for pack in first + second])
    assert len(np.unique(tokens[tokens > 0] // 100)) == 6


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("broken", ["rank 1 of the data-parallel group", "sample 0 neither"]),
        ("long", ["has a padded length of 12; a pack holds 1 to 4"] * 2),
        ("few", ["1 samples are not enough"] * 2),
        ("none", ["no rank has a sample to pack"] * 2),
    ],
)
def test_what_cannot_be_packed_is_heard_by_all(run_ranks, kind, texts):
    for error, text in zip(run_ranks(_packs_or_failure, 2, kind), texts, strict=True):
        assert isinstance(error, ValueError | PeerFailedError)
        assert text in str(error)


class Faulty(Rows):
    """Rank 1 cannot read sample 22, which is in its second step, until it is mended."""

    def __init__(self, rank):
        self.broken = rank == 1

    def __getitem__(self, index):
        if self.broken and index == 22:
            raise OSError("the disk is gone")
        return super().__getitem__(index)


class NoSchedule:
    """In place of a schedule: on rank 1 its file is gone."""

    def __init__(self, rank):
        self.rank = rank

    def step(self, consumed_samples):
        if self.rank == 1 and consumed_samples > 12:
            raise FileNotFoundError("the plan is gone")
        return None


def told(loader):
    try:
        return len(next(loader).microbatches)
    except (OSError, ValueError, RuntimeError) as error:
        return type(error).__name__, str(error), getattr(error, "__notes__", [])


def _one_fails(rank, kind):
    rows = Faulty(rank) if kind == "reading" else Rows()
    config = PackingConfig(17 if kind == "config" and rank == 1 else 16, 2)
    loader = PackedLoader(rows, _sampler(rank, 2), config)
    if kind == "schedule":
        loader.schedule = NoSchedule(rank)
    if kind == "state" and rank == 1:
        loader.seek(12)
    if kind == "end":
        loader.seek(48 if rank == 1 else 36)
    found = [told(loader) for _ in range(3)]
    consumed = loader.consumed_samples
    rows.broken, loader.schedule = False, None
    if kind in ("state", "end"):
        loader.seek(36)
    loader.config = CONFIG
    return found, consumed, told(loader)


@pytest.mark.parametrize(
    ("kind", "first", "error", "text", "stays"),
    [
        ("reading", 1, "OSError", "the disk is gone", 12),
        ("schedule", 1, "FileNotFoundError", "the plan is gone", 12),
        ("config", 0, "PlanMismatchError", "rank 1 of the data-parallel group packs these", 0),
        ("state", 0, "PlanMismatchError", "rank 1 of the data-parallel group is at consumed_", 0),
        ("end", 0, "PlanMismatchError", "is at consumed_samples=48, its end, but rank 0 is at", 36),
    ],
)
def test_a_failure_on_one_rank_is_heard_by_all(run_ranks, kind, first, error, text, stays):
    both = run_ranks(_one_fails, 2, kind, timeout=20)
    for rank, (steps, consumed, after) in enumerate(both):
        kinds = [step[0] for step in steps[first:]]
        texts = [step[1] for step in steps[first:]]
        if first and rank == 0:
            assert kinds == ["PeerFailedError"] * 2
            assert "rank 1 of the data-parallel group failed before samples were" in texts[0]
        else:
            assert kinds == [error] * len(kinds)
            assert all(text in found for found in texts)
        assert consumed == stays or (rank == 1 and kind in ("state", "end"))
        assert isinstance(after, int)
    if kind == "reading":
        assert "while reading the batch of samples [14, 15, 18, 19, 22, 23]" in both[1][0][1][2][0]


def _stages_without(rank):
    return share_shapes(None)


def test_a_step_that_is_missing_is_heard_by_all_stages(run_ranks):
    first, second = run_ranks(_stages_without, 2, timeout=20)
    assert isinstance(first, ValueError)
    assert "step is None on rank 0" in str(first)
    assert isinstance(second, PeerFailedError)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"labels": None}, "sample 1 of this rank has no labels, only tokens, loss_mask, posi"),
        ({"tokens": np.arange(3)}, r"sample 1 of this rank has fields of \[3, 8\] tokens, but its"),
        ({"labels": np.arange(8, dtype=np.int32)}, "position_ids of sample 1 of this rank are"),
        ({"labels": np.zeros(8, np.complex64)}, "use one configuration, and real types"),
    ],
)
def test_samples_are_looked_at_before_anything_is_sent(change, text):
    wrong = {k: v for k, v in {**Rows()[1], **change}.items() if v is not None}
    with pytest.raises(ValueError, match=text):
        exchange._described([Rows()[0], wrong])


def _stages(rank):
    groups = [dist.new_group([number]) for number in range(3)]
    samples = [Rows()[index] for index in range(6)] if rank == 0 else []
    step = pack_across_ranks(samples, PackingConfig(16), groups[rank]) if rank == 0 else None
    shapes = share_shapes(step)
    return arrays(shapes.microbatches), shapes.counts, PackedShapes.of(step).words() if step else 0


def test_middle_stages_know_the_boundaries(run_ranks):
    first, *others = run_ranks(_stages, 3)
    assert first[0][0].keys() == {"cu_seqlens", "cu_seqlens_padded", "max_seqlen"}
    assert first[0][0]["max_seqlen"].dtype == np.int32
    for packs, counts, _ in others:
        assert counts == first[1]
        for pack, wanted in zip(packs, first[0], strict=True):
            assert_same_batch(pack, wanted, "boundaries")


def test_counts_are_exact_at_any_size():
    shapes = PackedShapes([], TokenCounts(2**53 + 1, 2**80 + 1))
    assert PackedShapes.from_words(shapes.words()) == shapes


def test_a_packed_loader_after_close():
    loader = PackedLoader(Rows(), HybridCPMegatronPretrainingSampler(48, 12, 1, 12, 0, 1), CONFIG)
    loader.close()
    with pytest.raises(RuntimeError, match=r"PackedLoader is closed \(at consumed_samples=12\)"):
        next(loader)
    with pytest.raises(RuntimeError, match="PackedLoader is closed, so its position cannot be"):
        loader.load_state_dict(loader.state_dict())
