"""Several token files into one."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata.formats.dtypes import DType
from coredata.formats.errors import DTypeError, IndexedDatasetError
from coredata.formats.indexed import IndexedDataset
from coredata.formats.merge_kept import Progress, write_kept
from coredata.formats.pair import has_modes
from coredata.formats.verify import Verified, verify_indexed
from coredata.formats.writer import IndexedDatasetBuilder
from coredata.storage import local_path, with_read_options


def merge(
    prefixes: Sequence[str | os.PathLike[str]],
    output_prefix: str | os.PathLike[str],
    widen: bool = False,
    *,
    checksums: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Write the documents of several token files, in the order given, as one.

    Files without documents are fine. Tokens are streamed, from and to URLs too; every input's index
    and the output are verified. Inputs have one dtype, or with `widen` the narrowest that holds
    them all is used. With `checksums` the output gets a `.crc` file. Of files behind URLs, the
    indices are kept in a temporary directory on this machine meanwhile.

    Onto a local disk, a merge that was killed leaves what it wrote under a hidden name, and the
    same merge goes on from there. `progress` is told bytes done, of how many.

    Raises:
        ValueError: no inputs, or an input that is also the output.
        DTypeError: the dtypes differ.
        IndexedDatasetError: an input is damaged, or only some have modes.
        OSError: the disk is full; of a local output the text says what is kept, and where.
    """
    sources = [os.fspath(prefix) for prefix in prefixes]
    target = os.fspath(output_prefix)
    if not sources:
        raise ValueError("nothing to merge; give at least one prefix")
    if target in sources:
        raise ValueError(f"{target} is both an input and the output; give another output prefix")
    with tempfile.TemporaryDirectory(prefix="coredata-") as copies:
        options = with_read_options(storage_options, copies=copies)
        expected = _write(sources, target, widen, checksums, options, progress)
        merged = verify_indexed(target, storage_options=options)
    if (merged.sequences, merged.documents) != expected:
        raise IndexedDatasetError(
            f"{target} has {merged.sequences} sequences and {merged.documents} documents, but "
            f"{expected[0]} and {expected[1]} were written; another process wrote to it"
        )
    return merged


def _write(
    sources: list[str],
    target: str,
    widen: bool,
    checksums: bool,
    storage_options: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[int, int]:
    """Write the output; how many sequences and documents it has."""
    multimodal = _common_modes(sources, storage_options)
    dtype = _common_dtype(sources, multimodal, widen, storage_options)
    if local_path(target) is not None:
        return write_kept(
            sources,
            target,
            dtype,
            multimodal,
            widen,
            storage_options,
            progress,
            checksums=checksums,
        )
    with IndexedDatasetBuilder(
        target, dtype, multimodal, checksums=checksums, storage_options=storage_options
    ) as builder:
        for source in sources:
            builder.add_index(source, widen)
        counts = (builder.sequence_count, builder.document_count)
        builder.finalize()
    return counts


def _common_modes(sources: list[str], storage_options: Mapping[str, Any] | None) -> bool:
    """Whether the inputs have modes; inputs without sequences go with either."""
    kinds: dict[bool, str] = {}
    for source in sources:
        modes = has_modes(source, storage_options)
        if modes or len(IndexedDataset(source, storage_options=storage_options)):
            kinds.setdefault(modes, source)
    if len(kinds) == 2:
        raise IndexedDatasetError(
            f"{kinds[True]} has modes and {kinds[False]} has none; merge files of one kind"
        )
    return True in kinds


def _common_dtype(
    sources: list[str], multimodal: bool, widen: bool, storage_options: Mapping[str, Any] | None
) -> np.dtype[Any]:
    found: dict[np.dtype[Any], str] = {}
    for source in sources:
        modes = multimodal and has_modes(source, storage_options)
        dataset = IndexedDataset(source, modes, storage_options=storage_options)
        found.setdefault(dataset.dtype, source)
    listed = ", ".join(f"{dtype.name} in {source}" for dtype, source in found.items())
    if len(found) > 1 and not widen:
        raise DTypeError(f"the inputs have several dtypes ({listed}); pass widen=True to convert")
    if len({dtype.kind == "f" for dtype in found}) > 1:
        raise DTypeError(f"integers and floating-point values cannot be merged ({listed})")
    common = np.result_type(*found)
    DType.code_from_dtype(common)
    return common
