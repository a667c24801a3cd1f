"""One process's part in a run: join, log, finish; and its own exit."""
