"""Fill-in-the-middle permutations, as pure functions. Nothing here yet."""
