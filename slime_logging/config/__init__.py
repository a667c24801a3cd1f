"""What is logged: role arguments, their JSON form, their redaction, and their place in the run's configuration."""
