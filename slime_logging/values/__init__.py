"""Plain JSON of any object, and the values that move through the package: rows, configurations."""
