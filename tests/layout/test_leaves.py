"""A configuration of any kind becomes flat keys with dots, redacted, and is not changed."""

from __future__ import annotations

import dataclasses
import enum
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import attrs
import msgspec
import omegaconf
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.errors import SettingsError
from slime_logging.layout.leaves import config_json, leaves
from slime_logging.redaction.redact import Redactor

SECRET = "a9f3c1d7e5b2046881f0d3b7c6e4a2958d1f7c3b"
TREE = {
    "seed": 1,
    "actor": {"optim": {"lr": 1e-6, "betas": [0.9, 0.95]}, "path": "/m"},
    "data": {"sets": [{"name": "math"}, {"name": "code"}]},
}
FLAT = {
    "seed": 1,
    "actor.optim.lr": 1e-6,
    "actor.optim.betas": [0.9, 0.95],
    "actor.path": "/m",
    "data.sets.0.name": "math",
    "data.sets.1.name": "code",
}


class SyncMethod(enum.Enum):
    NCCL = "nccl"


@dataclasses.dataclass
class Optim:
    lr: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.95)


@dataclasses.dataclass(slots=True)
class Actor:
    optim: Optim = dataclasses.field(default_factory=Optim)
    path: Path = Path("/m")


@dataclasses.dataclass
class Job:
    seed: int = 1
    actor: Actor = dataclasses.field(default_factory=Actor)
    data: dict = dataclasses.field(default_factory=lambda: TREE["data"])


class PydanticActor(pydantic.BaseModel):
    optim: dict = TREE["actor"]["optim"]
    path: str = "/m"


class PydanticJob(pydantic.BaseModel, extra="allow"):
    seed: int = 1
    actor: PydanticActor = PydanticActor()


@attrs.define
class AttrsActor:
    optim: dict = attrs.field(factory=lambda: TREE["actor"]["optim"])
    path: str = "/m"


@attrs.define
class AttrsJob:
    seed: int = 1
    actor: AttrsActor = attrs.field(factory=AttrsActor)
    data: dict = attrs.field(factory=lambda: TREE["data"])


class StructJob(msgspec.Struct):
    seed: int = 1
    actor: dict = msgspec.field(default_factory=lambda: TREE["actor"])
    data: dict = msgspec.field(default_factory=lambda: TREE["data"])


class Plain:
    def __init__(self):
        self.seed, self.actor, self.data = 1, TREE["actor"], TREE["data"]


@pytest.mark.parametrize(
    "config",
    [
        TREE,
        Job(),
        Namespace(**TREE),
        SimpleNamespace(**TREE),
        omegaconf.OmegaConf.create(TREE),
        omegaconf.OmegaConf.structured(Job),
        PydanticJob(data=TREE["data"]),
        AttrsJob(),
        StructJob(),
        Plain(),
    ],
    ids=lambda config: type(config).__name__,
)
def test_every_kind_of_configuration_has_the_same_keys(config):
    assert leaves(config_json(config)) == FLAT


def test_what_cannot_be_read_of_an_omegaconf_costs_its_key_alone():
    config = omegaconf.OmegaConf.create(
        {"a": {"missing": "???", "broken": "${nowhere}", "ok": "${b}"}, "b": 3, "none": None}
    )
    config.section = omegaconf.DictConfig(None)
    flat = leaves(config_json(config))
    assert (flat["a.ok"], flat["b"], flat["none"]) == (3, 3, None)
    assert all(isinstance(flat[key], str) for key in ("a.missing", "a.broken"))
    assert "section" in flat


def test_enums_and_empty_sections_stay_readable():
    assert leaves(config_json({"sync": SyncMethod.NCCL, "empty": {}, "none": []})) == {
        "sync": "NCCL",
        "empty": {},
        "none": [],
    }


@pytest.mark.parametrize("config", [[1, 2], 5, "lr=1", Job, len], ids=repr)
def test_what_has_no_names_is_refused(config):
    with pytest.raises(SettingsError, match="config is a"):
        config_json(config)


class Service(pydantic.BaseModel):
    api_key: pydantic.SecretStr = pydantic.SecretStr(SECRET)
    token: str = SECRET


@pytest.mark.parametrize(
    "config",
    [
        {"a": {"b": [{"c": {"api_key": SECRET}}]}},
        Namespace(deep=Namespace(deeper={"auth": {"token": SECRET}})),
        omegaconf.OmegaConf.create({"judge": {"models": [{"api_key": SECRET, "lr": 1}]}}),
        {"judges": [Service(), {"x": Service()}]},
    ],
    ids=["mapping", "namespace", "omegaconf", "pydantic"],
)
def test_a_secret_is_hidden_at_any_depth(config):
    json = config_json(config)
    flat = leaves(Redactor.of(json, {}).config(json))
    assert SECRET not in repr(flat)
    assert "<hidden: " in repr(flat)


def test_keys_that_meet_both_stay():
    assert leaves({"a.b": 1, "a": {"b": 2}}) == {"a.b": 1, "a.b~2": 2}


names = st.text("ab.~2", min_size=1, max_size=3)
trees = st.recursive(st.integers(), lambda inner: st.dictionaries(names, inner, max_size=3))


@given(st.dictionaries(names, trees, max_size=4))
def test_no_value_is_lost(tree):
    def count(value):
        return sum(map(count, value.values())) if isinstance(value, dict) and value else 1

    assert len(leaves(tree)) == sum(map(count, tree.values()))
