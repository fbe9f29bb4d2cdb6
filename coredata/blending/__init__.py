"""Which dataset gives sample k: shares, the greedy rule, and the blend it makes."""

from coredata.blending.blend import Blend, IndexedBlend
from coredata.blending.blend_list import get_blend_from_list
from coredata.blending.indices import build_blending_indices, build_exhaustive_blending_indices
from coredata.blending.weights import check_normalized, get_size_per_split_per_dataset, normalize

__all__ = [
    "Blend",
    "IndexedBlend",
    "build_blending_indices",
    "build_exhaustive_blending_indices",
    "check_normalized",
    "get_blend_from_list",
    "get_size_per_split_per_dataset",
    "normalize",
]
