"""The page of a run that the public calls made: everything is on it, and nothing of it runs or loads anything."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from argparse import Namespace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

import slime_logging
from slime_logging.record.finding import find_run
from slime_logging.record.run import RunDirectory
from slime_logging.report import metrics as metrics_module
from slime_logging.report.gather import Report, gather
from slime_logging.report.page import page
from slime_logging.report.samples import MAX_SAMPLES, MAX_TABLES
from slime_logging.report.texts import MAX_TEXT_CHARS, natural
from tests.report.runs import write
from tests.secrets.hostile import EVIL, row, write_run

ATTRIBUTES = [
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
    "aria-label",
    "tabindex",
    "x",
    "y",
    "d",
    "transform",
    "title",
    "type",
    "placeholder",
    "autocomplete",
    "value",
    "min",
    "max",
    "step",
    "data-steps",
    "data-linear",
    "data-log",
    "data-band",
    "data-exact",
    "data-of",
]
TAGS = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "script",
    "body",
    "header",
    "nav",
    "section",
    "details",
    "summary",
    "footer",
    "h1",
    "h2",
    "p",
    "b",
    "i",
    "em",
    "a",
    "ul",
    "li",
    "span",
    "label",
    "input",
    "select",
    "option",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "div",
    "pre",
    "figure",
    "figcaption",
    "svg",
    "g",
    "text",
    "path",
]
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
    return gather([directory], lambda rows: None)


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
    assert [row[0] for row in found.rows if "exit 0" in row] == [
        "primary",
        "actor",
        "critic",
    ]
    for metric in ("rollout/reward", "train/loss", "train/by/layer/0"):
        assert found.text.count(metric) == 2, "in the index and above its chart"
    assert ["actor 1 not finite", "1", "0.05", "1", "0.05"] in found.rows
    assert "1 chart" in found.text
    assert "1 charts" not in found.text
    assert "80 rows of 3 processes" in found.text


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
        (line.label, line.num_points, line.num_gaps, line.path.count("M")) for line in loss.lines
    ] == [
        ("actor", 19, 1, 2),
        ("critic", 19, 1, 2),
    ]
    (reward,) = rollout.charts[0].lines
    assert (reward.label, reward.num_points) == ("primary", 40)
    assert [figure.text for figure in reward.figures] == ["0", "0", "0.975", "0.975"]
    assert report.runs[0].num_rows == 80


def test_long_texts_say_how_long_they_are(run: RunDirectory) -> None:
    text = page(read(run))
    assert "(6,000 characters)" in text
    assert "a &lt;b&gt;\n" * (MAX_TEXT_CHARS // 10) in text


def test_nothing_of_a_run_becomes_part_of_a_page(tmp_path: Path, run: RunDirectory) -> None:
    """Of a good run and of one whose every text is hostile: known tags and attributes only, links
    within the page, and our own style and script by their hashes.
    """
    text = EVIL + "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></style>{{ 7*7 }}"
    evil = RunDirectory(write_run(tmp_path / "evil", text=text, lines=[row(5, {text: 1.0})]))
    ours = set()
    for directory in (run, evil):
        html = page(read(directory))
        found = Parsed(html)
        assert found.tags <= set(TAGS)
        assert {name for name, _ in found.attributes} <= set(ATTRIBUTES)
        assert all(
            (value or "").startswith("#") for name, value in found.attributes if name == "href"
        )
        assert not CONTROL.search(html)
        (policy,) = [v for k, v in found.attributes if k == "content" and "default-src" in v]
        inline = re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", html, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in inline]
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}';"
            " base-uri 'none'; form-action 'none'"
        )
        ours.add(tuple(inline))
    assert len(ours) == 1, "nothing of a run is in them"
    assert "<script>alert(1)</script>" in found.text
    assert "{{ 7*7 }}" in found.text


@pytest.mark.parametrize(
    "way", ["innerHTML", "outerHTML", "insertAdjacent", "eval", "Function(", "write("]
)
def test_the_script_writes_texts_only(way: str) -> None:
    script = resources.files("slime_logging.report").joinpath("page.js").read_text()
    assert way not in script


def test_more_metrics_than_are_drawn_are_counted(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "MAX_COURSES", 2)
    report = read(run)
    assert report.num_not_drawn == 2
    assert "2 further metrics not drawn" in page(report)


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
    assert (line.num_points, line.path.count("M"), line.figures[3].text) == (20, 2, "19")
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


def test_ranks_of_a_role_are_told_apart(tmp_path: Path) -> None:
    """By rank where they have one; a metric that one of them logs has the name of the role."""
    rows = {"train/loss": 1.0}
    journals = [("actor", 0, rows), ("actor", 1, rows), ("critic", None, rows)]
    journals += [("critic", None, {"train/loss": 2.0, "train/alone": 1.0})]
    (group,) = read(write(tmp_path / "job", journals)).groups
    alone, loss = group.charts
    assert [line.label for line in loss.lines] == [
        "actor rank 0",
        "actor rank 1",
        "critic process 1",
        "critic process 2",
    ]
    assert [(line.label, line.number) for line in alone.lines] == [("critic", 3)]
    assert [line.number for line in loss.lines] == [0, 1, 2, 3]


def test_metrics_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [f"train/layer_{n}/norm" for n in (10, 9, 2, 1)] + ["train/a", "train/layer_2/b"]
    (group,) = read(write(tmp_path / "job", [("actor", 0, dict.fromkeys(names, 1.0))])).groups
    assert [chart.title.removeprefix("train/") for chart in group.charts] == [
        "a",
        "layer_1/norm",
        "layer_2/b",
        "layer_2/norm",
        "layer_9/norm",
        "layer_10/norm",
    ]
    assert sorted(["v10", "v9", "v" + "9" * 5_000], key=natural)[:2] == ["v9", "v10"]


def test_a_section_has_one_range_of_steps(tmp_path: Path) -> None:
    journals = [
        ("actor", 0, {"train/a": 1.0}, range(100)),
        ("critic", 0, {"train/b": 1.0}, range(50, 60)),
    ]
    (group,) = read(write(tmp_path / "job", journals)).groups
    assert {(chart.steps.low, chart.steps.high) for chart in group.charts} == {(0, 99)}


def test_rows_of_several_kinds_keep_their_order(tmp_path: Path) -> None:
    """A metric in rows with and without others, nested values and texts: one line, in order."""
    rows = [{"m/m": n, **({"m/x": 1} if n % 3 == 0 else {}), "m/d": {"e": n}} for n in range(30)]
    rows[7]["m/m"] = "text"
    report = read(write(tmp_path / "job", [("actor", 0, rows)]))
    (group,) = report.groups
    by_title = {chart.title: chart.lines[0] for chart in group.charts}
    assert {title: line.num_points for title, line in by_title.items()} == {
        "m/m": 29,
        "m/x": 10,
        "m/d/e": 30,
    }
    assert by_title["m/m"].path.count("M") == by_title["m/d/e"].path.count("M") == 1
    assert group.texts == (("m/m", "actor", "text"),)


@pytest.mark.parametrize(
    ("finish", "said"),
    [
        (0, "finished after 2 min"),
        (3, "failed (exit 3) after 2 min"),
        (None, "ended without saying so (killed?) after 2 min, last heard of "),
    ],
)
def test_a_page_says_how_a_run_ended_and_how_long_it_took(tmp_path, finish, said) -> None:
    directory = write(
        tmp_path / "job", [("actor", 0, {"train/loss": 1.0}, range(120))], exit_code=finish
    )
    assert said in Parsed(page(read(directory))).text


def test_several_runs_on_one_page(tmp_path: Path) -> None:
    """A line a run and role, one table of what differs; runs of one name are told by their ids."""
    directories = [
        write(
            tmp_path / name,
            [("actor", 0, {"train/loss": 1.0}), ("critic", 0, {"train/loss": 2.0})],
            config={"": {"lr": lr, "same": 1}, "critic": {"lr": lr, "same": 1}},
        )
        for name, lr in (("one", 1), ("two", 2))
    ]
    report = gather(directories, lambda rows: None)
    (group,) = report.groups
    labels = ["one actor", "one critic", "two actor", "two critic"]
    assert [line.label for line in group.charts[0].lines] == labels
    assert report.columns == report.config.columns == tuple(labels)
    assert [(item.key, list(item.values.values())) for item in report.differences] == [
        ("lr", [1, 1, 2, 2])
    ]
    found = Parsed(page(report))
    assert ["lr", "1", "1", "2", "2"] in found.rows
    assert "Processes of one" in found.text
    assert "Processes of two" in found.text


def test_samples_are_shown_as_texts(tmp_path: Path) -> None:
    """By step, whole within bounds, with what is left out counted; of a hostile file nothing."""
    args = Namespace(tracking_dir=str(tmp_path), wandb_run_id="job", tracking_system_metrics="off")
    slime_logging.init_tracking(args)
    for step in range(30):
        samples = [
            {
                "prompt": f"\n  2 + {step} =",
                "completion": "<b>" + "y" * 3_000,
                "reward": n / 2,
                "rollout/step": step,
            }
            for n in range(MAX_SAMPLES + 1)
        ]
        slime_logging.log_samples(args, samples, "rollout/step")
    slime_logging.finish_tracking(args)
    report = read(find_run("job", tmp_path))
    (part,) = report.runs
    assert part.num_sample_tables == 30
    assert len(part.samples) == MAX_TABLES
    assert (part.samples[0].step, part.samples[-1].step) == ("0", "29")
    assert part.samples[0].num_samples == MAX_SAMPLES + 1
    html = page(report)
    assert "<pre>\n\n  2 + 29 =</pre>" in html
    assert "&lt;b&gt;" + "y" * 3_000 in html
    assert not any("samples" in chart.title for group in report.groups for chart in group.charts)
    assert not any(group.texts for group in report.groups)


@pytest.mark.parametrize(
    "file", ["../secret.jsonl", "/etc/passwd", "media/../../secret.jsonl", "media/none.jsonl"]
)
def test_samples_elsewhere_are_not_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret.jsonl").write_text('{"text": "a secret"}')
    value = {
        "rollout/samples": {"media": "samples", "file": file, "num_samples": 1, "columns": ["text"]}
    }
    html = page(read(write(tmp_path / "job", [("actor", 0, value)])))
    assert "a secret" not in html
    assert "0 of 1 step" in html
