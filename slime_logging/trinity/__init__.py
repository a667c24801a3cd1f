"""Trinity-RFT's door: `monitor_type: slime_logging`.

    trinity run --config job.yaml --plugin-dir $(python -m slime_logging.trinity)

Policy: what Trinity calls is answered, and nothing of it raises into training after the start. In
the modes `both` and `colocate` explorer and trainer are one run, each under its own prefix over its
own step; in every other mode a process makes a run of its own. The run lives in the job's
checkpoint directory, and a job that continues there continues the run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from slime_logging.joining import join
from slime_logging.run import Run

SHARED_MODES = ("both", "colocate")
FOLDER = "slime_logging"


class SlimeLoggingMonitor:
    """A monitor of Trinity's, by the interface of `trinity.utils.monitor.Monitor`.

    Args:
        project: Trinity's `project`.
        group: Trinity's `group`.
        name: Trinity's `name`: the run's in the modes that share one, else `<name>_<role>`.
        role: `explorer`, `trainer`, or what the configuration calls them.
        config: Trinity's whole `Config`; logged under the role's prefix. `monitor.monitor_args`
            holds arguments of `slime_logging.join` (`trackers`, `directory`, `id`) and its options.

    Raises:
        SettingsError, MissingBackendError, OSError: as `slime_logging.join`.
    """

    def __init__(self, project: str, group: str, name: str, role: str, config: Any = None) -> None:
        from trinity.utils.log import get_logger

        given: dict[str, Any] = dict(config.monitor.monitor_args or {})
        default = os.path.join(config.monitor.cache_dir, FOLDER)  # noqa: PTH118 - a text, as theirs
        self._run: Run | None = join(
            config,
            role=role.replace("/", "_"),
            project=project,
            group=group or None,
            name=name if config.mode in SHARED_MODES else f"{name}_{role}",
            trackers=given.pop("trackers", None),
            directory=given.pop("directory", None) or default,
            id=given.pop("id", None),
            resume=bool(config.continue_from_checkpoint),
            options={key: value for key, value in given.items() if value is not None},
        )
        self._console = get_logger(__name__, in_ray_actor=True)

    @classmethod
    def default_args(cls) -> dict[str, Any]:
        """What Trinity fills in where `monitor_args` is left out."""
        return {}

    def log(self, data: Mapping[str, Any], step: int, commit: bool = False) -> None:  # noqa: ARG002
        """Log a row; each call is one, so `commit` changes nothing."""
        if self._run is not None:
            self._run.log(data, step)
            shown = {key: _short(value) for key, value in data.items()}
            self._console.info("Step %s: %s", step, shown)

    def log_table(self, table_name: str, experiences_table: Any, step: int) -> None:  # noqa: ARG002
        """Log experiences, a data frame, as the role's table of samples."""
        if self._run is not None:
            self._run.log_samples(experiences_table.to_dict("records"), step)

    def close(self) -> None:
        """End this process's part of the run; more than once does nothing."""
        run, self._run = getattr(self, "_run", None), None
        if run is not None:
            run.finish()

    def __del__(self) -> None:
        """As Trinity's own monitors; nothing can be raised here."""
        with suppress(Exception):
            self.close()


def _short(value: Any) -> Any:
    with suppress(Exception):
        return float(f"{float(value):.6g}")
    return type(value).__name__
