"""Hypothesis strategies for corpora, order settings and blends. Hypothesis is needed to call them.

from hypothesis import given
from coredata.testing.strategies import corpora, gpt_settings

@given(corpora(), gpt_settings())
def test_my_pipeline(corpus, settings): ...
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class GPTSettings:
    """What decides the order of samples, beside the corpus."""

    sequence_length: int
    num_samples: int | None
    random_seed: int
    add_extra_token: bool
    drop_last_partial_sequence: bool


def corpora(
    *, max_documents: int = 12, max_length: int = 20, vocab_size: int = 256, empty: bool = True
) -> Any:
    """Lists of documents (int64 arrays), with at least one token in all of them together.

    With `empty`, some documents have no tokens. Short documents and few of them are likely, since
    that is where orders go wrong.
    """
    st = _strategies()
    document = st.lists(
        st.integers(0, vocab_size - 1), min_size=0 if empty else 1, max_size=max_length
    )
    return (
        st.lists(document, min_size=1, max_size=max_documents)
        .filter(lambda documents: any(documents))
        .map(lambda documents: [np.array(tokens, np.int64) for tokens in documents])
    )


def gpt_settings(*, max_sequence_length: int = 16, max_samples: int = 60) -> Any:
    """Order settings: short samples, one epoch or many, with and without the extra token."""
    st = _strategies()
    return st.builds(
        GPTSettings,
        sequence_length=st.integers(1, max_sequence_length),
        num_samples=st.none() | st.integers(1, max_samples),
        random_seed=st.integers(0, 2**32 - 1),
        add_extra_token=st.booleans(),
        drop_last_partial_sequence=st.booleans(),
    )


def blend_weights(*, max_datasets: int = 8) -> Any:
    """Lists of weights, at least one above zero; equal, zero, tiny and large ones among them."""
    st = _strategies()
    weight = st.sampled_from([0.0, 1e-9, 0.5, 1.0, 3.0]) | st.floats(0, 1000, allow_subnormal=False)
    return st.lists(weight, min_size=1, max_size=max_datasets).filter(lambda w: sum(w) > 1e-6)


def _strategies() -> ModuleType:
    """hypothesis.strategies.

    Raises:
        ModuleNotFoundError: Hypothesis is not installed.
    """
    try:
        import hypothesis.strategies
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "coredata.testing.strategies needs Hypothesis: pip install 'coredata[test]'"
        ) from error
    return hypothesis.strategies
