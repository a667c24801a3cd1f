"""Where the inference engines' own metrics are, as a process of the job learns it."""

from __future__ import annotations

import logging

from slime_logging.record.engines import publish_engines
from slime_logging.session.session import Session

logger = logging.getLogger("slime_logging")


def show_engines(session: Session, router_addr: str) -> None:
    """Have the process that delivers sample them, and record the address in the configuration.

    Args:
        session: of a process that knows the engines' router.
        router_addr: such as `http://10.0.0.1:30000`; what has another form is told.
    """
    url = f"{router_addr.rstrip('/')}/engine_metrics"
    try:
        publish_engines(session.directory, url)
    except (OSError, ValueError) as error:
        shown = session.redactor.text(router_addr)
        text = "slime_logging: the engines' metrics are not sampled from %s: %s"
        logger.warning(text, shown, error)
    else:
        session.log_config({"open_metrics/sgl_engine": url}, None)
