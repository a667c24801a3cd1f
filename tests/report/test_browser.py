"""The page in a real browser: on a phone, a screen, in the dark and on paper; what can be read and searched."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import pytest

from slime_logging.record.run import RunDirectory
from slime_logging.report.gather import gather
from slime_logging.report.page import page
from tests.report.browser import PAPERS, Browser, browser
from tests.report.runs import write
from tests.secrets.hostile import EVIL, row, write_run

pytestmark = pytest.mark.xdist_group("browser")

SHOWN = (
    "[...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())"
    ".map(e => (e.cells ? [...e.cells] : [e]).map(cell => cell.textContent).join(' '))"
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def html_of(directory: RunDirectory, path: Path) -> Path:
    path.write_text(page(gather([directory], lambda rows: None)))
    return path


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two actors and a critic, thirty metrics, a spike, long names, a long configuration."""
    folder = tmp_path_factory.mktemp("job")
    names = [f"train/layer_{n}/a_name_that_is_{'long_' * 6}norm" for n in range(1, 13)]
    rows = [
        dict.fromkeys(names, math.exp(-n / 100))
        | {"train/loss": 1e6 if n == 200 else 0.5 + 0.4 * math.sin(n), "rollout/reward": n / 400}
        for n in range(400)
    ]
    few = [
        {"train/kl": n * 1.5, "train/tiny": -1.2345e-107 * (n + 1), "system/host/cpu": 1.0}
        for n in range(11)
    ]
    values = {f"argument_{n}": "long " * 40 if n == 7 else n for n in range(120)}
    config = {"": values | {"lr": 1e-6}, "critic": values | {"lr": 1e-5}}
    journals = [("actor", 0, rows), ("actor", 1, rows), ("critic", 0, few)]
    return html_of(write(folder / "job", journals, config=config), folder / "page.html")


@pytest.mark.parametrize("width", [320, 400, 768, 1280])
def test_nothing_lies_beside_the_screen(shown: Browser, job: Path, width: int) -> None:
    """Everything unfolded: no element ends right of the screen, and no value of a role is hidden."""
    shown.open(job, width)
    with shown.seen(f"width-{width}"):
        shown.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert shown.ask("return document.documentElement.scrollWidth") <= width
        assert (
            shown.ask(
                "return [...document.querySelectorAll('td, th, figure, svg, h1, p, input')].filter(e =>"
                " e.checkVisibility() && e.getBoundingClientRect().right > arguments[0] + 1)"
                ".map(e => e.outerHTML.slice(0, 200))",
                width,
            )
            == []
        )
        cells = shown.ask(f"return {SHOWN}", "#roles tbody tr td")
        assert {"1e-06", "1e-05"} <= set(cells)
        assert shown.complaints() == []


NUMBERS_CUT = """
const found = [];
for (const figure of document.querySelectorAll('figure')) for (const kind of [0, 1]) {
  figure.classList.toggle('log', kind);
  const box = figure.querySelector('svg').getBoundingClientRect();
  for (const text of figure.querySelectorAll(`g.${kind ? 'log' : 'linear'} text, g.x text`)) {
    const label = text.getBoundingClientRect();
    if (!label.width || label.left < box.left || label.right > box.right) found.push(text.textContent);
  }
  const end = figure.getBoundingClientRect().right;
  for (const cell of figure.querySelectorAll('.legend td'))
    if (cell.getBoundingClientRect().right > end) found.push(cell.textContent);
}
return found;
"""


@pytest.mark.parametrize(
    ("first", "last"), [(0, 600_000), (-1.2345e15, -1.2344e15), (-1.5e-106, 1.7e107)]
)
def test_numbers_of_charts_are_whole(
    shown: Browser, tmp_path: Path, first: float, last: float
) -> None:
    """However long the numbers beside and below a chart are: none is cut at its edge, on either
    scale.
    """
    sizes = [-1.2345e-107, 1.7e308, -123456.7, -1.5e-6, -1.5e-106, 7, -1e15]
    row = {f"train/{n}": size for n, size in enumerate(sizes)}
    halves = [
        (role, 0, {name: value / way for name, value in row.items()}, [first, last])
        for role, way in (("actor", 1), ("critic", -3))
    ]
    path = html_of(write(tmp_path / "run", halves), tmp_path / "page.html")
    for width in (400, 800):
        shown.open(path, width)
        with shown.seen(f"numbers-{width}"):
            assert shown.ask(NUMBERS_CUT) == []


def test_it_is_dark_in_the_dark(shown: Browser, job: Path) -> None:
    """Text against what is behind it, by the rule for readable text (WCAG AA: 4.5)."""
    for is_dark in (False, True):
        shown.open(job, is_dark=is_dark)
        with shown.seen(f"dark-{is_dark}"):
            colours = shown.ask(
                "const of = (css, key) => getComputedStyle(document.querySelector(css))[key]"
                ".match(/[0-9.]+/g).map(Number);"
                "return [of('body', 'backgroundColor'), of('figure', 'backgroundColor'), of('body', 'color'),"
                " of('figcaption span', 'color'), of('i.c0', 'color'), of('i.c1', 'color'), of('i.c2', 'color')]"
            )
            back, card, *texts = map(luminance, colours)
            assert (back < 0.1) is is_dark
            for behind in (back, card):
                for text in texts:
                    high, low = max(behind, text), min(behind, text)
                    assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(rgb: list[float]) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("paper", PAPERS)
def test_paper_shows_everything(shown: Browser, job: Path, paper: str) -> None:
    """Each chart whole on one sheet, in its colours; folded sections and the configuration too."""
    from pypdf import PdfReader

    shown.open(job)
    with shown.seen(f"paper-{paper}"):
        found = PdfReader(io.BytesIO(shown.print(paper)))
    sheets = [normalize("NFKC", sheet.extract_text()) for sheet in found.pages]
    width = float(found.pages[0].mediabox.width)
    assert width == pytest.approx(PAPERS[paper][0] / 2.54 * 72, abs=2)
    whole = "".join(sheets)
    for number in (0, 7, 64, 119):
        assert f"argument_{number}" in whole.replace("\n", "")
    assert "system/host/cpu" in whole
    for text in sheets:
        assert text.count("over train/step") == text.count("first"), (
            "a chart is cut from its legend"
        )
    content = b"".join(sheet.get_contents().get_data() for sheet in found.pages)
    pattern = rb"([\d.]+) ([\d.]+) ([\d.]+) (rg|RG)\b"
    inks = {
        (*(round(float(part) * 255) for part in c), how) for *c, how in re.findall(pattern, content)
    }
    for how in (b"RG", b"rg"):  # lines, and the legend's samples of them
        assert {(0x25, 0x63, 0xEB, how), (0xB9, 0x50, 0x0A, how), (0x15, 0x7A, 0x3B, how)} <= inks


def test_values_are_read_under_the_pointer(shown: Browser, job: Path) -> None:
    """Of each line, on either scale; with the arrow keys too."""
    shown.open(job)
    with shown.seen("reading"):
        move = (
            "const svg = document.getElementById(arguments[0]).querySelector('svg');"
            "svg.scrollIntoView({block: 'center'}); const box = svg.getBoundingClientRect();"
            "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width *"
            " (104 + 640 * arguments[1]) / 772, clientY: box.top + 40}));"
            "return document.querySelector('.reading').innerText"
        )
        assert shown.ask(move, "m:train/kl", 30 / 399) == "step 10\ncritic 15"
        text = shown.ask(move, "m:train/loss", 200 / 399)
        assert "actor rank 0 " in text
        assert "actor rank 1 " in text
        assert " to 1000000" in text or " to 1.0000e+6" in text
        assert shown.ask(move, "m:rollout/reward", 0.0).startswith("step 0\nactor rank 0 0")
        assert shown.ask(move, "m:rollout/reward", 1.0).startswith("step 399\nactor rank 0 0.9975")
        key = (
            "const svg = document.getElementById('m:train/kl').querySelector('svg'); svg.focus();"
            "for (const key of arguments[0]) svg.dispatchEvent(new KeyboardEvent('keydown', {key}));"
            "return document.querySelector('.reading').innerText"
        )
        assert shown.ask(key, ["ArrowRight", "ArrowRight", "ArrowRight"]) == "step 2\ncritic 3"
        shown.ask("document.querySelector('.reading').hidden = true")


def test_the_other_scale_and_smoothing(shown: Browser, job: Path) -> None:
    """The script draws what the page was made with; the spike's chart is logarithmic by itself."""
    shown.open(job)
    paths = "return [...document.getElementById(arguments[0]).querySelectorAll('svg g path')].map(p => {const b = p.getBBox(); return [b.x, b.y, b.width, b.height].map(Math.round)})"
    choose = "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event(arguments[2]))"
    with shown.seen("scales"):
        assert shown.ask(
            "return [...document.querySelectorAll('figure.log b')].map(e => e.innerText)"
        ) == ["train/loss"]
        for name in ("m:train/loss", "m:rollout/reward"):
            before = shown.ask(paths, name)
            shown.ask(choose, "scale", "log", "change")
            shown.ask(choose, "scale", "", "change")
            after = shown.ask(paths, name)
            assert len(before) == len(after)
            for one, other in zip(before, after, strict=True):
                assert one == pytest.approx(other, abs=1.5)
        shown.ask(choose, "scale", "linear", "change")
        assert shown.ask("return document.querySelectorAll('figure.log').length") == 0
        assert "1e+06" in shown.ask(f"return {SHOWN}", "[id='m:train/loss'] g.linear text")
        shown.ask(choose, "smooth", "0.9", "input")
        raw, smooth = shown.ask(
            "return ['path.raw', 'path:not([class])'].map(css => document.getElementById('m:train/kl').querySelector(css)?.getBBox().height)"
        )
        assert smooth < raw


def test_metrics_are_filtered_by_name(shown: Browser, job: Path) -> None:
    """In the charts and in the index; folded sections open while they have something to show."""
    shown.open(job)
    set_filter = "const e = document.getElementById('filter'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))"
    with shown.seen("filter"):
        titles = shown.ask(f"return {SHOWN}", "figcaption b")
        assert [t.split("/")[1] for t in titles if "layer" in t] == [
            f"layer_{n}" for n in range(1, 13)
        ]
        shown.ask(set_filter, "LAYER_1 norm")
        assert len(shown.ask(f"return {SHOWN}", "figcaption b")) == 4
        shown.ask(set_filter, "cpu")
        assert shown.ask(f"return {SHOWN}", "figcaption b") == ["system/host/cpu"]
        shown.ask("document.getElementById('index').open = true")
        assert shown.ask(f"return {SHOWN}", "#index li") == ["system/host/cpu"]
        shown.ask(set_filter, "")
        assert shown.ask(f"return {SHOWN}", "figcaption b") == titles


def test_the_index_leads_to_charts_in_folded_sections(shown: Browser, job: Path) -> None:
    shown.open(job)
    with shown.seen("index"):
        shown.ask(
            "document.getElementById('index').open = true; [...document.querySelectorAll('#index a')].at(-1).click()"
        )
        shown.ask("return new Promise(done => setTimeout(done, 100))")
        assert "system/host/cpu" in shown.ask(f"return {SHOWN}", "figcaption b")
        top = shown.ask(
            "return document.getElementById('m:system/host/cpu').getBoundingClientRect().top"
        )
        assert 0 <= top < 900


def test_the_configuration_is_searched(shown: Browser, job: Path) -> None:
    shown.open(job)
    with shown.seen("config"):
        shown.ask("document.getElementById('config').open = true")
        assert len(shown.ask(f"return {SHOWN}", "#config tbody tr")) == 121
        shown.ask("document.getElementById('only').click()")
        assert [t.split()[0] for t in shown.ask(f"return {SHOWN}", "#config tbody tr")] == ["lr"]
        shown.ask(
            "document.getElementById('only').click(); const e = document.querySelector('#config .search'); e.value = 'ARGUMENT_11'; e.dispatchEvent(new Event('input'))"
        )
        assert len(shown.ask(f"return {SHOWN}", "#config tbody tr")) == 11


def test_samples_are_searched(shown: Browser, tmp_path: Path) -> None:
    """A step opens while one of its samples has the words."""
    directory = write(tmp_path / "job", [("actor", 0, [reference(n) for n in range(3)])])
    (directory.path / "media").mkdir()
    for n in range(3):
        lines = [json.dumps({"prompt": f"question {n}{m}x", "reward": m}) for m in range(2)]
        (directory.path / f"media/s-{n}.jsonl").write_text("\n".join(lines))
    shown.open(html_of(directory, tmp_path / "page.html"), 400)
    with shown.seen("samples"):
        shown.ask("document.querySelector('.samples').open = true")
        assert shown.ask(f"return {SHOWN}", ".sample") == []
        shown.ask(
            "const e = document.querySelector('.samples .search'); e.value = 'QUESTION 10x';"
            "e.dispatchEvent(new Event('input'))"
        )
        (found,) = shown.ask(f"return {SHOWN}", ".sample pre")
        assert found.strip() == "question 10x"
        assert shown.ask("return document.documentElement.scrollWidth") <= 400


def reference(number: int) -> dict[str, object]:
    file = {"media": "samples", "file": f"media/s-{number}.jsonl", "num_samples": 2}
    return {"rollout/samples": file | {"columns": ["prompt", "reward"]}}


@pytest.mark.parametrize(
    "attack",
    [
        "<script>document.title = 'taken'</script>",
        "<img src=x onerror=\"document.title = 'taken'\">",
        '"><svg onload="document.title = \'taken\'">',
        "</script><script>document.title = 'taken'</script>",
        "</style></title><body onpageshow=\"document.title = 'taken'\">",
        "javascript:document.title='taken'",
        "${document.title = 'taken'}",
    ],
)
def test_a_hostile_run_runs_nothing(shown: Browser, tmp_path: Path, attack: str) -> None:
    """Also not when charts are drawn anew, filtered and read; the browser blocked nothing because
    there was nothing to block.
    """
    lines = [row(5 + n, {f"{attack}/m": n, f"{attack}/t": attack}) for n in range(3)]
    evil = RunDirectory(write_run(tmp_path / "evil", text=attack + EVIL, lines=lines))
    shown.open(html_of(evil, tmp_path / "page.html"))
    with shown.seen("hostile"):
        shown.ask(
            "document.querySelectorAll('details').forEach(d => { d.open = true; });"
            "for (const [id, value, event] of [['scale', 'log', 'change'], ['smooth', '0.5', 'input'],"
            " ['filter', 'taken', 'input']]) {const e = document.getElementById(id); e.value = value;"
            " e.dispatchEvent(new Event(event));}"
            "const svg = document.querySelector('figure svg');"
            "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: 200, clientY: 200}));"
            "return new Promise(done => setTimeout(done, 100))"
        )
        assert shown.ask("return document.title") != "taken"
        assert shown.complaints() == []
        assert attack in shown.ask(
            "return document.querySelector('.reading').innerText + document.body.innerText"
        )
