"""Media handed to `log` becomes plain values and files that any process can deliver; what is no media is text, with a
warning.
"""

from __future__ import annotations

import numpy
import pytest
from PIL import Image

from slime_logging.record.media import MediaStore
from slime_logging.redaction.redact import Redactor


@pytest.fixture
def store(tmp_path):
    return MediaStore(tmp_path, "j")


def test_an_image_becomes_a_file_in_the_run(tmp_path, store):
    plain = store.plain(Image.new("RGB", (3, 2), (255, 0, 0)))
    assert plain == {"media": "image", "file": "media/j-0.png", "caption": None}
    with Image.open(tmp_path / plain["file"]) as picture:
        assert (picture.size, picture.getpixel((0, 0))) == ((3, 2), (255, 0, 0))
    assert (tmp_path / plain["file"]).stat().st_mode & 0o777 == 0o600


def test_wandbs_own_objects_are_understood(store):
    import wandb

    image = store.plain(wandb.Image(numpy.zeros((4, 4, 3), dtype="uint8"), caption="black"))
    assert (image["media"], image["caption"]) == ("image", "black")
    assert store.plain(wandb.Histogram([0.0, 0.0, 1.0], num_bins=2)) == {
        "media": "histogram",
        "counts": [2.0, 1.0],
        "edges": [0.0, 0.5, 1.0],
    }
    assert store.plain(wandb.Table(columns=["prompt", "reward"], data=[["a", 0.5]])) == {
        "media": "table",
        "columns": ["prompt", "reward"],
        "rows": [["a", 0.5]],
    }


def test_each_file_has_a_name_of_its_own(store):
    files = {store.plain(Image.new("L", (1, 1)))["file"] for _ in range(3)}
    assert len(files) == 3


@pytest.mark.parametrize("value", [1.0, "text", [1], {"a": 1}, object(), None])
def test_everything_else_is_no_media(store, value):
    assert store.plain(value) is None


def test_media_in_a_row_is_recorded_and_an_unknown_object_is_warned_about_once(tmp_path, caplog):
    import slime_logging as sl
    from slime_logging.backends import memory
    from tests.test_tracking import held, job

    args = job(tmp_path)
    sl.init_tracking(args)
    for step in range(2):
        metrics = {
            "rollout/step": step,
            "rollout/image": Image.new("L", (1, 1)),
            "rollout/odd": object(),
        }
        sl.log(args, metrics, "rollout/step")
    sl.finish_tracking(args)
    assert [row.metrics["rollout/image"]["media"] for row in held(args).rows] == ["image", "image"]
    assert len([r for r in caplog.records if "logged as text" in r.message]) == 1
    memory.forget()


def test_a_secret_in_a_file_of_text_is_hidden_and_other_files_stay_as_they_are(tmp_path):
    wandb = pytest.importorskip("wandb")
    secret = "Zq7kP2mWx9Lr4TnB8vHs"
    store = MediaStore(tmp_path, "j", Redactor.of({"api_key": secret}, {}).text)
    scene, sound = tmp_path / "a.pts.json", tmp_path / "a.wav"
    scene.write_text(f'[{{"label": "{secret}"}}]')
    sound.write_bytes(b"RIFF\xff\x00")
    kept = store.plain(wandb.Object3D(str(scene)))
    assert (tmp_path / str(kept["file"])).read_text() == '[{"label": "<hidden: api_key>"}]'
    kept = store.plain(wandb.Audio(str(sound)))
    assert (tmp_path / str(kept["file"])).read_bytes() == sound.read_bytes()


def test_an_object_whose_own_code_fails_costs_nothing_but_itself(tmp_path):
    import slime_logging as sl
    from tests.test_tracking import held, job

    class Broken(Image.Image):
        def save(self, *_: object, **__: object) -> None:
            raise RuntimeError("broken")

    args = job(tmp_path)
    sl.init_tracking(args)
    sl.log(args, {"rollout/step": 0, "rollout/image": Broken(), "rollout/x": 1}, "rollout/step")
    sl.finish_tracking(args)
    assert held(args).rows[0].metrics["rollout/x"] == 1


def _wav(comment: str) -> bytes:
    """A sound whose file carries a comment, as editors write them."""
    note = b"INFOICMT" + len(comment).to_bytes(4, "little") + comment.encode()
    chunk = b"LIST" + len(note).to_bytes(4, "little") + note
    form = b"fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
    data = b"WAVE" + form + chunk + b"data\x04\0\0\0\xff\xfe\x80\x7f"
    return b"RIFF" + len(data).to_bytes(4, "little") + data


@pytest.mark.parametrize("token", ["Zq7kP2mWx9Lr4TnB8vHs", "ghp_" + "aB3dE" * 6])
def test_a_binary_file_is_stripped_of_secrets_in_its_name_and_its_comments(tmp_path, token):
    """Its bytes stay where they are, so that it still plays."""
    import wandb

    path = tmp_path / f"clip.{token}.wav"
    path.write_bytes(_wav(f"made with {token}, 2 channels "))
    redactor = Redactor.of({"api_key": "Zq7kP2mWx9Lr4TnB8vHs"}, {})
    store = MediaStore(tmp_path, "j", redactor.text, redactor.overwritten)
    kept = store.plain(wandb.Audio(str(path), caption="c"))
    assert kept["file"] == "media/j-0.wav"
    data = (tmp_path / kept["file"]).read_bytes()
    assert data == path.read_bytes().replace(token.encode(), b"x" * len(token))


@pytest.mark.parametrize("ending", [".obj", ".glb", ".pts.json"])
def test_the_endings_by_which_clients_know_a_kind_are_kept(tmp_path, store, ending):
    import wandb

    (tmp_path / f"scene{ending}").write_text("{}")
    assert store.plain(wandb.Object3D(str(tmp_path / f"scene{ending}")))["file"].endswith(ending)
