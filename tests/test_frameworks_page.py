"""What docs/frameworks.md shows, against stand-ins of the interfaces that it was read from."""

from __future__ import annotations

import abc
import asyncio
import re
from pathlib import Path

import pytest

from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import journal_config
from slime_logging.record.run import RunDirectory

PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"


class Monitor(abc.ABC):
    """prime-rl's, with what is called of it."""

    async def log(self, data, step, kind="train", subset="effective"):
        if isinstance(data, dict):
            await self.log_metrics(data, step=step)
        else:
            await self.log_episodes(data, step=step, kind=kind, subset=subset)

    @abc.abstractmethod
    async def log_metrics(self, metrics, step): ...

    @abc.abstractmethod
    async def log_episodes(self, episodes, step, kind, subset): ...


class LoggerInterface(abc.ABC):
    """NeMo-RL's."""

    @abc.abstractmethod
    def log_metrics(self, metrics, step, prefix="", step_metric=None, step_finished=False): ...

    @abc.abstractmethod
    def log_hyperparams(self, params): ...

    @abc.abstractmethod
    def log_histogram(self, histogram, step, name): ...

    @abc.abstractmethod
    def log_plot(self, figure, step, name): ...


@pytest.fixture
def page(tmp_path, monkeypatch) -> dict:
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        exec(block, namespace)
    return namespace


def rows(run) -> list[tuple]:
    found = journal_rows(RunDirectory(Path(run.directory)))
    return [(row.step_key, row.step, sorted(row.metrics)) for row in found]


def test_prime_rl(page):
    made = type("Made", (page["SlimeLoggingMonitor"], Monitor), {})()

    async def job():
        await made.init("orchestrator", {"batch_size": 8}, "p", "n")
        await made.log({"reward/mean": 0.5}, step=3)
        await made.log(["an episode"], 3, kind="eval")
        await made.finalize()

    asyncio.run(job())
    first, second = rows(made.run)
    assert first == ("orchestrator/step", 3, ["orchestrator/reward/mean"])
    assert second[:2] == ("orchestrator/eval/step", 3)


def test_nemo_rl(page):
    made = type("Made", (page["SlimeLoggingLogger"], LoggerInterface), {})(
        {"grpo": {"n": 1}}, "p", "n"
    )
    made.log_metrics({"loss": 0.5}, 1, prefix="train", step_finished=True)
    made.log_metrics({"cpu": 3, "ray/step": 9}, 1, prefix="ray", step_metric="ray/step")
    made.log_hyperparams({"lr": 1e-6})
    made.run.finish()
    assert rows(made.run)[0] == ("step", 1, ["train/loss"])
    assert rows(made.run)[1][1] == 9
    values = journal_config(RunDirectory(Path(made.run.directory)), ()).values
    assert (values["grpo.n"], values["lr"]) == (1, 1e-6)
