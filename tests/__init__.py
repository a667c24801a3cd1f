"""All tests: a package, so that no folder of theirs can stand before a module of the standard library."""
