"""What happened: journals on disk, the run's directory, and the delivery of both to the
trackers.
"""
