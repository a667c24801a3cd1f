"""The page of a run that the public calls made: everything is on it, and nothing of it runs or loads anything."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import slime_logging
from slime_logging.record.finding import find_run
from slime_logging.record.run import RunDirectory
from slime_logging.report import gather as gather_module
from slime_logging.report.gather import MAX_TEXT_CHARS, Report, gather
from slime_logging.report.page import page
from tests.secrets.hostile import EVIL, write_run

ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "id",
    "class",
    "href",
    "open",
    "viewbox",
    "role",
}
ATTRIBUTES |= {"aria-label", "x", "y", "x1", "x2", "y1", "y2", "d", "cx", "cy", "r"}
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "nav",
    "section",
    "details",
    "summary",
    "footer",
}
TAGS |= {"h1", "h2", "p", "b", "i", "em", "a", "span", "table", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"div", "figure", "figcaption", "svg", "line", "text", "path", "circle"}
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


class Parsed(HTMLParser):
    """The tags, attributes, table rows and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell &= tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.rows[-1][-1] += data


def read(directory: RunDirectory) -> Report:
    return gather(directory, lambda rows: None)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A finished PPO job: driver, actor and critic, with a value of each kind."""
    roles = tmp_path / "roles.yaml"
    roles.write_text("megatron:\n  - role: critic\n    overrides: {lr: 1e-5}\n")
    args = Namespace(
        lr=1e-6,
        clip_grad=1.0,
        use_critic=True,
        megatron_config_path=str(roles),
        notes="a <b>\n" * 1_000,
    )
    args.tracking_dir, args.wandb_run_id, args.tracking_system_metrics = (
        str(tmp_path / "tracking"),
        "job",
        "off",
    )
    slime_logging.init_tracking(args)
    for step in range(40):
        slime_logging.log(args, {"rollout/reward": step / 40, "rollout/step": step}, "rollout/step")
    for role in ("actor", "critic"):
        role_args = slime_logging.parse_megatron_role_args(args, str(roles), role)
        slime_logging.init_tracking(role_args, primary=False, role=role)
        for step in range(20):
            loss = math.nan if step == 7 else 1 / (step + 1)
            metrics = {
                "train/loss": loss,
                "train/sample": f"<i>text</i> {step}",
                "train/by": {"layer": {"0": step}},
            }
            slime_logging.log(role_args, {**metrics, "train/step": step}, "train/step")
        slime_logging.finish_tracking(role_args)
    slime_logging.finish_tracking(args)
    return find_run("job", tmp_path / "tracking")


def test_what_a_page_shows(run: RunDirectory) -> None:
    """Differences with base and reason, a chart a metric with a line a role, texts, processes, the configuration."""
    found = Parsed(page(read(run)))
    assert ["lr", "1e-06", "1e-06", "1e-05", "critic: file"] in found.rows
    assert ["clip_grad", "1.0", "1.0"] in found.rows
    assert ["train/sample", "actor", "<i>text</i> 19"] in found.rows
    assert ["train/sample", "critic", "<i>text</i> 19"] in found.rows
    assert [row[:2] for row in found.rows].count(["secondary", "critic"]) == 1
    for metric in ("rollout/reward", "train/loss", "train/by/layer/0"):
        assert found.text.count(metric) == 1
    assert found.text.count("1 not finite") == 2


def test_the_charts_of_a_run(run: RunDirectory) -> None:
    """In the order of the run's axes, with every role's own line, interrupted where the value was not finite."""
    report = read(run)
    assert [group.name for group in report.groups] == ["train", "rollout"]
    train, rollout = report.groups
    assert [(chart.title, chart.axis) for chart in train.charts] == [
        ("train/by/layer/0", "train/step"),
        ("train/loss", "train/step"),
    ]
    loss = train.charts[1]
    assert [
        (line.role, line.num_points, line.num_gaps, line.path.count("M")) for line in loss.lines
    ] == [
        ("actor", 19, 1, 2),
        ("critic", 19, 1, 2),
    ]
    (reward,) = rollout.charts[0].lines
    assert (reward.role, reward.num_points, reward.last) == ("job", 40, "0.975")
    assert report.num_rows_read == 80


def test_long_texts_say_how_long_they_are(run: RunDirectory) -> None:
    text = page(read(run))
    assert "(6,000 characters)" in text
    assert "a &lt;b&gt;\n" * (MAX_TEXT_CHARS // 10) in text


def test_nothing_on_a_page_runs_or_loads_anything(tmp_path: Path, run: RunDirectory) -> None:
    """Of a good run and of one whose every text is hostile: known tags and attributes only, links within the page."""
    text = EVIL + "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></style>{{ 7*7 }}"
    evil = RunDirectory(write_run(tmp_path / "evil", text=text))
    for directory in (run, evil):
        html = page(read(directory))
        found = Parsed(html)
        assert found.tags <= TAGS
        assert {name for name, _ in found.attributes} <= ATTRIBUTES
        assert all(
            (value or "").startswith("#") for name, value in found.attributes if name == "href"
        )
        assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in found.attributes
        assert not CONTROL.search(html)
    assert "<script>alert(1)</script>" in found.text
    assert "{{ 7*7 }}" in found.text


def test_more_metrics_than_are_drawn_are_counted(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather_module, "MAX_COURSES", 2)
    report = read(run)
    assert report.num_not_drawn == 2
    assert "2 further metrics are not drawn" in page(report)


def test_a_resumed_run_is_drawn_start_after_start(tmp_path: Path) -> None:
    """The second start went back to step 5: two lines, in the order in which they were logged."""
    for first in (0, 5):
        args = Namespace(
            tracking_dir=str(tmp_path), wandb_run_id="job", tracking_system_metrics="off"
        )
        slime_logging.init_tracking(args)
        for step in range(first, first + 10):
            slime_logging.log(args, {"train/loss": first + step, "train/step": step}, "train/step")
        slime_logging.finish_tracking(args)
    report = read(find_run("job", tmp_path))
    (line,) = report.groups[0].charts[0].lines
    assert (line.num_points, line.path.count("M"), line.last) == (20, 2, "19")
    assert "2 starts" in page(report)


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    """No rows, one role: a page all the same."""
    args = Namespace(
        tracking_dir=str(tmp_path), wandb_run_id="job", tracking_system_metrics="off", lr=1.0
    )
    slime_logging.init_tracking(args)
    html = page(read(find_run("job", tmp_path)))
    assert "there is one role" in html
    assert "running" in html
    slime_logging.finish_tracking(args)
