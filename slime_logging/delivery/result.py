"""How a delivery to one tracker stands, for whoever waits for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DeliveryResult:
    """How a delivery ended. `num_left` counts the rows that this process sees and the tracker has
    not confirmed.
    """

    backend: str
    state: str
    reason: str
    num_confirmed: int
    num_left: int
    num_set_aside: int

    @property
    def is_complete(self) -> bool:
        """Whether the tracker holds everything."""
        return self.state == "closed" and self.num_left == 0
