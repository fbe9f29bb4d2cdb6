"""What `coredata prepare-cache` prints."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from coredata.indices import Split
from coredata.tools.output import count_of, size_text, time_text
from coredata.tools.prepare_cache_run import Prepared, PreparedCache


def page(prepared: Prepared) -> Iterator[str]:
    """Lines for a person."""
    sizes = prepared.sizes
    batch = "" if sizes.global_batch_size is None else f", {sizes.global_batch_size:,} a step"
    ranks = f", {count_of(sizes.data_parallel_size, 'data-parallel rank')}" if batch else ""
    yield f"sizes from {sizes.source}{batch}{ranks}"
    for split, asked, length in zip(Split, sizes.samples, prepared.lengths, strict=True):
        wanted = "one epoch" if asked is None else f"{count_of(asked, 'sample')} asked"
        yield f"  {split.name:<5}  {wanted}: {_have(length)}"
    short = _ends_early(prepared)
    if short is not None:
        yield short
    widest = max((len(cache.name) for cache in prepared.caches), default=0)
    states = max((len(cache.state) for cache in prepared.caches), default=0)
    for cache in prepared.caches:
        begin = f"  {cache.state:<{states}}  {cache.split:<5}  {cache.name:<{widest}}"
        yield f"{begin}  {_facts(cache)}"
    total = sum(cache.bytes for cache in prepared.caches)
    yield (
        f"{prepared.built} built, {sum(c.state == 'hit' for c in prepared.caches)} hit, "
        f"{size_text(total)} in {prepared.directory}, {time_text(prepared.seconds)}"
    )


def _ends_early(prepared: Prepared) -> str | None:
    """A note, if training gets fewer samples than it asks for."""
    asked, there = prepared.sizes.train, prepared.lengths[0]
    if asked is None or not isinstance(there, int) or there >= asked:
        return None
    batch = prepared.sizes.global_batch_size
    end = f"after about {count_of(there // batch, 'step')}" if batch else "early"
    return (
        f"  note: {there:,} of the {asked:,} training samples are there: the run ends {end}. "
        "Without weights each source is read once; with weights (--data-path 0.7 A 0.3 B) sources "
        "repeat"
    )


def _have(length: int | list[int] | None) -> str:
    if length is None:
        return "no dataset"
    if isinstance(length, list):
        return f"{count_of(len(length), 'dataset')} of {', '.join(f'{one:,}' for one in length)}"
    return f"{length:,} there"


def _facts(cache: PreparedCache) -> str:
    samples = "" if cache.samples is None else count_of(cache.samples, "sample")
    size = size_text(cache.bytes) if cache.bytes else ""
    rows = ""
    if cache.rows is not None and cache.fill is not None:
        rows = f"{count_of(cache.rows, 'row')}, {cache.fill:.1%} full"
    return ", ".join(fact for fact in (samples, rows, size) if fact)


def as_data(prepared: Prepared) -> dict[str, Any]:
    """The same as values that JSON holds."""
    return {
        "directory": prepared.directory,
        "sizes": asdict(prepared.sizes),
        "lengths": dict(zip((split.name for split in Split), prepared.lengths, strict=True)),
        "built": prepared.built,
        "bytes": sum(cache.bytes for cache in prepared.caches),
        "seconds": prepared.seconds,
        "caches": [asdict(cache) for cache in prepared.caches],
    }
