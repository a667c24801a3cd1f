"""Where Ray is up: journals of hosts that do not see the run's directory, carried to it while they
grow.

    training process --> journal --> Relay actor  ~ bytes ~>  Receiver actor --> copy --> delivery
                         on its host, one a directory         on a node that sees the run

Policy: training processes only start a relay, and look at the file that it leaves beside their
journals; they wait for no actor. The actors are detached, so that they survive whoever made them,
and end by themselves: the receiver when the run has no living primary and nothing came for
`GRACE_S`, a relay when the receiver says that the run is over, or when none was found for
`PATIENCE_S`. A relay whose process dies is made again by Ray, one whose node died by the receiver,
when that host is back; a receiver by the relays. What could not be carried stays where it is, and
the command that brings it is printed there.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

from slime_logging.hosts.carry import Carrier
from slime_logging.hosts.copies import Copies, Piece, Reply
from slime_logging.hosts.ray_nodes import (
    all_say_yes,
    ask,
    end,
    find_actor,
    find_actors,
    is_ray_up,
    living_nodes,
    make_actor,
    me,
    node_where,
    successors,
    this_node,
)
from slime_logging.hosts.relay_status import RelayStatus, bring_by_hand, write_status
from slime_logging.hosts.rendezvous import RunAddress, see
from slime_logging.record.journal import is_written
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

ROUND_S = 0.2
HELLO_S = 3.0
WATCH_S = 3.0
GRACE_S = 20.0
PATIENCE_S = 600.0
TELL_S = 15.0
NUM_AT_ONCE = 4

Where = tuple[str, str, str]
"""Of a relay: its host's name, its directory, its node."""


def ensure(address: RunAddress, directory: Path) -> bool:
    """See to it that this host has a relay for a directory; does not wait for it. Cheap when it is
    there already.

    Args:
        address: the run, with its own directory.
        directory: where this host keeps journals of it.

    Returns:
        Whether there is one now: False without Ray, without an address to bring them to, and when
        Ray refuses, which is told.
    """
    if not is_ray_up() or address.directory is None:
        return False
    try:
        make_relay(address, directory, this_node())
    except Exception as error:  # Ray's own errors, of many kinds: tracking must not end training
        logger.error("slime_logging: Ray made no relay for %s: %s", directory, error)
        return False
    return True


def flush(address: RunAddress, timeout_s: float) -> bool:
    """In the primary, before it ends: have every relay of the run carry what is there now, those
    too that Ray is still making. Bounded; never raises.

    Returns:
        Whether all of them did so in time.
    """
    if not is_ray_up():
        return True
    try:
        return all_say_yes(find_actors(_relay_name(address.to_token(), "")), "flush", timeout_s)
    except Exception as error:  # Ray's own errors
        logger.debug("slime_logging: relays were not flushed: %s", error)
        return False


def make_relay(address: RunAddress, directory: Path, node: str) -> Any:
    """The relay of a directory on a node, made if it is not there."""
    words = (address.to_token(), str(directory))
    return make_actor(Relay, _relay_name(words[0], f"{words[1]!r} {node}"), node, *words)


def find_receiver(address: RunAddress) -> Any:
    """The run's receiver; made, on the first node that sees its directory, if it is not there.

    Raises:
        LookupError: no node of the cluster sees it.
    """
    token = address.to_token()
    name = f"receiver {token!r}"
    if (found := find_actor(name)) is not None:
        return found
    node = node_where(sees_own_directory, token)
    if node is None:
        raise LookupError(f"no node of this Ray cluster sees {address.directory}")
    return make_actor(Receiver, name, node, token, at_once=NUM_AT_ONCE)


def sees_own_directory(token: str) -> bool:
    """Whether this process sees the run's own directory, and not one of a host that does not."""
    return see(RunAddress.of_token(token), 0.0) is not None


class Relay:
    """An actor: carries one directory of its host, in a thread of its own.

    Args:
        token: the run's address.
        directory: on this host.
    """

    def __init__(self, token: str, directory: str) -> None:
        self._address = RunAddress.of_token(token)
        self._directory = Path(directory)
        self._receiver: Any = None
        self._is_over = False
        self._carrier = Carrier(self._directory, self._hand)
        self._lock = threading.Lock()
        self._said: RelayStatus | None = None
        self._hello_s = 0.0
        self._good_s = self._moved_s = time.monotonic()
        threading.Thread(target=self._carry_on, name="slime-logging-relay", daemon=True).start()

    def _carry_on(self) -> None:
        has_told = False
        while True:
            self.flush()
            waited_s = time.monotonic() - self._good_s
            is_done = self._is_over and time.monotonic() - self._moved_s > GRACE_S / 2
            if is_done or waited_s > PATIENCE_S:
                return end(me())
            if waited_s > TELL_S and not has_told:
                why = self._said.problem if self._said else ""
                logger.error("slime_logging: %s", bring_by_hand(self._directory, why))
            has_told = waited_s > TELL_S
            time.sleep(ROUND_S)

    def flush(self) -> bool:
        """Carry what is there now; whether all of it was taken."""
        with self._lock:
            try:
                if time.monotonic() - self._hello_s > HELLO_S:
                    self._say_hello()
                if self._carrier.carry():
                    self._moved_s = time.monotonic()
                problem = self._carrier.problem
            except Exception as error:  # Ray's: no receiver, a dead one, one that is made again
                self._receiver, self._hello_s = None, 0.0
                problem = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            if not problem:
                self._good_s = time.monotonic()
            status = RelayStatus(self._carrier.confirmed, problem, self._carrier.refused)
            if status != self._said and write_status(self._directory, status):
                self._said = status
            return not problem

    def _say_hello(self) -> None:
        self._receiver = self._receiver or find_receiver(self._address)
        where = (socket.gethostname(), str(self._directory), this_node())
        paths = RunDirectory(self._directory).journal_paths()
        living = [f"journals/{path.name}" for path in paths if is_written(path)]
        self._is_over = ask(self._receiver.know, where, me(), living)
        self._hello_s = time.monotonic()

    def _hand(self, piece: Piece) -> Any:
        return ask(self._receiver.take, piece)


class Receiver:
    """An actor on a node that sees the run's directory: appends what relays bring to its copies.

    Args:
        token: the run's address.
    """

    def __init__(self, token: str) -> None:
        self._address = RunAddress.of_token(token)
        assert self._address.directory is not None
        self._directory = RunDirectory(self._address.directory)
        self._copies = Copies(self._directory.path)
        self._relays: dict[tuple[str, str], tuple[str, Any]] = {}  # by node and directory
        self._moved_s = time.monotonic()
        threading.Thread(target=self._watch, name="slime-logging-receiver", daemon=True).start()

    def take(self, piece: Piece) -> Reply:
        """Append a piece to its copy."""
        if piece.data:
            self._moved_s = time.monotonic()
        return self._copies.take(piece)

    def know(self, where: Where, relay: Any, living: list[str]) -> bool:
        """Remember a relay, to make it again should its node die and come back, and which of its
        journals are still written; whether the run is over.
        """
        host, directory, node = where
        self._copies.keep(f"{node}:{directory}", living)
        self._relays[node, directory] = host, relay
        return not self._directory.locks.has_living_primary

    def _watch(self) -> None:
        while True:
            time.sleep(WATCH_S)
            is_over = not self._directory.locks.has_living_primary
            if is_over and time.monotonic() - self._moved_s > GRACE_S:
                end(me())
            try:
                self._make_again()
            except Exception as error:  # Ray's: tried again soon
                logger.debug("slime_logging: relays were not looked after: %s", error)

    def _make_again(self) -> None:
        """A host whose node died, and that has a node again, gets its relay back."""
        living = {node["NodeID"]: node["NodeManagerHostname"] for node in living_nodes()}
        hosts = {place: host for place, (host, _) in self._relays.items()}
        for (node, directory), again in successors(hosts, living).items():
            relay = make_relay(self._address, Path(directory), again)
            host, former = self._relays.pop((node, directory))
            self._relays[again, directory] = host, relay
            self._copies.keep(f"{node}:{directory}", [])
            end(former)


def _relay_name(token: str, rest: str) -> str:
    return f"relay {token!r} {rest}"
