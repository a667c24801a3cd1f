"""Overrides by the job's own parser: what follows, what is refused, and that nothing reaches the job."""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import threading
import types
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from slime_logging.errors import RoleConfigError
from slime_logging.roles.roles import EXACT, TABLES, parse_megatron_role_args, parse_role_file

JOB = ["--lr", "1e-6", "--hidden", "64", "--hooks=a", "--hooks=b", "--fast", "--limits", "1", "2"]


class Table:
    """An object of a parser's own, compared by identity."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows


def reparse(words: list[str]) -> Namespace:
    """A parser with a validation of its own, which the shipped tables do not know."""
    parser = argparse.ArgumentParser(prog="job")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--min-lr", type=float, default=0.0)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--ffn", type=int)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--hooks", action="append")
    parser.add_argument("--limits", nargs="+", type=int)
    parser.add_argument("--options", type=str)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--stuck", action="store_true", default=True)
    parser.add_argument("--no-bias", dest="bias", action="store_false")
    parser.add_argument("--gone", type=int)
    args = parser.parse_args(words)
    if args.ffn is None:
        args.ffn = 4 * args.hidden
    if args.min_lr > args.lr:
        raise AssertionError  # above lr
    if args.hidden % args.heads:
        raise ValueError(f"--hidden {args.hidden} is no multiple of --heads {args.heads}")
    args.table = Table([args.hidden])
    args.twice = 2 * args.lr if args.fast else None
    if args.gone is None:
        args.kept = 1
    return args


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Namespace:
    monkeypatch.setattr(sys, "argv", ["train.py", *JOB])
    return reparse(JOB)


def write(folder: Path, *lines: str, role: str = "critic") -> str:
    path = folder / "roles.yaml"
    text = "".join(f"      {line}\n" for line in lines)
    path.write_text(f"megatron:\n  - role: {role}\n    overrides:\n{text}", encoding="utf-8")
    return str(path)


def values(args: Namespace) -> dict[str, Any]:
    return {k: v.rows if isinstance(v, Table) else v for k, v in vars(args).items()}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lr: 0x10", ["--lr", "16"]),
        ("lr: .inf", ["--lr", "inf"]),
        ("hidden: 1e2", ["--hidden", "100"]),
        ("fast: false", []),
        ("bias: no", ["--no-bias"]),
        ("bias: yes", []),
        ("hooks: [x, y]", ["--hooks=x", "--hooks=y"]),
        ("hooks: -z", ["--hooks=-z"]),
        ("hooks: null", []),
        ("limits: [3, -4]", ["--limits", "3", "-4"]),
        ("limits: -5", ["--limits", "-5"]),
        ("ffn: null", []),
        ("options: 010", ["--options", "010"]),
        ('options: ""', ["--options="]),
        ("gone: 3", ["--gone", "3"]),
    ],
)
def test_an_entry_means_what_its_flag_means(
    line: str, words: list[str], base: Namespace, tmp_path: Path
) -> None:
    """The whole namespace is the one of the command line with the flag in place of its own."""
    key = line.split(":")[0]
    plain = {"lr": JOB[:2], "hidden": JOB[2:4], "hooks": JOB[4:6], "fast": JOB[6:7]}
    plain |= {"limits": JOB[7:]}
    kept = [word for name, group in plain.items() if name != key for word in group]
    found = parse_role_file(base, write(tmp_path, line), reparse=reparse)
    assert found.basis == EXACT
    assert values(found.args["critic"]) == values(reparse([*kept, *words]))
    assert values(found.args["actor"]) == values(base) == values(reparse(JOB))


def test_what_follows_is_recorded_and_told(base: Namespace, tmp_path: Path) -> None:
    """What the validation computes from an override is recorded as derived, with both values."""
    found = parse_role_file(base, write(tmp_path, "hidden: 128"), reparse=reparse)
    sources = {one.key: (one.source, one.base, one.value) for one in found.overrides["critic"]}
    assert sources["hidden"] == ("file", 64, 128)
    assert sources["ffn"] == ("derived", 256, 512)
    assert any("`ffn` follows hidden: 256 -> 512" in text for text in found.warnings)


def test_of_many_values_that_something_follows_from_some_are_named(
    base: Namespace, tmp_path: Path
) -> None:
    """A role file of 50 overrides does not list them all beside each of their consequences."""
    lines = ("min_lr: 1e-7", "hidden: 32", "ffn: 8", "heads: 2", "options: a", "lr: 1e-5")
    found = parse_role_file(base, write(tmp_path, *lines), reparse=reparse)
    (told,) = [text for text in found.warnings if "`twice`" in text]
    assert "follows min_lr, hidden, ffn, heads, options, 1 more: " in told


def test_what_no_flag_can_say_keeps_the_meaning_of_the_entry(
    base: Namespace, tmp_path: Path
) -> None:
    """A switch that only sets true takes false, beside values that the parser computes."""
    args = parse_megatron_role_args(
        base, write(tmp_path, "stuck: false", "hidden: 128"), "critic", reparse=reparse
    )
    assert (args.stuck, args.hidden, args.ffn) == (False, 128, 512)


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        (["hidden: 63"], "4:15", "--hidden 63 is no multiple of --heads 4"),
        (["lr: 2", "min_lr: 3"], "5:15", "stops at `raise AssertionError  # above lr`"),
        (["lr: 2", "heads: 5"], "5:14", "--hidden 64 is no multiple of --heads 5"),
    ],
)
def test_a_refusal_has_the_validators_words_and_the_place(
    lines: list[str], place: str, words: str, base: Namespace, tmp_path: Path
) -> None:
    """What validation refuses is a mistake at the entry's line, in the validation's own words."""
    path = write(tmp_path, *lines)
    with pytest.raises(RoleConfigError) as caught:
        parse_role_file(base, path, reparse=reparse)
    assert words in str(caught.value)
    assert "1 mistake in" in str(caught.value) and f"{path}:{place}" in str(caught.value)


def test_several_refusals_are_told_at_once(base: Namespace, tmp_path: Path) -> None:
    """One refusal does not hide the next, nor a mistake of the file."""
    path = write(tmp_path, "min_lr: 9", "hidden: 63", "fast: maybe")
    with pytest.raises(RoleConfigError) as caught:
        parse_role_file(base, path, reparse=reparse)
    assert "3 mistakes" in str(caught.value)


def test_an_exit_of_the_parser_is_a_refusal(base: Namespace, tmp_path: Path) -> None:
    """argparse ends the process that tries; the job goes on with its words."""

    def picky(words: list[str]) -> Namespace:
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        args, _ = parser.parse_known_args(words)
        if args.lr > 1:
            parser.error("argument --lr: too large for this model")
        return reparse(words)

    path = write(tmp_path, "lr: 2")
    with pytest.raises(RoleConfigError, match="too large for this model"):
        parse_role_file(base, path, reparse=picky)


def test_another_command_line_is_told_and_the_tables_stand_in(
    base: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Where the words do not give the base again, it is said once, with the names that differ."""
    monkeypatch.setattr(sys, "argv", ["train.py", "--lr", "1e-3"])
    path = write(tmp_path, "weight_decay: 0.5")
    base.weight_decay = 0.1
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        found = [parse_role_file(base, path, reparse=reparse) for _ in range(2)]
    assert found[0].basis == TABLES
    assert found[0].args["critic"].weight_decay == 0.5
    told = [one.getMessage() for one in caplog.records if "it gives other values" in one.message]
    assert len(told) == 1 and "fast, ffn, hidden" in told[0]


def test_values_set_at_run_time_are_no_other_command_line(base: Namespace, tmp_path: Path) -> None:
    """What slime writes into the arguments after parsing stays, and does not end exactness."""
    base.wandb_run_id, base.num_rollout, base.own = "abc", 7, threading.Lock()
    found = parse_role_file(base, write(tmp_path, "hidden: 128"), reparse=reparse)
    assert found.basis == EXACT
    assert (found.args["critic"].num_rollout, found.args["critic"].own) == (7, base.own)


def test_no_side_effect_reaches_the_job(
    base: Namespace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Environment, loggers, arguments, files, output, warnings and random state stay as they are."""
    kept = tmp_path / "kept.txt"
    kept.write_text("kept")
    log = logging.getLogger("some.package")
    handler = logging.FileHandler(tmp_path / "job.log")
    log.addHandler(handler)

    def rude(words: list[str]) -> Namespace:
        os.environ["RUDE"] = "1"
        os.chdir("/")
        os.umask(0)
        logging.basicConfig(force=True, level=logging.DEBUG)
        logging.disable(logging.CRITICAL)
        log.error("from the trial")
        sys.argv[:] = ["rude"]
        random.seed(1)
        warnings.warn("rude", stacklevel=1)
        base.lr = 5.0
        sys.modules["rude"] = types.ModuleType("rude")
        print("rude", flush=True)
        print("rude", file=sys.stderr, flush=True)
        os.write(1, b"rude")
        (tmp_path / "new").mkdir(exist_ok=True)
        (tmp_path / "new.txt").write_text("new")
        with kept.open("a") as file:
            file.write("more")
        kept.rename(tmp_path / "moved.txt")
        kept.unlink()
        return reparse(words)

    before = (dict(os.environ), sys.argv[:], random.getstate(), Path.cwd(), logging.root.level)
    with warnings.catch_warnings(record=True) as warned:
        found = parse_role_file(base, write(tmp_path, "hidden: 128"), reparse=rude)
    log.removeHandler(handler)
    handler.close()
    assert found.basis == EXACT and found.args["critic"].ffn == 512
    after = (dict(os.environ), sys.argv[:], random.getstate(), Path.cwd(), logging.root.level)
    assert after == before
    assert base.lr == 1e-6 and "rude" not in sys.modules
    assert [str(one.message) for one in warned if "rude" in str(one.message)] == []
    assert "rude" not in "".join(capfd.readouterr())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["job.log", "kept.txt", "roles.yaml"]
    assert kept.read_text() == "kept" and (tmp_path / "job.log").read_text() == ""


def test_a_parser_that_does_not_answer_is_left(
    base: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that hangs is ended after its time, and the tables stand in."""
    monkeypatch.setattr("slime_logging.roles.trial.TIMEOUT_S", 0.5)
    found = parse_role_file(
        base, write(tmp_path, "hidden: 128"), reparse=lambda words: threading.Event().wait()
    )
    assert found.basis == TABLES and found.args["critic"].hidden == 128


def test_a_parser_may_use_its_streams_as_it_would_any(
    base: Namespace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Crash handlers ask for a descriptor, progress bars write bytes and set buffering."""

    def chatty(words: list[str]) -> Namespace:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)
            stream.buffer.write(b"bytes")
            os.write(stream.fileno(), b"low")
            print("é", stream.encoding, stream.isatty(), file=stream, flush=True)
        return reparse(words)

    found = parse_role_file(base, write(tmp_path, "hidden: 32"), reparse=chatty)
    assert (found.basis, found.args["critic"].ffn) == (EXACT, 128)
    assert capfd.readouterr() == ("", "")


def test_a_parser_that_dies_is_left(base: Namespace, tmp_path: Path) -> None:
    """A trial whose process dies gives no answer, and the tables stand in."""
    found = parse_role_file(base, write(tmp_path, "hidden: 128"), reparse=lambda words: os._exit(3))
    assert found.basis == TABLES


def test_slimes_parser_is_found_where_slime_is_loaded(
    base: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `reparse`, the loaded `slime.utils.arguments` is asked, and its critic's values hold."""
    slime = types.ModuleType("slime.utils.arguments")

    def apply(args: Namespace, overrides: dict[str, Any], role: str) -> Namespace:
        args = Namespace(**{**vars(args), **overrides})
        if role == "critic":
            args.heads = 2
            if "bias" not in overrides:
                args.bias = False
        return args

    slime.parse_args = lambda: reparse(sys.argv[1:])  # type: ignore[attr-defined]
    slime._apply_megatron_role_overrides = apply  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "slime.utils.arguments", slime)
    found = parse_role_file(base, write(tmp_path, "hidden: 128"))
    critic = found.args["critic"]
    assert found.basis == EXACT
    assert (critic.ffn, critic.heads, critic.bias) == (512, 2, False)
    assert parse_megatron_role_args(base, write(tmp_path, "bias: true"), "critic").bias is False
    assert {one.key: one.source for one in found.overrides["critic"]}["heads"] == "forced"
