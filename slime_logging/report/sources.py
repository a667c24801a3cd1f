"""Who logged a line of a chart: one process of a role in one run, the same over its restarts.

Policy: lines of different processes are never mixed. A process is known by its rank where it has
one, else by its turn among those of its role.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from slime_logging.record.entries import Opening

SYSTEM = "system"
"""The role of those that watch a host, and the prefix of their metrics."""

_RANK = re.compile(r"-r(\d{1,9})-")


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """`run` is the run's label, "" where there is one run only; `role` is what the process is
    called where it has none; `member` tells the processes of a role apart. `order` is where it
    stands among all: roles as the run names them, hosts last.
    """

    order: tuple[bool, int, int, int]
    run: str
    role: str
    member: str

    def label(self, others: Collection[Source]) -> str:
        """Its name among those in the same chart: as short as tells it from them."""
        same_role = sum((each.run, each.role) == (self.run, self.role) for each in others) > 1
        words = (self.run, self.role, self.member if same_role else "")
        return " ".join(word for word in words if word)


class Sources:
    """The sources of one run, by the opening lines of their journals.

    Args:
        run: the run's label.
        number: of the run.
        roles: those that the run names.
    """

    def __init__(self, run: str, number: int, roles: Sequence[str]) -> None:
        self.known: dict[tuple[str, str], Source] = {}
        self.run = run
        self._number = number
        self._roles = {role: place for place, role in enumerate(roles)}
        self._turns: dict[tuple[int, str], dict[tuple[str, int], int]] = {}

    def of(self, opening: Opening) -> Source:
        """The source of a journal: the same for each journal of one process."""
        role = opening.process
        member = self._member(opening, role)
        return self.known.setdefault(
            (role, member),
            Source(
                order=(role == SYSTEM, self._number, self._place(role), len(self.known)),
                run=self.run,
                role=role,
                member=member,
            ),
        )

    def _place(self, role: str) -> int:
        return self._roles.setdefault(role, len(self._roles))

    def _member(self, opening: Opening, role: str) -> str:
        if found := _RANK.search(opening.journal):
            return f"rank {int(found.group(1))}"
        turns = self._turns.setdefault((opening.start, role), {})
        return f"process {turns.setdefault((opening.host, opening.pid), len(turns) + 1)}"
