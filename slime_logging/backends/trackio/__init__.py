"""Trackio."""
