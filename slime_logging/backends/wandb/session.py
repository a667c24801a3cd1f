"""One run of W&B's client.

Policy: it may raise whatever the client raises; the backend judges that. It uses the `Run` object
only, never the module-level functions, and no private ones. The client is silent towards its caller
when the server refuses its stream for good (400, 401, 403, 404, 409, 413, 422, 501) and uploads
nothing from then on: `write` and `close` look for that in the client's own log, and `close` asks
the server for the last row besides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slime_logging.backends.wandb import api as wandb_api
from slime_logging.backends.wandb import offline as wandb_offline
from slime_logging.backends.wandb.form import ROW_KEY
from slime_logging.backends.wandb.media import KIND_SUFFIX, media_objects
from slime_logging.errors import TryAgain

MAX_BOUND_KEYS = 1_000
"""Every declaration is sent with every upload of the configuration: keys beyond this many have no
axis of their own.
"""

SUMMARY = "min,max,mean,last"
"""What W&B's table of runs has of a metric; by itself it keeps the last value only."""

REFUSAL_MARK = b"filestream: fatal error"
REFUSAL_CHECK_INTERVAL_S = 5.0
CONFIRM_INTERVAL_S = 0.5
CONFIRM_LINES = 1_000
TEARDOWN_S = 10.0
LEFT_EXIT_CODE = 255
PREEMPTED_CODE = 143
"""SIGTERM, as a shell reports it."""


class Session:
    """The client's run, from `open` to `close`; the step axes that it has declared."""

    def __init__(self) -> None:
        self._run: Any = None
        self._settings: Mapping[str, Any] = {}
        self._axes: dict[str, str] = {}
        self._axis_of: dict[str, str] = {}
        self._num_bound = 0
        self._directory = Path()
        self._media_keys: set[str] = set()
        self._next_check_s = 0.0

    def open(self, settings: Mapping[str, Any], axes: Mapping[str, str], directory: str) -> str:
        """Create or continue the run, and declare every axis of the table; returns the address of
        its page. `directory` holds the files of its media.
        """
        import wandb

        self._directory = Path(directory)

        # The client falls back to a temporary directory, without a word, where it cannot write.
        Path(settings["root_dir"], "wandb").mkdir(parents=True, exist_ok=True)
        known = {
            key: value
            for key, value in settings.items()
            if key in wandb.Settings.model_fields and value is not None
        }
        self._settings = settings
        self._run = wandb.init(settings=wandb.Settings(**known))
        for prefix, step_key in axes.items():
            self._declare(step_key)
            self._axes[prefix] = step_key
            self._run.define_metric(f"{prefix}/*", step_metric=step_key, summary=SUMMARY)
        return str(self._run.url or "")

    def set_config(self, changed: Mapping[str, Any]) -> None:
        """Add the keys that changed."""
        self._run.config.update({**self._keys_of_others(), **changed}, allow_val_change=True)

    def _keys_of_others(self) -> dict[str, Any]:
        """What a shared client would wipe out: each upload is a client's whole configuration, and
        on a server that replaces, the last one to upload stands. So it adds what it does not know
        first: the primary too, which does not see what another host's processes said late.
        """
        if self._settings["mode"] != "shared":
            return {}
        try:
            there = wandb_api.read_config({**self._settings, "entity": self._run.entity})
        except Exception:
            # A server, or a key, that lets nobody read: the primary, which knows all of it, uploads
            # it at its end.
            return {}
        known = set(self._run.config.keys())
        return {key: value for key, value in there.items() if key not in known}

    def write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Log history rows, each given with its step key."""
        if time.monotonic() >= self._next_check_s:
            self._raise_if_refused()
            self._next_check_s = time.monotonic() + REFUSAL_CHECK_INTERVAL_S
        log = self._run.log
        for step_key, row in rows:
            for key in row:
                if key not in self._axis_of:
                    self._bind(key, step_key)
            if self._media_keys and (media_keys := self._media_keys & row.keys()):
                row = {**row, **self._media_of(row, media_keys, step_key)}
            log(row)

    def close(self, exit_code: int | None, last_row: str | None, timeout_s: float) -> None:
        """Flush everything, have the server confirm the last row; `exit_code` None leaves a run
        that is not over.
        """
        deadline_s = time.monotonic() + timeout_s * 0.9
        is_online = self._settings["mode"] != "offline"
        is_leaving = exit_code is None and self._settings["x_update_finish_state"]
        if is_online and (is_leaving or exit_code == PREEMPTED_CODE):
            # W&B's state for a run that stopped from outside, and may be continued.
            self._run.mark_preempting()
            exit_code = exit_code or LEFT_EXIT_CODE
        entity = self._run.entity
        others = self._keys_of_others()
        if others:
            self._run.config.update(others, allow_val_change=True)
        self._run.finish(exit_code=exit_code or 0)
        if not is_online:
            _end_service(
                Path(self._run.settings.sync_file),
                min(TEARDOWN_S, max(0.0, deadline_s - time.monotonic())),
            )
            return
        # The service is left to be killed with this process: the server has everything, and the
        # service, asked to end, has been seen not to (in 2 of some 3,000 runs).
        self._raise_if_refused()
        if last_row is not None:
            wait_for_row({**self._settings, "entity": entity}, last_row, deadline_s)

    def _media_of(
        self, row: Mapping[str, Any], media_keys: set[str], step_key: str
    ) -> Mapping[str, Any]:
        objects = media_objects(row, media_keys, self._directory)
        for key in objects:
            self._bind(key, step_key)
        return objects

    def _raise_if_refused(self) -> None:
        try:
            log = Path(self._run.settings.log_internal).read_bytes()
        except OSError:
            return
        position = log.find(REFUSAL_MARK)
        if position >= 0:
            text = log[position:].split(b"\n", 1)[0].decode(errors="replace")
            raise TryAgain(f"W&B's server refused the rows, and the client stopped sending: {text}")

    def _declare(self, step_key: str) -> None:
        self._run.define_metric(step_key)
        self._axis_of[step_key] = step_key

    def _bind(self, key: str, step_key: str) -> None:
        """Draw a key over the step key it was first logged with, unless the table already says
        so.
        """
        if step_key not in self._axis_of:
            self._declare(step_key)
        self._axis_of.setdefault(key, step_key)
        if key.endswith(KIND_SUFFIX):
            self._media_keys.add(key)
        prefix, slash, _ = key.partition("/")
        is_told = bool(slash) and self._axes.get(prefix) == step_key
        if (
            is_told
            or key == step_key
            or key.startswith("_")
            or "*" in key
            or self._num_bound >= MAX_BOUND_KEYS
        ):
            return
        self._num_bound += 1
        self._run.define_metric(key.replace(".", "\\."), step_metric=step_key, summary=SUMMARY)


def _end_service(file: Path, timeout_s: float) -> None:
    """Have the service end, and so its file be whole: `finish` returned before that in 13 of 100
    runs, `teardown` in none of 40.

    Raises:
        TryAgain: it did not end in time, and the file is not whole.
    """
    import wandb

    # `teardown` waits for ever for a service that does not end.
    thread = threading.Thread(target=wandb.teardown, daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive() and not wandb_offline.is_ended(file):
        raise TryAgain(
            f"W&B's service did not end within {timeout_s:.3g} s, and its file is not whole"
        )


def wait_for_row(where: Mapping[str, Any], row_id: str, deadline_s: float) -> None:
    """Return when the row is among the server's last lines; its counts lag by seconds, so it is
    asked again.

    Raises `TryAgain` at the deadline. The window grows, because other shared writers may have added
    lines behind it.
    """
    num_lines = CONFIRM_LINES
    while True:
        try:
            tail = wandb_api.read_tail(where, num_lines)
        except Exception as error:
            if wandb_api.is_forbidden(error):
                # A server, or a key, that lets nobody read: the client's own log is all there is to
                # go by.
                return
            tail = []
        if any(row.get(ROW_KEY) == row_id for row in tail):
            return
        if time.monotonic() + CONFIRM_INTERVAL_S > deadline_s:
            raise TryAgain(f"W&B's server does not show the last row, {row_id}, yet")
        time.sleep(CONFIRM_INTERVAL_S)
        num_lines *= 2
