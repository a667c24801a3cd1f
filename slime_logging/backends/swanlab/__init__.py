"""SwanLab."""
