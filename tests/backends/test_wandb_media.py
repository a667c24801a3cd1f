"""Media of a row are W&B's own objects on its page, and the row is still found equal when it is read back."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

import slime_logging as sl
from slime_logging.backends.wandb import offline as wandb_offline
from slime_logging.backends.wandb.media import media_objects
from slime_logging.cli.app import app
from tests.test_tracking import job


def test_an_image_a_histogram_and_a_table_arrive_as_such(tmp_path: Path):
    import wandb
    from typer.testing import CliRunner

    from slime_logging.record.run import RunDirectory

    args = job(tmp_path, use_memory=False, use_wandb=True, wandb_mode="offline", use_critic=False)
    sl.init_tracking(args)
    metrics = {
        "rollout/step": 3,
        "rollout/reward": 0.5,
        "rollout/image": Image.new("RGB", (4, 4), (255, 0, 0)),
        "rollout/lengths": wandb.Histogram([1.0, 2.0, 2.5]),
        "rollout/samples": wandb.Table(columns=["prompt", "reward"], data=[["a", 0.5]]),
    }
    sl.log(args, metrics, "rollout/step")
    sl.finish_tracking(args)
    directory = RunDirectory(Path(args.tracking_run_dir))
    facts = directory.read().facts(directory.path, {"wandb_mode": "offline"})
    (row,) = [r for r in wandb_offline.read_rows(facts) if "rollout/reward" in r]
    kinds = {
        key.removesuffix("._type"): value for key, value in row.items() if key.endswith("._type")
    }
    assert kinds == {
        "media/rollout/image": "image-file",
        "media/rollout/lengths": "histogram",
        "media/rollout/samples": "table-file",
    }, json.dumps(row, default=str)
    assert len(list(directory.path.rglob("wandb/*/files/media/**/*.png"))) == 1
    result = CliRunner().invoke(app, ["verify", str(directory.path)])
    assert result.exit_code == 0, result.output
    assert "1 samples or images: equal" in result.output
    (image,) = (directory.path / "media").glob("*.png")
    Image.new("RGB", (4, 4), (0, 255, 0)).save(image)
    result = CliRunner().invoke(app, ["verify", str(directory.path)])
    assert result.exit_code == 1
    assert "rollout/image (rollout/step = 3): is not there as it was logged" in result.output


def test_a_file_outside_of_the_runs_media_is_not_taken(tmp_path: Path):
    Image.new("L", (1, 1)).save(tmp_path / "secret.png")
    (tmp_path / "run" / "media").mkdir(parents=True)
    (tmp_path / "run" / "media" / "link.png").symlink_to(tmp_path / "secret.png")
    for file in (
        "../secret.png",
        str(tmp_path / "secret.png"),
        "media/../../secret.png",
        "media/link.png",
        3,
        None,
    ):
        row = {"x.media": "image", "x.file": file}
        assert media_objects(row, {"x.media"}, tmp_path / "run") == {}


def test_forms_that_are_no_media_stay_plain(tmp_path: Path):
    for row in (
        {"x.media": "film"},
        {"x.media": 1},
        {"x.media": "table"},
        {"x.media": "histogram", "x.counts": 1},
    ):
        assert media_objects(row, {"x.media"}, tmp_path) == {}
