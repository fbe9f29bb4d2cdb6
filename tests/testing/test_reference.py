import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.blending import build_blending_indices, normalize
from coredata.indices import build_gpt_indices
from coredata.sampling import MegatronPretrainingSampler, torch_randperm
from coredata.testing import (
    assert_same_array,
    flattened,
    golden_cases,
    reference_blend,
    reference_gpt_indices,
    reference_randperm,
    reference_sequential_batches,
)
from coredata.testing.golden_gpt import OTHER_GPT_CASES
from coredata.testing.strategies import blend_weights, corpora, gpt_settings


def test_the_loops_give_the_golden_indices():
    for case in golden_cases("gpt", without=OTHER_GPT_CASES):
        given_ = case.settings
        drops = given_["index_split"] != "valid" or given_["drop_last_partial_validation_sequence"]
        indices = reference_gpt_indices(
            case.arrays["doc_lengths"].tolist(),
            case.arrays["indices"].tolist(),
            given_["num_samples"],
            given_["sequence_length"],
            given_["random_seed"],
            extra=int(given_["add_extra_token_to_sequence"]),
            drop_last=drops,
        )
        for name, array in zip(
            ("document_index", "sample_index", "shuffle_index"), indices, strict=True
        ):
            assert_same_array(array, case.arrays[name], f"{case}, {name}")


@settings(max_examples=100, deadline=None)
@given(corpus=corpora(), wanted=gpt_settings())
def test_compiled_indices_are_those_of_the_loops(corpus, wanted):
    _, lengths = flattened(corpus)
    documents = np.arange(len(lengths), dtype=np.int32)
    compiled = build_gpt_indices(
        lengths,
        documents,
        wanted.num_samples,
        wanted.sequence_length,
        wanted.random_seed,
        add_extra_token=wanted.add_extra_token,
        drop_last_partial_sequence=wanted.drop_last_partial_sequence,
    )
    expected = reference_gpt_indices(
        lengths.tolist(),
        documents.tolist(),
        wanted.num_samples,
        wanted.sequence_length,
        wanted.random_seed,
        extra=int(wanted.add_extra_token),
        drop_last=wanted.drop_last_partial_sequence,
    )
    for name, array in zip(
        ("document_index", "sample_index", "shuffle_index"), expected, strict=True
    ):
        assert_same_array(getattr(compiled, name), array, name)


@settings(max_examples=60, deadline=None)
@given(weights=blend_weights(), size=st.integers(0, 200))
@example(weights=[3.0, 1.1, 1.1], size=53)  # shares that add up to a little more than 1
def test_compiled_blends_are_those_of_the_loop(weights, size):
    shares = normalize(weights)
    for actual, expected in zip(
        build_blending_indices(shares, size), reference_blend(shares, size), strict=True
    ):
        assert_same_array(actual, expected, f"{weights}")


@settings(max_examples=30, deadline=None)
@given(n=st.integers(0, 200), seed=st.integers(0, 2**32 - 1))
def test_permutations_are_those_of_the_loop(n, seed):
    assert_same_array(torch_randperm(n, seed), reference_randperm(n, seed), "randperm")


@settings(max_examples=30, deadline=None)
@given(total=st.integers(0, 60), micro=st.integers(1, 4), size=st.integers(1, 4), data=st.data())
def test_sequential_batches_are_those_of_the_loop(total, micro, size, data):
    consumed = data.draw(st.integers(0, total))
    rank = data.draw(st.integers(0, size - 1))
    sampler = MegatronPretrainingSampler(total, consumed, micro, rank, size)
    expected = reference_sequential_batches(total, consumed, micro, rank, size)
    assert [batch.tolist() for batch in sampler] == expected
