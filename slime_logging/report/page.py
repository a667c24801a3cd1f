"""The page as HTML: one file that loads nothing and runs nothing.

Policy: every text is escaped by jinja2, and by `shown` before it; the page forbids itself scripts,
requests and frames, so that a hostile run can do nothing in the browser of who looks at it.
"""

from __future__ import annotations

import time

import jinja2

from slime_logging.layout.diff import MISSING
from slime_logging.report.chart import HEIGHT, WIDTH
from slime_logging.report.gather import Report, shown

NUM_COLOURS = 6


def page(report: Report) -> str:
    """The HTML document."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("slime_logging.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"text": shown, "clock": _clock}
    return environment.get_template("page.html.j2").render(
        report=report,
        status=report.status,
        run=report.status.run,
        missing=MISSING,
        width=WIDTH,
        height=HEIGHT,
        num_colours=NUM_COLOURS,
    )


def _clock(time_s: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_s))
    except (OverflowError, ValueError, OSError):  # a time that a damaged or hostile journal made up
        return "-"
