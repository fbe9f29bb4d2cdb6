"""A clear word where JAX is not installed. Imported before anything that needs it."""

try:
    import jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError(
        "coredata_jax needs JAX, which is not installed here. Install it with: "
        "pip install 'coredata[jax]' (or JAX's own package for your accelerator)",
        name="jax",
    ) from error
