"""Images, lists of them, histograms, sound, films and pages in the trackers that show such things; and equal when they
are read back.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import wave
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from slime_logging.backends.base import Writer
from slime_logging.values.media import media_file, media_in
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario
from tests.backends.conftest import Tracker

ROW = {
    "rollout/picture": {"media": "image", "file": "media/j-0.png", "caption": "a <b> at 50%"},
    "rollout/pictures": [
        {"media": "image", "file": "media/j-0.png", "caption": None},
        {"media": "image", "file": "media/j-1.png", "caption": None},
    ],
    "rollout/lengths": {"media": "histogram", "counts": [1, 2, 3], "edges": [0.0, 1.0, 2.0, 4.0], "mean": 2.0},
    "rollout/sound": {"media": "audio", "file": "media/j-2.wav", "caption": None},
    "rollout/page": {"media": "html", "file": "media/j-3.html", "caption": None},
    "rollout/gone": {"media": "image", "file": "media/gone.png", "caption": None},
    "rollout/elsewhere": {"media": "image", "file": "../secret.png", "caption": None},
    "rollout/x": 1.0,
}  # fmt: skip


def put_files(directory: Path) -> None:
    media = directory / "media"
    media.mkdir(parents=True)
    for number, size in ((0, (4, 3)), (1, (5, 2))):
        Image.new("RGB", size).save(media / f"j-{number}.png")
    with wave.open(str(media / "j-2.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(struct.pack("<4h", 0, 1, 2, 3))
    (media / "j-3.html").write_text("<h1>hello</h1>")
    Image.new("RGB", (1, 1)).save(directory.parent / "secret.png")


@pytest.fixture
def run(tracker: Tracker, tmp_path: Path) -> RunFacts:
    if tracker.name not in SHOWN:
        pytest.skip("has the plain form alone")
    directory = tmp_path / "media-run"
    put_files(directory)
    run = tracker.run(directory, f"media-{tracker.name}")
    row = scenario.row(1, ROW, step_key="rollout/step", step=7)
    backend = tracker.new()
    backend.open(run, Writer(label="primary"))
    backend.set_config(RunConfig(values={"lr": 1.0}, roles={"actor": {"lr": 1.0}}))
    backend.write([row])
    backend.close(0, 60.0)
    reader = tracker.new()
    assert Counter(reader.read_points(run)) == Counter(reader.points(row))
    assert set(reader.media(row, run).values()) <= set(reader.read_media(run))
    return run


def test_each_is_shown_in_the_trackers_own_way(tracker: Tracker, run: RunFacts) -> None:
    SHOWN[tracker.name](run)


def _tensorboard(run: RunFacts) -> None:
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext

    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(run.directory / "tensorboard"))
    multiplexer.Reload()
    provider, context = data_provider.MultiplexerDataProvider(multiplexer, ""), RequestContext()

    def held(plugin: str) -> set[str]:
        blobs = provider.list_blob_sequences(context, experiment_id="", plugin_name=plugin)
        return set(blobs.get("~samples", ()))

    assert held("images") == {"rollout/picture", "rollout/pictures/0", "rollout/pictures/1"}
    assert held("audio") == {"rollout/sound"}
    tensors = provider.list_tensors(context, experiment_id="", plugin_name="histograms")
    assert set(tensors["~samples"]) == {"rollout/lengths"}
    (event,) = multiplexer.Tensors("~samples", "rollout/lengths")
    assert list(event.tensor_proto.double_val) == [0, 1, 1, 1, 2, 2, 2, 4, 3]
    (event,) = multiplexer.Tensors("~samples", "rollout/pictures/1")
    assert list(event.tensor_proto.string_val[:2]) == [b"5", b"2"]


def _trackio(run: RunFacts) -> None:
    code = (
        "import json; from trackio.sqlite_storage import SQLiteStorage as S; from trackio.utils import MEDIA_DIR;"
        f"print(json.dumps([str(MEDIA_DIR), S.get_logs({run.project!r}, {run.name + '-actor'!r})]))"
    )
    environment = os.environ | {"TRACKIO_DIR": str(run.directory.parent / "trackio")}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    folder, rows = json.loads(shown.stdout)
    (row,) = [row for row in rows if "rollout/x" in row]
    own = {name: value for name, value in row.items() if isinstance(value, dict)}
    assert {name: value["_type"] for name, value in own.items()} == {
        "rollout/picture/image": "trackio.image",
        "rollout/pictures/0/image": "trackio.image",
        "rollout/pictures/1/image": "trackio.image",
        "rollout/lengths/histogram": "trackio.histogram",
        "rollout/sound/audio": "trackio.audio",
        "rollout/page/html": "trackio.html",
    }
    files = [Path(folder, value["file_path"]) for value in own.values() if "file_path" in value]
    assert len(files) == 5
    assert all(path.is_file() for path in files)


def _wandb(run: RunFacts) -> None:
    files = run.directory.glob("wandb/offline-run-*/files/media/*/**/*.*")
    assert Counter(path.suffix for path in files) == {".png": 3, ".html": 1, ".wav": 1}


SHOWN = {"tensorboard": _tensorboard, "trackio": _trackio, "wandb": _wandb}


def test_media_is_found_at_any_depth() -> None:
    image = {"media": "image", "file": "media/a.png"}
    row = {
        "a": image,
        "b": [1, image, [image]],
        "c": {"d": {"e": image}},
        "f": [1.0] * 9,
        "media": "x",
    }
    assert [name for name, _ in media_in(row)] == ["a", "b/1", "b/2/0", "c/d/e"]


@pytest.mark.parametrize(
    "file", ["media/../x", "media/a/b.png", "/etc/passwd", None, 7, "media/link"]
)
def test_only_a_file_of_the_run_is_taken(tmp_path: Path, file: object) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "link").symlink_to("/etc/passwd")
    with pytest.raises((ValueError, OSError)):
        media_file(tmp_path, {"file": file})
