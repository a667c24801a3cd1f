"""The registry of read role files."""

from __future__ import annotations

import gc
from argparse import Namespace
from pathlib import Path

import pytest

from slime_logging.roles.documents import Documents
from slime_logging.roles.tree import Unreadable


def test_one_document_for_an_owner_and_path(tmp_path: Path) -> None:
    """The second asking gives the same object; another owner or path does not."""
    for name in "ab":
        (tmp_path / name).write_text("x: 1")
    documents, owner = Documents(), Namespace()
    first = documents.document(owner, str(tmp_path / "a"))
    assert documents.document(owner, str(tmp_path / "a")) is first
    assert documents.document(owner, str(tmp_path / "b")) is not first
    assert documents.document(Namespace(), str(tmp_path / "a")) is not first


def test_equal_owners_are_not_one(tmp_path: Path) -> None:
    """Namespaces compare by content; the registry goes by identity."""
    (tmp_path / "a").write_text("x: 1")
    documents, one, two = Documents(), Namespace(a=1), Namespace(a=1)
    assert documents.document(one, str(tmp_path / "a")) is not documents.document(
        two, str(tmp_path / "a")
    )


def test_an_owner_is_not_kept_alive(tmp_path: Path) -> None:
    """When the namespace goes, so does what is kept for it."""
    (tmp_path / "a").write_text("x: 1")
    documents, owner = Documents(), Namespace()
    documents.document(owner, str(tmp_path / "a"))
    del owner
    gc.collect()
    assert documents._shelves == {}


def test_an_owner_that_cannot_be_referenced_weakly_reads_each_time(tmp_path: Path) -> None:
    """A plain tuple as owner works, without being remembered."""
    (tmp_path / "a").write_text("x: 1")
    documents = Documents()
    assert documents.document((), str(tmp_path / "a")) is not documents.document(
        (), str(tmp_path / "a")
    )
    assert documents.unsaid((), "a", ("w",)) == documents.unsaid((), "a", ("w",)) == ("w",)


def test_a_file_that_cannot_be_read_is_not_remembered(tmp_path: Path) -> None:
    """It may be there the next time."""
    documents, owner = Documents(), Namespace()
    with pytest.raises(Unreadable):
        documents.document(owner, str(tmp_path / "a"))
    (tmp_path / "a").write_text("x: 1")
    assert documents.document(owner, str(tmp_path / "a")).path == str(tmp_path / "a")


def test_a_warning_is_said_once_for_an_owner_and_path() -> None:
    """Repeated ones are left out, new ones are not."""
    documents, owner = Documents(), Namespace()
    assert documents.unsaid(owner, "p", ("a", "b")) == ("a", "b")
    assert documents.unsaid(owner, "p", ("b", "c")) == ("c",)
    assert documents.unsaid(owner, "q", ("b",)) == ("b",)
