"""Do all processes hold the same plan? Asked once, before training, of all of them."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

from coredata.datasets.ranks import RankFailedError, Ranks
from coredata_jax.sharded import ShardedLoader

_ABSENT = "nothing"

_FAILED = "failed: "
"""What a process says in place of the digest of its plan."""


class PlanMismatchError(ValueError):
    """Processes that would read different batches. The text names them, and what differs."""


def check_same_plan(batches: ShardedLoader, ranks: Ranks) -> None:
    """Compare what all processes are about to read: dataset, order, position, sizes and mesh.

    All processes must call it. It costs one small message each (and a second one if they differ).
    Without it, processes with different data train on batches that never were.

    Raises:
        PlanMismatchError: in all processes, if any differs from the others.
        RankFailedError: another process could not make its plan, which may read samples.
        RankLostError: a process has ended.
    """
    with _FailureHeard(ranks):
        plan = json.dumps(batches.plan(), sort_keys=True)
    digests = ranks.all_gather(hashlib.sha256(plan.encode()).hexdigest())
    for process, text in enumerate(digests):
        if text.startswith(_FAILED):
            raise RankFailedError(
                f"process {process} of {len(digests)} could not make its plan: "
                f"{text.removeprefix(_FAILED)}"
            )
    if len(set(digests)) == 1:
        return
    plans = [json.loads(text) for text in ranks.all_gather(plan)]
    raise PlanMismatchError(_difference(digests, plans))


@final
class _FailureHeard:
    """Lets the other processes hear when this one fails inside the `with`."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._ranks.all_gather(f"{_FAILED}{kind.__name__}: {error}")


def _difference(digests: Sequence[str], plans: Sequence[Mapping[str, Any]]) -> str:
    """Who differs from the most common plan (the first of these), and in what."""
    common = digests.index(Counter(digests).most_common(1)[0][0])
    lines = ["the processes do not hold the same plan, so their batches would not fit together:"]
    for process, (digest, plan) in enumerate(zip(digests, plans, strict=True)):
        if digest == digests[common]:
            continue
        lines.append(f"  process {process} of {len(plans)} differs from process {common}:")
        for name in sorted({*plan, *plans[common]}):
            here, there = _show(plan, name), _show(plans[common], name)
            if here != there:
                lines.append(f"    {name}: process {process} has {here}, {common} has {there}")
    lines.append("Give every process the same files, settings and state")
    return "\n".join(lines)


def _show(plan: Mapping[str, Any], name: str) -> str:
    return json.dumps(plan[name], sort_keys=True) if name in plan else _ABSENT
