"""Row schemas, packing and context-parallel partition, as pure functions. Nothing here yet."""
