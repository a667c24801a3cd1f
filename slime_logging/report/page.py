"""The page as HTML: one file that loads nothing.

Policy: every text is escaped by jinja2, and by `shown` before it. The page allows itself one style
and one script, both ours, by their hashes: those of a hostile run do nothing in the browser of who
looks at it, nor do its requests, forms and frames. All charts and tables are there without the
script too.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from importlib import resources
from urllib.parse import quote

import jinja2

from slime_logging.delivery.status import RunStatus
from slime_logging.layout.diff import MISSING
from slime_logging.report.chart import HEIGHT, LEFT, MARK_GAP, RIGHT, WIDTH
from slime_logging.report.gather import Report
from slime_logging.report.scale import Scale
from slime_logging.report.texts import shown

NUM_COLOURS = 8
"""Lines of one colour more differ by their dashes."""

MOST_OPEN = 60
"""Differences that stand above the charts; more of them are folded."""


def page(report: Report) -> str:
    """The HTML document."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("slime_logging.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "text": shown,
        "clock": _clock,
        "count": _count,
        "scale": _scale,
        "anchor": _anchor,
        "looks": _looks,
        "ending": _ending,
    }
    style, script = _part("page.css"), _part("page.js")
    return environment.get_template("page.html.j2").render(
        report=report,
        missing=MISSING,
        most_open=MOST_OPEN,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        gap=MARK_GAP,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        quote=quote,
    )


def _part(name: str) -> str:
    """A file of this package without what only its readers need: comments and indents."""
    text = resources.files("slime_logging.report").joinpath(name).read_text("utf-8")
    return re.sub(r"^\s*(?://.*\n)?", "", text, flags=re.MULTILINE)


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls a text by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _count(number: int, noun: str) -> str:
    """`1 chart`, `2 charts`, `2 processes`."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def _scale(scale: Scale) -> str:
    """The ends of a scale, and where it bends, for the script."""
    return " ".join(f"{value!r}" for value in (scale.low, scale.high, scale.bend))


def _anchor(name: str) -> str:
    """The id of a metric: no id of the page, and no name that a browser knows, begins so."""
    return f"m:{name}"


def _looks(number: int) -> str:
    """The classes of a line: its colour, and its dashes where the colours are used up."""
    dashes = number // NUM_COLOURS % 4
    return f"c{number % NUM_COLOURS}" + (f" d{dashes}" if dashes else "")


def _clock(time_s: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_s))
    except (OverflowError, ValueError, OSError):  # a time that a damaged or hostile journal made up
        return "-"


def _ending(status: RunStatus) -> str:
    """Whether a run is running or how it ended, and how long it took."""
    starts: dict[int, tuple[float, float, int | None]] = {}
    for journal in status.journals:
        opened_s = journal.opening.time_s
        first_s, last_s, code = starts.get(journal.opening.start, (opened_s, opened_s, None))
        if journal.opening.is_primary and journal.opening.owner is None:
            code = journal.exit_code
        starts[journal.opening.start] = min(first_s, opened_s), max(last_s, journal.last_s), code
    if not starts:
        return "has not begun"
    took = _duration(sum(max(0.0, last_s - first_s) for first_s, last_s, _ in starts.values()))
    if status.is_running:
        return f"running for {took}"
    _, last_s, code = starts[max(starts)]
    if code is None:
        return f"ended without saying so (killed?) after {took}, last heard of {_clock(last_s)}"
    return f"finished after {took}" if code == 0 else f"failed (exit {code}) after {took}"


def _duration(seconds: float) -> str:
    if not seconds < 1e9:
        return "?"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    days, hours = divmod(minutes // 60, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"
