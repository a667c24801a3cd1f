"""Modules that an unchanged slime can import in place of its own."""
