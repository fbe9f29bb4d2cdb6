"""Several datasets, each at its own place: one counter by name for each."""

from collections.abc import Mapping

from coredata.sampling.protocol import BatchSampler


def consumed_samples(samplers: Mapping[str, BatchSampler]) -> dict[str, int]:
    """Where each sampler is: name -> consumed samples. This is all there is to save."""
    return {name: sampler.consumed_samples for name, sampler in samplers.items()}


def resume_each(
    samplers: Mapping[str, BatchSampler], consumed: Mapping[str, int]
) -> dict[str, BatchSampler]:
    """The same samplers, each from its own counter.

    Raises:
        ValueError: the names are not the same, or a sampler cannot start at its counter.
    """
    if samplers.keys() != consumed.keys():
        missing = sorted(samplers.keys() - consumed.keys())
        unknown = sorted(consumed.keys() - samplers.keys())
        raise ValueError(
            f"consumed: the state has no counter for {missing}, and counters for {unknown}, which "
            f"are not there. Name the datasets as when it was saved, or add 0 for a new one"
        )
    return {name: sampler.resume(consumed[name]) for name, sampler in samplers.items()}
