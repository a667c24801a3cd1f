"""`python -m slime_logging.trinity`: print the folder to give to Trinity as `--plugin-dir`."""

from __future__ import annotations

from pathlib import Path

print(Path(__file__).parent / "plugin")
