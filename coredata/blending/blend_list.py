"""A blend as it is written on a command line: `0.7 prefix-a 0.3 prefix-b`."""

from collections.abc import Sequence


def get_blend_from_list(
    blend: Sequence[str] | None,
) -> tuple[list[str], list[float] | None] | None:
    """Prefixes and weights from a flat list; None stays None.

    An odd number of items, or no number at any even position: prefixes without weights.
    Otherwise weight, prefix, weight, prefix… Blanks around a prefix are dropped.

    Raises:
        ValueError: some even positions hold numbers and some do not, so that it is unclear which
            items are weights; or an empty list.
    """
    if blend is None:
        return None
    if len(blend) == 0:
        raise ValueError("the blend is an empty list; give at least one prefix, or None for none")
    if len(blend) % 2 == 1:
        return _stripped(blend), None
    weights = [_number(item) for item in blend[0::2]]
    given = [weight for weight in weights if weight is not None]
    if not given:
        return _stripped(blend), None
    if len(given) < len(weights):
        at = 2 * weights.index(None)
        raise ValueError(
            f"item {at} of the blend, {blend[at]!r}, stands where a weight is expected, as"
            f" {len(given)} of {len(weights)} items at even positions are numbers; write weight,"
            " prefix, weight, prefix, … for all, or prefixes only"
        )
    return _stripped(blend[1::2]), given


def _stripped(prefixes: Sequence[str]) -> list[str]:
    return [prefix.strip() for prefix in prefixes]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
