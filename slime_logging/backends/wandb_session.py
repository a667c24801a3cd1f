"""One run of W&B's client, inside the worker process.

Policy: it may raise whatever the client raises; the worker judges that. It uses the `Run` object only, never the
module-level functions, and no private ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MAX_BOUND_KEYS = 1_000
"""Every declaration is sent with every upload of the configuration: keys beyond this many have no axis of their own."""


class Session:
    """The client's run, from `open` to `close`; the step axes that it has declared."""

    def __init__(self) -> None:
        self._run: Any = None
        self._axes: dict[str, str] = {}
        self._axis_of: dict[str, str] = {}
        self._num_bound = 0

    def open(self, settings: Mapping[str, Any], axes: Mapping[str, str]) -> None:
        """Create or continue the run, and declare every axis of the table."""
        import wandb

        # The client falls back to a temporary directory, without a word, where it cannot write.
        Path(settings["root_dir"], "wandb").mkdir(parents=True, exist_ok=True)
        known = {
            key: value for key, value in settings.items() if key in wandb.Settings.model_fields and value is not None
        }
        self._run = wandb.init(settings=wandb.Settings(**known))
        for prefix, step_key in axes.items():
            self._declare(step_key)
            self._axes[prefix] = step_key
            self._run.define_metric(f"{prefix}/*", step_metric=step_key)

    def set_config(self, changed: Mapping[str, Any]) -> None:
        """Add the keys that changed."""
        self._run.config.update(dict(changed), allow_val_change=True)

    def write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Log history rows, each given with its step key."""
        log = self._run.log
        for step_key, row in rows:
            for key in row:
                if key not in self._axis_of:
                    self._bind(key, step_key)
            log(row)

    def close(self, exit_code: int | None, last_row: str | None, timeout_s: float) -> None:
        """Flush everything; `exit_code` None leaves a run that is not over."""
        import wandb

        if exit_code is None and self._run.settings.x_update_finish_state and self._run.settings.mode != "offline":
            # "preempted" is the one state of W&B's that means: it stopped, and will be continued.
            self._run.mark_preempting()
            exit_code = 255
        self._run.finish(exit_code=exit_code or 0)
        # finish() returned before the .wandb file was complete in 13 of 100 runs; after teardown() in 0 of 40.
        wandb.teardown()

    def _declare(self, step_key: str) -> None:
        self._run.define_metric(step_key)
        self._axis_of[step_key] = step_key

    def _bind(self, key: str, step_key: str) -> None:
        """Draw a key over the step key it was first logged with, unless the table already says so."""
        self._axis_of[key] = step_key
        if step_key not in self._axis_of:
            self._declare(step_key)
        is_told = self._axes.get(key.partition("/")[0]) == step_key and "/" in key
        if is_told or key.startswith("_") or "*" in key or self._num_bound >= MAX_BOUND_KEYS:
            return
        self._num_bound += 1
        self._run.define_metric(key.replace(".", "\\."), step_metric=step_key)
