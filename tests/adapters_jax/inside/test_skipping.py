"""A skip list reaches the devices: the same rows as a numpy loop over what is kept."""

import json

import numpy as np
from coredata_jax import ShardedBatches
from meshes import as_numpy, mesh_of

from coredata.datasets import WithoutSamples
from coredata.testing import numbered_dataset


def rows(batches):
    return [as_numpy(batch)["tokens"][:, 0].tolist() for batch in batches]


def test_skipped_samples_are_on_no_device_and_a_state_goes_on_elsewhere():
    view = WithoutSamples(numbered_dataset(44, 4), [2, 9, 10, 11, 30])
    first = np.array([k for k in range(44) if k not in (2, 9, 10, 11, 30)])
    expected = (4 * first[:32]).reshape(4, 8).tolist()
    with ShardedBatches(view, 8, mesh_of(data=4, model=2)) as run:
        assert rows([next(run), next(run)]) == expected[:2]
        state = json.loads(json.dumps(run.state_dict()))
    assert state["consumed_samples"] == 16
    assert state["fingerprint"]["skipped_samples"] == "2,9-11,30"
    with ShardedBatches(view, 8, mesh_of(data=8)) as run:
        run.load_state_dict(state)
        assert rows(run) == expected[2:]
