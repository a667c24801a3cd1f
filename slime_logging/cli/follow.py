"""`slime-logging sync --follow RUN|DIR`: deliver live what jobs only write, from where there is
internet.

Policy: it goes on until Ctrl-C or SIGTERM, whatever becomes of a run; what must not be delivered
is told in the run's own line. In a terminal there is one line a run; what is piped gets a line
where a run's state changes, and at most every `QUIET_S` where rows came.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slime_logging.cli.runs import (
    check_trackers,
    console,
    facts_of,
    one_line,
    plain,
    redactor_of,
    runs_directory,
)
from slime_logging.cli.trust import check_links

if TYPE_CHECKING:
    from slime_logging.delivery.follow import Followed, Follower
    from slime_logging.delivery.spec import DeliverySpec
    from slime_logging.record.run import RunDirectory

LABEL = "follow"
"""Of its cursors: the lock lets one follower at a time write them."""

LOOK_S = 1.0
QUIET_S = 10.0


def follow(
    where: str,
    tracking_dir: Path | None,
    to: Sequence[str],
    overrides: dict[str, object],
    timeout_s: float,
) -> None:
    """Deliver a run, or every run below a directory, until this process is told to end.

    Args:
        where: a run as for the other commands, or a directory.
        tracking_dir: where runs are kept.
        to: the trackers; those of each job where empty.
        overrides: options of this command line.
        timeout_s: how long a tracker may take at a run's end.

    Raises:
        RunNotFoundError: there is neither such a run nor such a directory.
        SettingsError, MissingBackendError: a tracker that is named cannot be delivered to.
    """
    from slime_logging.delivery.follow import Follower

    check_trackers(to)
    runs = _runs(where, tracking_dir)
    follower = Follower(
        lambda directory: _spec(directory, to or directory.read().trackers, overrides, timeout_s)
    )
    screen = _Screen(Path(where))
    try:
        with screen:
            _go_on(follower, runs, screen)
    finally:
        follower.kill()


def _go_on(follower: Follower, runs: Callable[[], list[RunDirectory]], screen: _Screen) -> None:
    is_told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: is_told.append(number))
    while not is_told:
        follower.look(runs())
        screen.show(follower.runs)
        _sleep(LOOK_S, is_told)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
    screen.tell("ending: the trackers are closed; another Ctrl-C ends it at once")
    follower.end()
    screen.show(follower.runs, is_last=True)


def _sleep(seconds: float, is_told: list[int]) -> None:
    deadline_s = time.monotonic() + seconds
    while not is_told and time.monotonic() < deadline_s:
        time.sleep(0.05)


def _runs(where: str, tracking_dir: Path | None) -> Callable[[], list[RunDirectory]]:
    from slime_logging.delivery.follow import runs_below
    from slime_logging.record.finding import find_run

    place = Path(where).expanduser()
    if place.is_dir():
        return lambda: list(runs_below(place))
    found = find_run(where, runs_directory(tracking_dir))
    return lambda: [found]


def _spec(
    directory: RunDirectory,
    trackers: Sequence[str],
    overrides: dict[str, object],
    timeout_s: float,
) -> DeliverySpec:
    """What is delivered of a run, if the user's own words allow it."""
    import socket

    from slime_logging.backends.table import tracker_environment
    from slime_logging.delivery.spec import DeliverySpec

    check_links(directory)
    check_trackers(trackers)
    run = directory.read()
    facts = facts_of(directory, run, overrides, trackers, is_writing=True)
    return DeliverySpec(
        directory=str(directory.path),
        trackers=tuple(trackers),
        label=LABEL,
        start=run.num_starts,
        host=socket.gethostname(),
        host_label="",
        pid=0,
        is_primary=True,
        is_following=True,
        finish_timeout_s=timeout_s,
        options=facts.options,
        environment={name: tracker_environment(name) for name in trackers},
    )


class _Screen:
    """One line a run, in a terminal or in a file.

    Args:
        place: what is followed; runs are named as they lie below it.
    """

    def __init__(self, place: Path) -> None:
        from rich.live import Live

        self._place = place
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False)
        self._redactor = redactor_of({})
        self._told: dict[Path, tuple[str, str, float]] = {}

    def __enter__(self) -> _Screen:
        """Begin to draw, in a terminal."""
        if self._console.is_terminal:
            self._live.start()
        else:
            self.tell(f"following {self._place}; Ctrl-C ends it")
        return self

    def __exit__(self, *_: object) -> None:
        """End the drawing; its last state stays."""
        self._live.stop()

    def tell(self, text: str) -> None:
        """Print a line by itself."""
        self._console.print(plain(text), soft_wrap=True)
        self._console.file.flush()

    def show(self, runs: Sequence[Followed], *, is_last: bool = False) -> None:
        """Show how the runs stand."""
        lines = {run.directory.path: self._line(run) for run in runs}
        if self._console.is_terminal:
            from rich.text import Text

            text = "\n".join(lines.values()) or f"no runs in {self._place} yet"
            self._live.update(Text(text), refresh=True)
            return
        now_s = time.monotonic()
        for run in runs:
            line = lines[run.directory.path]
            state, told, told_s = self._told.get(run.directory.path, ("", "", 0.0))
            is_due = is_last or run.state != state or now_s - told_s >= QUIET_S
            if line != told and is_due:
                self.tell(line)
                self._told[run.directory.path] = (run.state, line, now_s)

    def _line(self, run: Followed) -> str:
        name = os.path.relpath(run.directory.path, self._place)
        name = run.directory.path.name if name == "." or name.startswith("..") else name
        figures = [f"{tracker} {number:,} rows" for tracker, number in run.rows.items()]
        if run.state not in ("complete", "no tracker"):
            figures.append(f"{run.num_bytes_left:,} bytes to go")
        reason = f"  ({self._redactor.message(run.reason)})" if run.reason else ""
        return one_line(f"{name}  {run.state}  {', '.join(figures)}{reason}")
