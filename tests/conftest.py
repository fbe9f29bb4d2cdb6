"""Shape checks on for the whole run: every annotated array is checked at every call."""

from jaxtyping import install_import_hook

_CHECKED = ["coredata", "coredata_torch", "coredata_jax"]
install_import_hook(_CHECKED, "beartype.beartype")
