"""The `coredata` command. Each subcommand is a module with `HELP`, `add_arguments` and `run`."""
