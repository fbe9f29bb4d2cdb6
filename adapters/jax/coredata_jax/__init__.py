"""JAX on top of coredata: batches as global `jax.Array`s over a device mesh. Nothing here yet."""
