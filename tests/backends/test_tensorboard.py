"""TensorBoard, read with its own event loader: what its pages will show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.tensorboard.backend import TensorboardBackend
from slime_logging.backends.tensorboard.reading import directory_of
from slime_logging.errors import TryAgain
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario

CONFIG = RunConfig(
    values={"lr": 1e-6, "critic/lr": 5e-6, "overrides/critic/lr": {"base": 1e-6, "value": 5e-6}},
    roles={"actor": {"lr": 1e-6, "seed": None}, "critic": {"lr": 5e-6, "seed": None}},
)
ROWS = [
    scenario.row(1, {"train/loss": 0.5, "train/note": "a *note*", "train/tokens": 2**24 + 1}),
    scenario.row(2, {"train/critic-loss": 2.0}, role="critic", step=7),
    scenario.row(3, {"rollout/reward": 1e300}, role=None, step_key="rollout/step", step=2.5),
    scenario.row(4, {"train/loss": 0.25}, step=0),
]


def facts(directory: Path, **changes: Any) -> RunFacts:
    given: dict[str, Any] = {
        "run_id": "r1",
        "project": "proj",
        "name": "job",
        "group": None,
        "axes": {},
    }
    return RunFacts(**given | {"directory": directory, "created_s": scenario.START_S} | changes)


def deliver(run: RunFacts, exit_code: int | None = 0) -> None:
    backend = TensorboardBackend()
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    backend.write(ROWS)
    backend.close(exit_code, 5.0)


def load(directory: Path) -> Any:
    """A directory as TensorBoard's own loader sees it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loaded = EventAccumulator(str(directory), size_guidance={"tensors": 0, "scalars": 0})
    loaded.Reload()
    return loaded


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tensorboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TENSORBOARD_DIR", raising=False)
        deliver(facts(directory))
    return directory / "tensorboard"


def hparams(directory: Path) -> Any:
    from tensorboard.plugins.hparams import metadata

    content = load(directory).SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    return metadata.parse_session_start_info_plugin_data(content)


def test_each_role_has_a_directory(place: Path) -> None:
    """Actor, critic and the job itself are three runs in TensorBoard."""
    assert sorted(path.name for path in place.iterdir()) == ["actor", "critic", "job"]


def test_scalars_have_their_step_and_time(place: Path) -> None:
    """Both are the row's own, and a lower step than before is kept."""
    events = load(place / "actor").Scalars("train/loss")
    assert [(event.step, event.wall_time, event.value) for event in events] == [
        (1, ROWS[0].time_s, 0.5),
        (0, ROWS[3].time_s, 0.25),
    ]


def test_text_is_on_the_text_page(place: Path) -> None:
    """A metric that is no number gets a tag of its own."""
    assert (
        load(place / "actor").Tensors("train/note/text_summary")[0].tensor_proto.string_val[0]
        == b"a *note*"
    )


def test_fractional_step_is_kept_under_its_key(place: Path) -> None:
    """TensorBoard's steps are whole; the exact one is a scalar."""
    event = load(place / "job").Scalars("rollout/step")[0]
    assert (event.step, event.value) == (2, 2.5)


def test_number_beyond_range_is_the_largest(place: Path) -> None:
    """A double that single precision cannot hold stays finite."""
    assert load(place / "job").Scalars("rollout/reward")[0].value == pytest.approx(3.4028235e38)


def test_hyperparameters_are_unprefixed(place: Path) -> None:
    """Each role is a line of the hparams table, with its own lr in the same column; None is a text."""
    found = {role: hparams(place / role) for role in ("actor", "critic")}
    assert [found[role].hparams["lr"].number_value for role in found] == [1e-6, 5e-6]
    assert (found["critic"].group_name, found["critic"].hparams["seed"].string_value) == (
        "critic job",
        "None",
    )


def test_difference_of_the_roles_is_a_table(place: Path) -> None:
    """The text page shows actor and critic side by side."""
    table = (
        load(place / "job")
        .Tensors("config/difference of the roles")[0]
        .tensor_proto.string_val[0]
        .decode()
    )
    assert table.split("\n")[2:] == ["| lr | 1e-06 | 5e-06 |"]


def test_experiment_is_never_declared(place: Path) -> None:
    """An experiment's tag anywhere would dictate the columns of the hparams table."""
    from tensorboard.plugins.hparams import metadata

    for role in ("actor", "critic", "job"):
        assert metadata.EXPERIMENT_TAG not in load(place / role).PluginTagToContent(
            metadata.PLUGIN_NAME
        )


@pytest.mark.parametrize(("exit_code", "status"), [(0, 1), (3, 2)])
def test_final_state(tmp_path: Path, exit_code: int, status: int) -> None:
    """The hparams page shows success and failure."""
    from tensorboard.plugins.hparams import metadata

    deliver(facts(tmp_path), exit_code)
    loaded = load(tmp_path / "tensorboard" / "critic")
    content = loaded.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content
    assert metadata.parse_session_end_info_plugin_data(content).status == status


def test_resumed_run_shows_the_new_configuration(tmp_path: Path) -> None:
    """TensorBoard shows the first configuration that it finds, so there is one file of it, replaced as a whole."""
    deliver(facts(tmp_path), None)
    backend = TensorboardBackend()
    backend.open(facts(tmp_path), Writer(label="primary"))
    backend.set_config(RunConfig(values={"lr": 2e-6}, roles={"actor": {"lr": 2e-6}}))
    backend.close(None, 5.0)
    assert hparams(tmp_path / "tensorboard" / "actor").hparams["lr"].number_value == 2e-6
    assert len(load(tmp_path / "tensorboard" / "actor").Scalars("train/loss")) == 2


def test_two_writers_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    """Writers that start in the same second have files of their own."""
    writers = [TensorboardBackend() for _ in range(3)]
    for writer in writers:
        writer.open(facts(tmp_path), Writer(label="any"))
        writer.write(ROWS)
    for writer in writers:
        writer.close(None, 5.0)
    assert len(list(writers[0].read_points(facts(tmp_path)))) == 3 * len(ROWS)


def test_slimes_flags_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--tb-project-name` and `--tb-experiment-name` name the directories, as in slime."""
    monkeypatch.chdir(tmp_path)
    deliver(facts(tmp_path / "run", options={"tb_project_name": "p", "tb_experiment_name": "e"}))
    assert (tmp_path / "tensorboard_log" / "p" / "e" / "critic").is_dir()


def test_directory_variable_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TENSORBOARD_DIR goes before slime's flags, and each run has a directory in it."""
    monkeypatch.setenv("TENSORBOARD_DIR", str(tmp_path / "logs"))
    deliver(facts(tmp_path / "run", options={"tb_project_name": "p"}))
    assert (tmp_path / "logs" / "job" / "critic").is_dir()


def test_files_elsewhere_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later reader with another environment and working directory finds the files through the run's directory."""
    with monkeypatch.context() as patch:
        patch.setenv("TENSORBOARD_DIR", str(tmp_path / "logs"))
        deliver(facts(tmp_path / "run"))
    assert len(list(TensorboardBackend().read_points(facts(tmp_path / "run")))) == len(ROWS)


def test_two_jobs_in_one_directory_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs with one name in one directory are told apart by their ids."""
    monkeypatch.setenv("TENSORBOARD_DIR", str(tmp_path))
    for run_id in ("r1", "r1.x", "x.r1"):
        deliver(facts(tmp_path / run_id, run_id=run_id))
    assert len(list(TensorboardBackend().read_points(facts(tmp_path / "r1")))) == len(ROWS)


def test_half_a_record_ends_a_file(tmp_path: Path) -> None:
    """What a killed writer left unfinished is not read, and what is before it is."""
    deliver(facts(tmp_path), None)
    (path,) = (tmp_path / "tensorboard" / "critic").glob("*.rows")
    path.write_bytes(path.read_bytes()[:-3])
    assert len(list(TensorboardBackend().read_points(facts(tmp_path)))) == len(ROWS) - 1


def test_unusable_directory_is_try_again(tmp_path: Path) -> None:
    """A file where the directory should be, as a full or missing disk, may be mended."""
    (tmp_path / "tensorboard").write_text("")
    with pytest.raises(TryAgain):
        TensorboardBackend().open(facts(tmp_path), Writer(label="primary"))


def test_lost_directory_is_try_again_and_then_works(tmp_path: Path) -> None:
    """After a write that failed, the next one starts a new file."""
    run, backend = facts(tmp_path), TensorboardBackend()
    backend.open(run, Writer(label="primary"))
    (tmp_path / "tensorboard" / "actor").write_text("")
    with pytest.raises(TryAgain):
        backend.write(ROWS[:1])
    (tmp_path / "tensorboard" / "actor").unlink()
    backend.write(ROWS[:1])
    assert list(backend.read_points(run)) == backend.points(ROWS[0])


def test_tensorflow_and_torch_are_not_imported(tmp_path: Path) -> None:
    """Logging loads neither, nor tensorboardX."""
    code = (
        "import sys; from tests.backends.test_tensorboard import deliver, facts; from pathlib import Path;"
        f"deliver(facts(Path({str(tmp_path)!r})));"
        "print(sorted({'tensorflow', 'torch', 'tensorboardX'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("role", ["..", ".", "../..", ".hidden", "a/../b"])
def test_no_role_leads_out_of_the_runs_folder(role: str) -> None:
    """A role's directory is one name below the run's."""
    name = directory_of(role)
    assert "/" not in name
    assert not name.startswith(".")
