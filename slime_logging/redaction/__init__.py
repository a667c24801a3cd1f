"""What is secret, and how it is hidden."""
