"""Whatever the framework and its shape, the global batches are the numpy loader's, bit for bit.

Every run has 50 steps of 24 samples. It stops at some step and goes on in another shape, most
often in another framework, from the state it left. What each rank, or each device, then holds of a
global batch is what a numpy loader that never stopped has there; together they hold all of it.
"""

import importlib.util
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

SIDE = Path(__file__).parent / "sides" / "side.py"
STEPS, GLOBAL_BATCH, SEQUENCE = 50, 24, 16


class Shape(NamedTuple):
    framework: str
    processes: int
    devices: int  # of PyTorch and numpy: one for each process
    micro_batch: int  # rows that a data-parallel rank, or a shard of the rows, takes at once
    context_parallel: int
    workers: int  # processes that read for each rank; of numpy and JAX: threads, 0 reads in next


#          framework  processes  devices  micro batch  context parallel  workers
SEQUENTIAL = [
    (Shape("numpy", 1, 1, 24, 1, 0), Shape("torch", 4, 4, 2, 1, 0)),
    (Shape("torch", 1, 1, 12, 1, 0), Shape("jax", 1, 8, 3, 1, 1)),
    (Shape("torch", 4, 4, 3, 1, 1), Shape("jax", 4, 8, 12, 2, 1)),
    (Shape("torch", 4, 4, 1, 2, 0), Shape("jax", 2, 8, 6, 2, 2)),
    (Shape("torch", 3, 3, 4, 1, 2), Shape("torch", 2, 2, 3, 1, 0)),
    (Shape("jax", 1, 8, 6, 1, 2), Shape("torch", 2, 2, 12, 2, 2)),
    (Shape("jax", 1, 8, 12, 4, 0), Shape("numpy", 3, 3, 4, 1, 2)),
    (Shape("jax", 2, 8, 24, 1, 1), Shape("jax", 4, 8, 3, 1, 3)),
    (Shape("jax", 2, 8, 3, 1, 0), Shape("torch", 4, 4, 6, 1, 0)),
    (Shape("jax", 4, 8, 6, 2, 2), Shape("jax", 1, 1, 24, 1, 1)),
    (Shape("jax", 4, 8, 24, 8, 1), Shape("torch", 1, 1, 8, 1, 1)),
]
CYCLIC = [
    (Shape("torch", 1, 1, 12, 1, 0), Shape("torch", 2, 2, 3, 1, 1)),
    (Shape("torch", 4, 4, 1, 1, 0), Shape("numpy", 2, 2, 6, 1, 1)),
    (Shape("numpy", 3, 3, 2, 1, 0), Shape("torch", 3, 3, 4, 1, 0)),
    (Shape("torch", 4, 4, 2, 2, 1), Shape("torch", 2, 2, 2, 1, 2)),
]
GRID = [("single", *pair) for pair in SEQUENTIAL] + [("cyclic", *pair) for pair in CYCLIC]
WHOLE = Shape("numpy", 1, 1, GLOBAL_BATCH, 1, 0)


@pytest.fixture(scope="module")
def run(programs, data, tmp_path_factory):
    """Runs a shape for some steps from a state; its pieces of the batches, and its state."""
    spec = importlib.util.spec_from_file_location("grid_side", SIDE)
    side = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(side)

    def run(shape, order, steps, state=None):
        out = tmp_path_factory.mktemp("job")
        program = programs[shape.framework, shape.processes if shape.framework == "jax" else 0]
        job = {**shape._asdict(), "order": order, "steps": steps, "state": state}
        state = program.run({**job, "data": str(data), "out": str(out)})
        return [p for file in sorted(out.glob("*.npz")) for p in side.load_pieces(file)], state

    return run


@pytest.fixture(scope="module")
def expected(run):
    """Order -> the fields of all steps, and the last state, of a loader that never stops."""
    found = {}
    for order in ("single", "cyclic"):
        ((rows, columns, fields),), state = run(WHOLE, order, STEPS)
        assert rows.tolist() == list(range(GLOBAL_BATCH))
        assert columns.tolist() == list(range(SEQUENCE))
        assert len(np.unique(fields["tokens"], axis=0)) == STEPS, "steps must differ"
        found[order] = fields, state
    return found


def assert_pieces(pieces, fields, start, stop, what):
    """Each piece is what is there in the whole, and together they are all of it."""
    seen = np.zeros((GLOBAL_BATCH, SEQUENCE), int)
    for number, (rows, columns, found) in enumerate(pieces):
        seen[np.ix_(rows, columns)] += 1
        assert found.keys() == fields.keys(), what
        for name, values in found.items():
            wanted = fields[name][start:stop][:, rows]
            if name != "dataset_id":
                wanted = wanted[:, :, columns]
            assert values.dtype == wanted.dtype, f"{what}, {name}"
            np.testing.assert_array_equal(values, wanted, f"{what}, piece {number}, {name}")
    assert seen.min() == seen.max() == len(pieces) * len(rows) * len(columns) / seen.size, what


def test_the_grid_holds_what_it_is_for():
    shapes = {shape for _, *pair in GRID for shape in pair}
    moves = {(first.framework, second.framework) for _, first, second in GRID}
    assert moves >= {("torch", "jax"), ("jax", "torch"), ("torch", "torch"), ("jax", "jax")}
    assert {s.processes for s in shapes if s.framework == "torch"} == {1, 2, 3, 4}
    assert {(s.processes, s.devices) for s in shapes if s.framework == "jax"} == {
        (1, 1), (1, 8), (2, 8), (4, 8)
    }  # fmt: skip
    for framework in ("torch", "jax"):
        ours = [shape for shape in shapes if shape.framework == framework]
        for field in ("micro_batch", "context_parallel", "workers"):
            assert len({getattr(shape, field) for shape in ours}) >= 2, (framework, field)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "first", "second"),
    GRID,
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, Shape) else value,
)
def test_a_stopped_run_goes_on_in_another_shape(run, expected, order, first, second):
    fields, last = expected[order]
    stop = random.Random(f"{order} {first} {second}").randrange(1, STEPS)
    pieces, state = run(first, order, stop)
    assert_pieces(pieces, fields, 0, stop, f"{first}, up to step {stop}")
    assert state["consumed_samples"] == stop * GLOBAL_BATCH
    pieces, state = run(second, order, STEPS - stop, state)
    assert_pieces(pieces, fields, stop, STEPS, f"{second}, from step {stop} of {first}")
    assert state == last
