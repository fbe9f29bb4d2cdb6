"""A blend from its two arrays."""

import numpy as np
import pytest

from coredata.blending import Blend, IndexedBlend, build_blending_indices


def test_lookup_and_counts():
    datasets, samples = build_blending_indices([0.5, 0.0, 0.25, 0.25], 100)
    for array in (datasets, samples):
        array.flags.writeable = False
    blend: Blend = IndexedBlend(datasets, samples, 4)
    assert len(blend) == 100
    which, number = blend.lookup(np.array([99, 0, 3, 3]))
    assert which.dtype == number.dtype == np.int64
    assert which.tolist() == datasets[[99, 0, 3, 3]].tolist()
    assert number.tolist() == samples[[99, 0, 3, 3]].tolist()
    assert blend.counts().tolist() == [50, 0, 25, 25]


@pytest.mark.parametrize("sample", [-1, 10])
def test_lookup_outside(sample):
    blend = IndexedBlend(*build_blending_indices([0.5, 0.5], 10), 2)
    with pytest.raises(IndexError, match=f"sample {sample} of a blend of 10; .* 0 to 9"):
        blend.lookup(np.array([0, sample]))
