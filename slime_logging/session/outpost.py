"""A process on a host that does not see the run's directory: where its journal goes, and who brings
it to the run.

Policy: its journal is as safe as any, in a directory of this host that says of which run it is one.
Where Ray is up, a relay carries it to the run while it grows, and the run keeps one writer. Where
it is not, the process says so at once, with the host, the directory and the commands; W&B online
still gets the rows from here, unless the job wants a single writer.
"""

from __future__ import annotations

import logging
import socket
from argparse import Namespace
from dataclasses import replace

from slime_logging.hosts.relay import ensure
from slime_logging.hosts.relay_status import bring_by_hand, wait_until_carried
from slime_logging.hosts.rendezvous import WAYS_TO_JOIN, RunAddress
from slime_logging.layout.scope import run_roles
from slime_logging.record.run import RUN_FILE, RunDirectory, RunFile
from slime_logging.redaction.redact import Redactor
from slime_logging.session.description import describe_run
from slime_logging.settings.settings import Settings

logger = logging.getLogger("slime_logging")

MAX_WAIT_S = 30.0
"""The longest time that the end of a process waits for the relay, seconds."""


class Outpost:
    """This host's directory for a run whose own one it does not see.

    `delivers` names the trackers that get the rows from this host itself; `address` is the run's.

    Args:
        args: of the process that joins.
        address: the run.
        settings: of this process.
        redactor: hides the secrets in what the directory says of the run.

    Raises:
        OSError: the directory cannot be made.
    """

    def __init__(
        self, args: Namespace, address: RunAddress, settings: Settings, redactor: Redactor
    ) -> None:
        self.address = address
        self._timeout_s = min(settings.finish_timeout_s, MAX_WAIT_S)
        self.directory = RunDirectory(settings.directory / address.run_id)
        self.directory.create()
        where, run_id = settings.directory, address.run_id
        self._miss = (
            f"does not see the run's directory {address.directory}"
            if address.directory
            else f"finds no run {run_id} below {where} (to join: {WAYS_TO_JOIN})"
        )
        described = describe_run(address.run_id, settings, run_roles(args), redactor)
        self.run: RunFile = replace(
            described, num_starts=address.start, outpost_of=address.to_token()
        )
        if not (self.directory.path / RUN_FILE).exists() or self._is_of_an_earlier_start():
            self.directory.write(self.run)
        self._is_carried = ensure(address, self.directory.path)
        can_deliver = "wandb" in settings.delivers and settings.is_wandb_online
        can_deliver &= settings.writer != "single"
        self.delivers: tuple[str, ...] = ("wandb",) if can_deliver and not self._is_carried else ()

    def tell(self, role: str | None) -> None:
        """At the join: say where the rows are, loudly where nobody carries them."""
        if self._is_carried:
            logger.warning(
                "slime_logging: this host's rows are kept in %s and brought to the run by a relay."
                " If the cluster dies, copy that directory to the run's host, and there:"
                " slime-logging merge COPY --into RUN",
                self.directory.path,
            )
            return
        logger.error(
            "slime_logging: %s on host %s %s%s. %s",
            f"role {role}" if role else "a process without a role",
            socket.gethostname(),
            self._miss,
            ", and sends its rows to W&B alone, from here" if self.delivers else "",
            bring_by_hand(self.directory.path),
        )

    def wait(self, journal: str) -> str:
        """At the end: wait, bounded, until the run has all of a journal; returns "" or what to
        type.
        """
        if not self._is_carried:
            return "" if self.delivers else bring_by_hand(self.directory.path)
        why = wait_until_carried(self.directory, journal, self._timeout_s)
        return why and bring_by_hand(self.directory.path, why)

    def _is_of_an_earlier_start(self) -> bool:
        return self.directory.read().num_starts < self.run.num_starts
