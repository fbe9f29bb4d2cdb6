"""Do cached index arrays fit the data they are for, and each other?"""

from collections.abc import Mapping

import numpy as np

from coredata._kernel import kernel
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.npy import DamagedFileError
from coredata.indices import EpochPlan

_FAULTS = {
    1: "entry {at} of the document index is a document that the split does not expose",
    2: "entry {at} of the document index is a document that occurs too often",
    3: "row {at} of the sample index does not start where the row before it ends",
    4: "entry {at} of the shuffle index is out of range",
    5: "entry {at} of the shuffle index repeats an earlier one",
}


def check_indices(plan: GPTIndexPlan, arrays: Mapping[str, np.ndarray], trusted: bool) -> None:
    """Refuse arrays whose sizes are not those of `plan`: damaged, or made from other data.

    `arrays` are named as in `GPTIndices`.

    Arrays that are not `trusted` (nobody kept a checksum) are read through: the document index
    must hold each document once an epoch, each row of the sample index must be S tokens after the
    one before, and the shuffle index must be a permutation.

    Raises:
        DamagedFileError: they do not fit; it says where.
    """
    counts = plan.counts()
    expected = {
        "document_index": (counts.epochs * len(plan.documents),),
        "sample_index": (counts.samples + 1, 2),
        "shuffle_index": (counts.samples,),
    }
    for name, shape in expected.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind not in "iu":
            raise DamagedFileError(
                f"{name} is {array.dtype.name} of shape {array.shape}; {counts.epochs} epochs of "
                f"{len(plan.documents)} documents with {counts.tokens_per_epoch} tokens make "
                f"integers of shape {shape}. It was made from other data or settings"
            )
    if not trusted:
        _read_through(plan, arrays, counts)


def _read_through(plan: GPTIndexPlan, arrays: Mapping[str, np.ndarray], counts: EpochPlan) -> None:
    left = np.zeros(len(plan.sequence_lengths), np.int64)
    np.add.at(left, plan.documents, counts.epochs)
    fault, at = _first_bad_document(arrays["document_index"], left)
    if not fault:
        fault, at = _first_bad_row(
            arrays["sample_index"],
            arrays["document_index"],
            plan.sequence_lengths,
            plan.sequence_length,
            int(plan.add_extra_token),
            counts.epochs * counts.tokens_per_epoch,
        )
    if not fault:
        seen = np.zeros(counts.samples, np.bool_)
        fault, at = _first_bad_sample(arrays["shuffle_index"], seen)
    if fault:
        raise DamagedFileError(_FAULTS[fault].format(at=at))


@kernel
def _first_bad_document(document_index, left):
    """`left`: how often each sequence may still occur; counted down."""
    for entry in range(len(document_index)):
        document = np.int64(document_index[entry])
        if document < 0 or document >= len(left):
            return 1, entry
        if left[document] == 0:
            return 2, entry
        left[document] -= 1
    return 0, 0


@kernel
def _first_bad_row(sample_index, document_index, sequence_lengths, sequence_length, extra, tokens):
    position = np.int64(0)
    before = np.int64(0)
    for row in range(len(sample_index)):
        target = np.int64(sample_index[row, 0])
        offset = np.int64(sample_index[row, 1])
        if target < position or target >= len(document_index):
            # A dataset without documents has one row, (0, 0).
            if row == 0 and target == 0 and offset == 0 and len(document_index) == 0:
                continue
            return 3, row
        while position < target:
            before += np.int64(sequence_lengths[document_index[position]])
            position += 1
        end = np.int64(sequence_lengths[document_index[position]])
        start = min(row * sequence_length, max(tokens - extra, np.int64(0)))
        if before + offset != start or (row > 0 and offset + extra > end):
            return 3, row
    return 0, 0


@kernel
def _first_bad_sample(shuffle_index, seen):
    for entry in range(len(shuffle_index)):
        sample = np.int64(shuffle_index[entry])
        if sample < 0 or sample >= len(seen):
            return 4, entry
        if seen[sample]:
            return 5, entry
        seen[sample] = True
    return 0, 0
