"""Nothing is lost and nothing doubled: whole jobs of real processes, killed and obstructed, and then read back."""
