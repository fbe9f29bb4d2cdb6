"""Which process differs, and in what, without starting one."""

import pytest
from coredata_jax import JaxRanks, PlanMismatchError, ShardedBatches, check_same_plan
from meshes import Told, mesh_of

from coredata.datasets.ranks import RankFailedError, SingleProcess
from coredata.testing import numbered_dataset

MESH = mesh_of(data=4, model=2)


def run_of(**options) -> ShardedBatches:
    options = {"global_batch_size": 8, "mesh": MESH, **options}
    return ShardedBatches(numbered_dataset(40, 4), **options)


def test_equal_plans_cost_one_message():
    plans = Told([run_of().plan()] * 3)
    check_same_plan(run_of(), plans)
    assert plans.gathered == 1
    check_same_plan(run_of(), SingleProcess())
    check_same_plan(run_of(), JaxRanks.from_distributed())


DIFFERENCES = {
    "position": ({"consumed_samples": 8}, "consumed_samples: process 2 has 8, 0 has 0"),
    "size": ({"global_batch_size": 4}, 'global_batch_size: process 2 has "4", 0 has "8"'),
    "end": ({"drop_last": False}, "drop_last: process 2 has false, 0 has true"),
    "axes": ({"data_axes": "model"}, r'data_axes: process 2 has \["model"\], 0 has \["data"\]'),
    "mesh": ({"mesh": mesh_of(data=2, model=4)}, r'mesh: process 2 has {"data": 2, "model": 4}'),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_the_process_that_differs_is_named(case):
    options, text = DIFFERENCES[case]
    plans = [run_of().plan(), run_of().plan(), run_of(**options).plan(), run_of().plan()]
    with pytest.raises(PlanMismatchError, match=text) as caught:
        check_same_plan(run_of(), Told(plans))
    assert "process 2 of 4 differs from process 0:" in str(caught.value)
    assert "process 1 of 4" not in str(caught.value)


def test_the_majority_is_right_and_missing_entries_are_shown():
    plan = run_of().plan()
    other = {name: value for name, value in plan.items() if name != "samples"}
    with pytest.raises(PlanMismatchError, match="process 0 of 3 differs from process 1:") as caught:
        check_same_plan(run_of(), Told([other, plan, plan]))
    assert "samples: process 0 has nothing, 1 has 40" in str(caught.value)


class Heard:
    """Ranks that note what is said, and of which another failed."""

    rank, world_size, node_rank, builds = 0, 2, 0, True

    def __init__(self):
        self.said = []

    def all_gather(self, message):
        self.said.append(message)
        return [message, "failed: OSError: no such file"]


def test_a_process_that_has_no_plan_is_heard(monkeypatch):
    with pytest.raises(RankFailedError, match="process 1 of 2 could not make its plan: OSError: n"):
        check_same_plan(run_of(), Heard())
    batches, heard = run_of(), Heard()
    batches.close()
    monkeypatch.setattr(ShardedBatches, "plan", lambda self: self.seek(8))
    with pytest.raises(RuntimeError, match="its position cannot be changed"):
        check_same_plan(batches, heard)
    assert len(heard.said) == 1
    assert heard.said[0].startswith("failed: RuntimeError: this ShardedBatches is closed")


def test_processes_that_are_no_whole_machines():
    with pytest.raises(ValueError, match="1 processes are not whole machines of 2"):
        JaxRanks.from_distributed(processes_per_node=2)
