"""Array types with shapes, from jaxtyping where it is installed.

The annotations are documentation for readers, and are enforced while the tests run. Without
jaxtyping (it is a test dependency) they mean the plain array type.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxtyping import (
        Bool,
        Float32,
        Float64,
        Int,
        Int8,
        Int16,
        Int32,
        Int64,
        Integer,
        Shaped,
        UInt8,
        UInt32,
    )
else:
    try:
        from jaxtyping import (
            Bool,
            Float32,
            Float64,
            Int,
            Int8,
            Int16,
            Int32,
            Int64,
            Integer,
            Shaped,
            UInt8,
            UInt32,
        )
    except ModuleNotFoundError:

        class _Plain:
            """Stands in for a jaxtyping dtype: `Int32[np.ndarray, "n"]` is `np.ndarray`."""

            def __class_getitem__(cls, item: tuple[Any, str]) -> Any:
                return item[0]

        Bool = Float32 = Float64 = Int = Int8 = Int16 = Int32 = Int64 = _Plain
        Integer = Shaped = UInt8 = UInt32 = _Plain

__all__ = [
    "Bool",
    "Float32",
    "Float64",
    "Int",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Integer",
    "Shaped",
    "UInt8",
    "UInt32",
]
