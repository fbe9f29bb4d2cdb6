"""GPT datasets of token files: how they are opened, and what broken ones say."""

import os
import warnings

import numpy as np
import pytest

from coredata.formats import IndexedDatasetBuilder, get_bin_path


@pytest.mark.parametrize("mmap_bin_files", [True, False])
def test_known_counts_and_fast_loading(prefix, from_file, tmp_path, mmap_bin_files):
    plain = from_file(prefix, cache=str(tmp_path / "cache"))
    fast = from_file(
        prefix,
        cache=str(tmp_path / "cache"),
        fast_cache_load=True,
        defer_npy_index_mmap=True,
        sequences_per_dataset={prefix: [50, 51]},
        mmap_bin_files=mmap_bin_files,
    )
    assert len(fast) == len(plain)
    for name, values in plain.get_batch(np.arange(30)).items():
        np.testing.assert_array_equal(fast.get_batch(np.arange(30))[name], values)


def test_prefix_of_unknown_counts(prefix, from_file):
    with pytest.raises(ValueError, match=r"sequences_per_dataset: .* is not among its 1 prefixes"):
        from_file(prefix, sequences_per_dataset={"other": [1, 2]})


def test_tokens_cut_off_after_opening(prefix, from_file, tmp_path):
    one = from_file(prefix, mmap_bin_files=False)
    one.dataset.close()
    with open(get_bin_path(prefix), "r+b") as file:
        file.truncate(100)
    with pytest.raises(ValueError, match=rf"{prefix}.*bytes"):
        one.get_batch(np.arange(30))


def test_shorter_document_than_the_indices_say(prefix, from_file, tmp_path):
    """Trusted indices of other data: the error names file, document and samples."""
    cache = str(tmp_path / "cache")
    from_file(prefix, cache=cache)
    os.rename(f"{prefix}.idx", f"{prefix}.old")
    lengths = np.full(50, 3)
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        builder.add_documents(np.zeros(150, np.int64), lengths)
        builder.finalize()
    trusting = from_file(prefix, cache=cache, fast_cache_load=True)
    with pytest.raises(ValueError, match="damaged or belong to another file") as caught:
        trusting.get_batch(np.arange(3))
    assert f"samples [0 1 2] of the train split of {prefix}" in caught.value.__notes__[0]


def test_token_that_the_output_cannot_hold(from_file, tmp_path):
    prefix = str(tmp_path / "corpus")
    with IndexedDatasetBuilder(prefix, np.int64) as builder:
        builder.add_documents(np.arange(9) + 2**40, np.array([9]))
        builder.finalize()
    small = from_file(prefix, output_dtype="int32")
    with pytest.raises(ValueError, match=r"109951162777\d.*int32") as caught:
        small[0]
    assert "while reading samples [0] of the train split of" in caught.value.__notes__[0]
    assert from_file(prefix)[0]["tokens"][0] >= 2**40


def test_no_warning_where_there_is_nothing_to_warn_of(prefix, from_file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_file(prefix)
