"""Our commands one after the other, in one process of a world: `python -m tests.secrets.commands`.

What they are stands in the file `commands.json` of what the world was given; their exit codes go to `codes.json`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from slime_logging.cli.app import app


def main() -> None:
    commands = json.loads(Path(os.environ["GIVEN"], "commands.json").read_bytes())
    Path("codes.json").write_text(json.dumps([_code(command) for command in commands]))


def _code(command: list[str]) -> int:
    sys.argv = ["slime-logging", *command]
    try:
        app(command)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


if __name__ == "__main__":
    main()
