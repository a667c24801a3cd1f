"""`python -m tests.proofs.latency`: what a call of `log` costs while the W&B server is well, and while it is not.

One job, phases in turn, so that the machine is the same for all; the figures stand in docs/guarantees.md.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from tests.proofs.nursery import Nursery
from tests.wandb_server import WandbServer

PHASE_S = 3.0
ROUNDS = 2


def main() -> None:
    """Print the table."""
    place = Path(tempfile.mkdtemp())
    server = WandbServer(place / "server").start()
    nursery = Nursery(place)
    args = {
        "use_wandb": True,
        "tracking_dir": str(place / "tracking"),
        "wandb_run_id": "job",
        "tracking_system_metrics": "off",
        "tracking_writer": "single",
        **server.options,
    }
    nursery.start(0, args, primary=True, is_timed=True, pause_s=0.001)
    while not server.rows("job"):
        time.sleep(0.1)
    spans: dict[str, list[tuple[float, float]]] = {}

    def phase(name: str) -> None:
        begun = time.time()
        time.sleep(PHASE_S)
        spans.setdefault(name, []).append((begun, time.time()))

    for _ in range(ROUNDS):
        phase("healthy")
        server.kill()
        phase("down")
        server.start()
        phase("healthy")
        for name, fault in (
            ("429", {"status": 429}),
            ("500", {"status": 500}),
            ("slow, 1 s a reply", {"action": "delay", "seconds": 1.0}),
            ("hangs", {"action": "hang"}),
        ):
            server.fail("*", **fault)
            phase(name)
            server.heal()
    nursery.finish_all()
    times = json.loads((place / "times").read_text())
    healthy = 0.0
    for name, of_phase in spans.items():
        costs = sorted(
            cost for begun, cost in times if any(start <= begun < end for start, end in of_phase)
        )
        p99 = costs[int(len(costs) * 0.99)]
        healthy = healthy or p99
        figures = (
            f"median {statistics.median(costs):6.1f} us  p99 {p99:7.1f} us  {p99 / healthy:4.2f}x"
        )
        print(f"{name:20} {len(costs):7,} calls  {figures}")
    nursery.close()
    server.kill()


if __name__ == "__main__":
    main()
