"""A small token file, and the means to damage one."""

import numpy as np
import pytest

from coredata.formats import IndexedDatasetBuilder


@pytest.fixture
def write(tmp_path):
    """Write documents (each a list of sequences) and return the prefix."""

    def write_documents(documents, dtype=np.uint16, name="corpus", modes=None):
        prefix = str(tmp_path / name)
        with IndexedDatasetBuilder(prefix, dtype, multimodal=modes is not None) as builder:
            numbers = iter(modes or [])
            for document in documents:
                for sequence in document:
                    builder.add_item(sequence, next(numbers, 0))
                builder.end_document()
            builder.finalize()
        return prefix

    return write_documents


DOCUMENTS = [[[1, 2, 3], []], [], [[4]], [[5, 6], [7, 8, 9, 10]]]
"""Three, zero, one, two and four tokens; the second document has no sequence."""


@pytest.fixture
def documents():
    return DOCUMENTS


@pytest.fixture
def prefix(write, documents):
    return write(documents)
