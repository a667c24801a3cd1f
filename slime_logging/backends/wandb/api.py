"""The run as W&B's server holds it, by the public `wandb.Api`; used in the process of the backend.

Policy: reads only. It also judges what W&B raises, because both sides of the client raise the same
errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from slime_logging.errors import BackendError, TryAgain, WillNeverWork

API_TIMEOUT_S = 20
STATUS = re.compile(r"(?:error|HTTP|status|code|upload|response)\s*:?\s*([45]\d\d)\b")
"""HTTP statuses as the writing half of the client words them ("returned error 401", "HTTP 500",
"upload: 403").
"""

KEY_ADVICE = (
    "W&B does not accept the API key, or there is none: set --wandb-key or WANDB_API_KEY to a key"
    " of the server in --wandb-host (its page /authorize shows yours)"
)


def read_history(where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The whole history, line by line; a run that the server does not know has none."""
    run = find_run(where)
    yield from () if run is None else run.scan_history(use_cache=False)


def read_tail(where: Mapping[str, Any], num_lines: int) -> list[dict[str, Any]]:
    """The last `num_lines` history rows, as the server knows them now."""
    run = find_run(where)
    if run is None:
        return []
    return list(
        run.scan_history(min_step=max(0, run.lastHistoryStep + 1 - num_lines), use_cache=False)
    )


def read_config(where: Mapping[str, Any]) -> dict[str, Any]:
    """The run's configuration without W&B's own `_wandb`."""
    run = find_run(where)
    return {} if run is None else dict(run.config)


def find_run(where: Mapping[str, Any]) -> Any:
    """The run, None where the server has none of this id."""
    import wandb

    overrides = {"base_url": where["base_url"]} if where["base_url"] else None
    api = wandb.Api(overrides=overrides, api_key=where["api_key"], timeout=API_TIMEOUT_S)
    entity = where["entity"] or api.default_entity
    try:
        return api.run(f"{entity}/{where['project']}/{where['run_id']}")
    except (ValueError, wandb.errors.CommError) as error:
        # It has no error of its own for this, but the text "Could not find run <...>".
        if "Could not find run" in str(error):
            return None
        raise


def judge(error: Exception) -> BackendError:
    """Whatever the client raised, as an error of ours."""
    if isinstance(error, BackendError):
        return error
    name = type(error).__name__
    text = f"{name}: {error}"
    statuses = {int(status) for status in STATUS.findall(text)} | set(_http_statuses(error))
    if 401 in statuses or "No API key configured" in text or "api_key" in text:
        return WillNeverWork(f"{KEY_ADVICE} ({text})")
    return WillNeverWork(text) if name in ("UsageError", "ValidationError") else TryAgain(text)


def is_forbidden(error: Exception) -> bool:
    """Whether the server lets this key read nothing, or has no such page."""
    return bool(set(_http_statuses(error)) & {400, 401, 403, 404, 405, 501}) or (
        isinstance(judge(error), WillNeverWork)
    )


def _http_statuses(error: BaseException | None) -> Iterator[int]:
    """The statuses that the reading half of the client puts into the errors behind the one that it
    raises.
    """
    while error is not None:
        status = getattr(getattr(error, "response", None), "http_status", 0)
        if status:
            yield status
        error = error.__cause__ or error.__context__
