"""To what multiple a sequence is padded so that ranks can share it."""


def alignment(
    context_parallel_size: int = 1,
    sequence_parallel_size: int = 0,
    data_parallel_size: int = 1,
    *,
    dynamic_context_parallel: bool = False,
) -> int:
    """The number of tokens a padded length is a multiple of.

    Context parallelism cuts a sequence in two chunks per rank; dynamic context parallelism may
    spread it over the data-parallel ranks too; sequence parallelism cuts what a rank has once more.

    Args:
        context_parallel_size: ranks that share a sequence.
        sequence_parallel_size: tensor-parallel ranks that share what is left; 0 for none.
        data_parallel_size: matters with `dynamic_context_parallel` only.
        dynamic_context_parallel: the context-parallel size may change from batch to batch.

    Raises:
        ValueError: a size that is no size.
    """
    for name, size, least in (
        ("context_parallel_size", context_parallel_size, 1),
        ("sequence_parallel_size", sequence_parallel_size, 0),
        ("data_parallel_size", data_parallel_size, 1),
    ):
        if size < least:
            raise ValueError(f"{name} must be at least {least}, found {size}. Give {name}={least}.")
    if dynamic_context_parallel:
        chunks = 2 * context_parallel_size * data_parallel_size
    else:
        chunks = 2 * context_parallel_size if context_parallel_size > 1 else 1
    return chunks * max(sequence_parallel_size, 1)


def align(length: int, multiple: int) -> int:
    """`length`, or the next multiple of `multiple` above it."""
    return -(-length // multiple) * multiple
