"""The trackers: one module each behind the protocol of `base`."""
