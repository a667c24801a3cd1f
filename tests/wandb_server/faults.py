"""What the server does wrong on purpose, at chosen operations and moments."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

ACTIONS = ("status", "hang", "cut", "cut_after", "delay")


@dataclass
class Fault:
    """One rule: requests of `op` (`*`: all; `graphql`: every GraphQL operation) meet `action`.

    The first `skip` matching requests pass, then `times` of them fail (None: all), within `for_s` seconds of the
    rule's making (None: for ever). "cut" closes the connection unanswered and changes nothing; "cut_after" does what
    was asked and then closes it; "hang" answers never; "delay" answers after `seconds`.
    """

    op: str
    action: str = "status"
    status: int = 500
    times: int | None = None
    skip: int = 0
    for_s: float | None = None
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"no such action: {self.action}")


class Faults:
    """The rules in force; the oldest that matches counts."""

    def __init__(self) -> None:
        self._rules: list[tuple[Fault, float]] = []
        self._lock = threading.Lock()
        self.cleared = threading.Event()

    def add(self, fault: Fault) -> None:
        """Put a rule in force."""
        with self._lock:
            self.cleared = threading.Event()
            self._rules.append((fault, time.monotonic()))

    def clear(self) -> None:
        """Lift all rules, and let go of what hangs."""
        with self._lock:
            self._rules.clear()
            self.cleared.set()

    def match(self, op: str, *, is_graphql: bool) -> Fault | None:
        """The rule for this request, counted as used."""
        with self._lock:
            for fault, since_s in self._rules:
                if fault.op not in ("*", op) and not (fault.op == "graphql" and is_graphql):
                    continue
                if fault.times == 0 or (
                    fault.for_s is not None and time.monotonic() - since_s > fault.for_s
                ):
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None
