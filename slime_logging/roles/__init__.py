"""Role files -> the arguments that a role uses."""
