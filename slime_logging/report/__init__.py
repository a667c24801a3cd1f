"""One HTML page of a run, out of its journals alone: no tracker, no account, no server, no script
in it.
"""
