"""The frame of a role file, mistake by mistake."""

from __future__ import annotations

import pytest

from slime_logging.roles.entries import entries_of
from slime_logging.roles.role_file import parse_document

ROLES = ("actor", "critic")


def reasons(text: str) -> list[str]:
    return [problem.reason for problem in entries_of(parse_document(text.encode()), ROLES)[1]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "top-level 'megatron' list"),
        ("[]", "top-level 'megatron' list"),
        ("lr: 1", "top-level 'megatron' list"),
        ("megatron:", "is no list"),
        ("megatron: {role: critic}", "is no list"),
        ("megatron: critic", "is no list"),
        ("megatron: []\nextra: 1", "`extra` has no meaning"),
        ("megatron: [critic]", "must be a mapping"),
        ("megatron: [[critic]]", "must be a mapping"),
        ("megatron: [{overrides: {}}]", "has no role"),
        ("megatron: [{role: }]", "has no role"),
        ("megatron: [{role: [critic]}]", "has no role"),
        ("megatron: [{role: Critic}]", "there is no role 'Critic'"),
        ("megatron: [{role: critic, override: {}}]", "`override` is none of them"),
        ("megatron: [{role: critic, lr: 1}]", "`lr` is none of them"),
        ("megatron: [{role: critic, name: [a]}]", "`name` must be a text"),
        ("megatron: [{role: critic, overrides: [lr]}]", "`overrides` must be a mapping"),
        ("megatron: [{role: critic, args: lr}]", "`args` must be a mapping"),
        ("megatron: [{role: critic, args: {}, overrides: {}}]", "not both"),
        ("megatron: [{role: critic}, {role: critic}]", "a second entry for the role critic"),
        ("megatron: [&a {role: critic}, *a]", "a second entry for the role critic"),
        ("megatron: [{role: critic, args: {min-lr: 1, min_lr: 2}}]", "`min_lr` is set twice"),
    ],
)
def test_a_wrong_frame_is_told(text: str, reason: str) -> None:
    """Each shape that a role file does not have, in its own words."""
    assert [reason in told for told in reasons(text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "megatron: []",
        "megatron: [{role: critic}]",
        "megatron: [{role: critic, overrides: }]",
        "megatron: [{name: default, role: critic, overrides: {lr: 1}}]",
        "megatron: [{role: critic, overrides: {lr: 1}, args: }]",
    ],
)
def test_a_right_frame(text: str) -> None:
    """An empty list, an entry without overrides, and both forms of writing them."""
    assert reasons(text) == []


def test_a_misspelt_role_is_checked_as_the_nearest() -> None:
    """So that its values' mistakes come in the same message."""
    [entry], [_] = entries_of(parse_document(b"megatron: [{role: critics, args: {lr: x}}]"), ROLES)
    assert (entry.role, entry.label, list(entry.written)) == ("critic", "critic", ["lr"])


def test_an_entry_of_no_known_role_is_checked_without_a_name() -> None:
    """No message says that it is the actor's."""
    [entry], [_] = entries_of(parse_document(b"megatron: [{role: xyz, args: {lr: x}}]"), ROLES)
    assert entry.label is None
