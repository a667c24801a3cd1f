"""How the processes of a job on many hosts find their run, and what is measured of a host."""
