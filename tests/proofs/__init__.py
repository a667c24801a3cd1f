"""Proofs that nothing is lost and nothing doubled: whole jobs of real processes, killed and obstructed, then read back."""
