"""Journals -> trackers: one process a tracker, its cursor, and what is known of both."""
