"""Settings that make no sense, found before any work is done."""

from collections.abc import Sequence

from coredata.preprocess.errors import PreprocessError

_OF_ONE_PROCESS = "memory://"


def check_keys(keys: Sequence[str]) -> None:
    """Keys become parts of file names.

    Raises:
        PreprocessError: no keys, a key named twice, or one that cannot be part of a file name.
    """
    if not keys:
        raise PreprocessError("json_keys is empty; name at least one key, such as 'text'")
    for key in keys:
        if keys.count(key) > 1:
            raise PreprocessError(f"json_keys names {key!r} twice; name each key once")
        if not key or "/" in key or "\0" in key:
            raise PreprocessError(
                f"the key {key!r} cannot be part of a file name, as in PREFIX_KEY_document.bin; "
                "rename it in the data, for example to 'text'"
            )


def check_least(name: str, value: int | None, least: int) -> None:
    """A number that, if given, has a least value.

    Raises:
        PreprocessError: it is too small.
    """
    if value is not None and value < least:
        raise PreprocessError(f"{name}={value}, but at least {least} is needed")


def check_reach(inputs: Sequence[str], output_prefix: str, workers: int) -> None:
    """Worker processes do not see this one's memory.

    Raises:
        PreprocessError: memory:// together with several workers.
    """
    for path in [*inputs, output_prefix]:
        if workers > 1 and path.startswith(_OF_ONE_PROCESS):
            raise PreprocessError(
                f"{path} is in the memory of this process, where {workers} workers cannot reach "
                "it; use workers=1"
            )
