"""Whether all processes read the same data."""

import json
from collections.abc import Mapping
from typing import Any, final

from coredata.datasets.ranks import RankFailedError, Ranks

_FAILED = "failed: "
"""What a rank begins its message with that has nothing to compare; fingerprints begin with "{"."""


class PlanMismatchError(ValueError):
    """Processes that should read the same data have different datasets or orders of them."""


def check_agreement(ranks: Ranks, fingerprint: Mapping[str, Any], what: str = "data") -> None:
    """Let all processes compare what they read; they must all call this.

    Args:
        ranks: the processes.
        fingerprint: what this one reads, such as `dataset.fingerprint()`.
        what: what errors call it.

    Raises:
        PlanMismatchError: on every process alike: which differ from rank 0, and where.
        RankFailedError: a process failed before it came here (`FailureHeard`).
        RankLostError: a process has ended, or did not answer in time.
    """
    texts = ranks.all_gather(json.dumps(dict(fingerprint), sort_keys=True, default=str))
    for rank, text in enumerate(texts):
        if text.startswith(_FAILED):
            raise RankFailedError(
                f"rank {rank} of {len(texts)} could not make its {what}: "
                f"{text.removeprefix(_FAILED)}"
            )
    different = [rank for rank, text in enumerate(texts) if text != texts[0]]
    if not different:
        return
    first, other = json.loads(texts[0]), json.loads(texts[different[0]])
    lines = [
        f"{field}: rank 0 has {first.get(field, '(absent)')!r}, "
        f"rank {different[0]} has {other.get(field, '(absent)')!r}"
        for field in dict.fromkeys([*first, *other])
        if field not in first or field not in other or first[field] != other[field]
    ]
    raise PlanMismatchError(
        f"the {what} of rank {', '.join(map(str, different))} of {len(texts)} is not that of rank "
        "0:\n  " + "\n  ".join(lines) + "\nGive all of them the same files and configuration"
    )


@final
class FailureHeard:
    """Lets the others hear when this process fails inside the `with`: they `check_agreement`.

    Args:
        ranks: the processes; None if they compare nothing.
    """

    def __init__(self, ranks: Ranks | None) -> None:
        self._ranks = ranks

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and issubclass(kind, Exception) and self._ranks is not None:
            self._ranks.all_gather(f"{_FAILED}{kind.__name__}: {error}")
