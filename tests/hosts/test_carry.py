"""Journals carried by bytes: a copy is a prefix of its journal at every moment, whoever dies and whoever sends twice."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.hosts.carry import Carrier
from slime_logging.hosts.copies import MAX_PIECE_BYTES, Copies, Piece, Reply, new_digest

EMPTY = new_digest().digest()


class Hosts:
    """A directory that sends and one that receives."""

    def __init__(self, place: Path) -> None:
        self.there, self.here = place / "there", place / "here"
        for folder in (self.there / "journals", self.here / "journals", self.there / "media"):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        with (self.there / name).open("ab") as file:
            file.write(data)

    def carrier(self, hand=None) -> Carrier:
        return Carrier(self.there, hand or Copies(self.here).take)

    def is_same(self, name: str) -> bool:
        return (self.there / name).read_bytes() == (self.here / name).read_bytes()


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


J = "journals/critic-h-1-00.jsonl"


def test_what_grows_is_carried_on_and_nothing_twice(hosts):
    carrier = hosts.carrier()
    hosts.write(J, b"one\n")
    assert carrier.carry() == 4
    assert carrier.carry() == 0
    hosts.write(J, b"x" * (3 * MAX_PIECE_BYTES + 5))
    assert carrier.carry() == 3 * MAX_PIECE_BYTES + 5
    assert hosts.is_same(J)
    assert carrier.num_bytes_left() == 0


def test_a_piece_has_a_bound(hosts):
    sizes = []
    copies = Copies(hosts.here)

    def hand(piece: Piece) -> Reply:
        sizes.append(len(piece.data))
        return copies.take(piece)

    hosts.write(J, bytes(10 * MAX_PIECE_BYTES))
    hosts.carrier(hand).carry()
    assert max(sizes) <= MAX_PIECE_BYTES
    big = Piece(
        name="journals/other.jsonl", offset=0, prefix=EMPTY, data=bytes(MAX_PIECE_BYTES + 1)
    )
    assert copies.take(big).is_final


def test_media_go_before_the_journals_that_name_them(hosts):
    names = []
    copies = Copies(hosts.here)

    def hand(piece: Piece) -> Reply:
        names.append(piece.name)
        return copies.take(piece)

    hosts.write(J, b"row\n")
    hosts.write("media/critic-0.png", b"png")
    hosts.carrier(hand).carry()
    assert names.index("media/critic-0.png") < names.index(J)
    assert max(i for i, n in enumerate(names) if n.startswith("media")) < names.index(J)


def test_a_journal_of_the_same_name_with_other_bytes_is_refused_and_the_rest_taken(hosts):
    hosts.write(J, b"mine\n")
    hosts.write("journals/z.jsonl", b"z\n")
    (hosts.here / J).write_bytes(b"your")
    carrier = hosts.carrier()
    carrier.carry()
    assert list(carrier.refused) == [J]
    assert (hosts.here / J).read_bytes() == b"your"
    assert hosts.is_same("journals/z.jsonl")


def test_a_copy_that_another_carrier_brought_further_is_gone_on_from(hosts):
    first, second = hosts.carrier(), hosts.carrier()
    hosts.write(J, b"one\n")
    first.carry()
    hosts.write(J, b"two\n")
    second.carry()
    hosts.write(J, b"three\n")
    assert first.carry() == 10
    assert hosts.is_same(J)


def test_a_changed_prefix_is_noticed_in_a_running_carrier_too(hosts):
    carrier = hosts.carrier()
    hosts.write(J, b"one\n")
    carrier.carry()
    (hosts.here / J).write_bytes(b"two\n")
    hosts.write(J, b"more\n")
    carrier.carry()
    assert (hosts.here / J).read_bytes() == b"two\n"
    assert J in carrier.refused


@pytest.mark.parametrize(
    "name",
    [
        "../x.jsonl",
        "journals/../../x.jsonl",
        "journals/x",
        "run.json",
        "/etc/x.jsonl",
        "media/.x",
        "journals/a/b.jsonl",
        "media/..",
        "delivery/x.json",
        "journals/a\n.jsonl",
    ],
)
def test_a_name_that_leaves_the_two_folders_is_refused(hosts, name):
    reply = Copies(hosts.here).take(Piece(name=name, offset=0, prefix=EMPTY, data=b"x"))
    assert reply.is_final
    assert sorted(p.name for p in hosts.here.rglob("*")) == ["journals"]


def test_links_and_pipes_are_neither_read_nor_written(hosts, tmp_path):
    import os

    secret = tmp_path / "secret"
    secret.write_text("s")
    (hosts.there / "journals/link.jsonl").symlink_to(secret)
    os.mkfifo(hosts.there / "journals/pipe.jsonl")
    (hosts.here / J).symlink_to(secret)
    hosts.write(J, b"x")
    hosts.carrier().carry()
    assert secret.read_text() == "s"
    assert sorted(p.name for p in (hosts.here / "journals").iterdir()) == [Path(J).name]
    os.mkfifo(hosts.here / "journals/p.jsonl")
    hosts.write("journals/p.jsonl", b"x")
    carrier = hosts.carrier()
    carrier.carry()
    assert "journals/p.jsonl" in carrier.refused


@pytest.mark.slow
def test_a_full_disk_is_told_and_tried_again(hosts):
    """A limit of this process on the size of files: the write is short first and then fails, as on a full disk."""
    import signal

    hosts.write(J, bytes(range(256)) * 4096)
    carrier = hosts.carrier()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_PIECE_BYTES + 1000, before[1]))
    try:
        assert carrier.carry() <= MAX_PIECE_BYTES + 1000
        carrier.carry()
        assert carrier.problem
        assert carrier.num_bytes_left() == 256 * 4096 - MAX_PIECE_BYTES - 1000
        assert not carrier.refused
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    carrier.carry()
    assert hosts.is_same(J)
    assert carrier.problem == ""


class Unsteady:
    """A way to the receiver that loses questions and answers, and a receiver that is made again now and then."""

    def __init__(self, here: Path, seed: int) -> None:
        self._here, self._random = here, random.Random(seed)
        self._copies = Copies(here)
        self._late: list[Piece] = []

    def __call__(self, piece: Piece) -> Reply:
        luck = self._random.random()
        if luck < 0.1:
            raise ConnectionError("question lost")
        if luck < 0.2:
            self._late.append(piece)
            raise ConnectionError("question late")
        if luck < 0.3:
            self._copies = Copies(self._here)
        if luck < 0.4 and self._late:
            self._copies.take(self._late.pop(self._random.randrange(len(self._late))))
        reply = self._copies.take(piece)
        if luck > 0.9:
            raise ConnectionError("answer lost")
        return reply


@given(
    seed=st.integers(0, 2**32), pieces=st.lists(st.binary(min_size=1, max_size=2000), max_size=12)
)
def test_whatever_is_lost_late_or_doubled_on_the_way_the_copy_is_the_journal(
    tmp_path_factory, seed, pieces
):
    hosts = Hosts(tmp_path_factory.mktemp("h"))
    hosts.write(J, b"")
    hand = Unsteady(hosts.here, seed)
    carrier = hosts.carrier(hand)
    for data in pieces:
        hosts.write(J, data)
        if random.Random(seed).random() < 0.2:
            carrier = hosts.carrier(hand)
        try:
            carrier.carry()
        except ConnectionError:
            continue
        finally:
            if (hosts.here / J).exists():
                copy = (hosts.here / J).read_bytes()
                assert (hosts.there / J).read_bytes().startswith(copy)
    hosts.carrier().carry()
    assert not pieces or hosts.is_same(J)


def test_two_carriers_and_two_receivers_at_once_leave_one_copy(hosts):
    import threading

    hosts.write(J, random.Random(1).randbytes(5 * MAX_PIECE_BYTES))

    def run() -> None:
        carrier = hosts.carrier()
        while carrier.num_bytes_left():
            carrier.carry()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert hosts.is_same(J)
