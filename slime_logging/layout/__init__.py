"""Where each key of the run's configuration stands: scopes, fold, differences."""
