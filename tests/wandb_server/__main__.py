"""`python -m tests.wandb_server --dir D [--port 0] [--key K]`: prints its address and serves until it is killed."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.wandb_server.service import DEFAULT_KEY, make_server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default=DEFAULT_KEY)
    options = parser.parse_args()
    server = make_server(options.dir, port=options.port, key=options.key)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
