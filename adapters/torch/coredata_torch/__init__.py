"""PyTorch on top of coredata: datasets, batch samplers, loaders and ranks. Nothing here yet."""
