"""The frame of a role file: a top-level `megatron` list of entries, each `{name, role, overrides}`.

Policy: nothing of the frame is skipped. A key, role or shape that the frame does not have is a
mistake, told with the others; entries that are right as far as they go are handed on, so that their
values are checked in the same pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slime_logging.roles.nodes import Entries, Items, Node, Scalar
from slime_logging.roles.problems import Problem, shown, shown_value
from slime_logging.roles.role_file import Document
from slime_logging.roles.suggest import nearest_texts

EXAMPLE = "megatron: [{name: default, role: critic, overrides: {lr: 1e-5}}]"
ENTRY_KEYS = ("name", "role", "overrides", "args")
NEW_ROLE = re.compile(r"[a-z][a-z0-9_]{2,39}")
"""What a file may call a role that slime does not have: it becomes a part of metrics' names."""


@dataclass(frozen=True, slots=True)
class Written:
    """One override as written: the key's place, and the value. `key` has underscores for dashes."""

    key: str
    name: Scalar
    node: Node


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleEntry:
    """The entry of one role; `label` is the role as the file says it, None where it does not."""

    role: str
    label: str | None
    written: Mapping[str, Written] = field(default_factory=dict)


def entries_of(
    document: Document, roles: Sequence[str], is_open: bool = False
) -> tuple[list[RoleEntry], list[Problem]]:
    """The entries of a document, and what is wrong with its frame.

    Where `is_open`, the file may name other roles than `roles`, if they are not like one of them.

    An entry whose role is misspelt is given under the nearest role, so that its values can be
    checked too.
    """
    frame = _Frame(tuple(roles), is_open)
    return frame.read(document.root), frame.problems


class _Frame:
    def __init__(self, roles: tuple[str, ...], is_open: bool) -> None:
        self.problems: list[Problem] = []
        self._roles = roles
        self._is_open = is_open
        self._seen: dict[str, int] = {}

    def read(self, root: Node) -> list[RoleEntry]:
        if not isinstance(root, Entries) or root.get("megatron") is None:
            reason = "a role file must contain a top-level 'megatron' list"
            where = root.pairs[0][0] if isinstance(root, Entries) and root.pairs else root
            self._report(where, reason, f"for example {EXAMPLE}")
            return []
        for key, _ in root.pairs:
            if key.text != "megatron":
                self._report(
                    key,
                    f"the top-level key `{shown(key.text)}` has no meaning in a role file",
                    "take it out",
                )
        entries = root.get("megatron")
        if not isinstance(entries, Items):
            self._report(
                entries or root,
                "the top-level 'megatron' list is no list",
                f"for example {EXAMPLE}",
            )
            return []
        read = [self._entry(node) for node in entries.nodes]
        return [entry for entry in read if entry is not None]

    def _entry(self, node: Node) -> RoleEntry | None:
        if not isinstance(node, Entries):
            self._report(
                node, "an entry of the 'megatron' list must be a mapping", f"for example {EXAMPLE}"
            )
            return None
        for key, value in node.pairs:
            if key.text not in ENTRY_KEYS:
                self._report_entry_key(key)
            elif key.text == "name" and not isinstance(value, Scalar):
                self._report(value, "`name` must be a text", "write `name: default`")
        role, label = self._role(node)
        return RoleEntry(role=role, label=label, written=self._written(node, label))

    def _report_entry_key(self, key: Scalar) -> None:
        near = nearest_texts(key.text, ENTRY_KEYS, 1)
        fix = f"write `{near[0]}`" if near else "arguments of the role go below `overrides`"
        self._report(
            key, f"an entry has name, role and overrides; `{shown(key.text)}` is none of them", fix
        )

    def _role(self, node: Entries) -> tuple[str, str | None]:
        """The role to check the entry for, and the role to name in what is told of it."""
        value = node.get("role")
        listed = ", ".join(self._roles)
        if not isinstance(value, Scalar) or value.is_null:
            self._report(
                value or node,
                "the entry has no role",
                f"write `role: {self._roles[-1]}` (one of {listed})",
            )
            return self._roles[0], None
        near = nearest_texts(value.text.lower(), self._roles, 1)
        is_new = self._is_open and not near and NEW_ROLE.fullmatch(value.text)
        if value.text not in self._roles and not is_new:
            fix = f"write `role: {near[0]}`" if near else f"write one of {listed}"
            self._report(
                value, f"there is no role '{shown(value.text)}'; the roles are {listed}", fix
            )
            return near[0] if near else self._roles[0], near[0] if near else None
        if value.text in self._seen:
            reason = (
                f"a second entry for the role {value.text}; the first is on line"
                f" {self._seen[value.text]}"
            )
            self._report(value, reason, "put all overrides of a role into one entry")
        self._seen.setdefault(value.text, value.line)
        return value.text, value.text

    def _written(self, node: Entries, role: str | None) -> dict[str, Written]:
        given = [(key, value) for key, value in node.pairs if key.text in ("overrides", "args")]
        given = [
            (key, value)
            for key, value in given
            if not (isinstance(value, Scalar) and value.is_null)
        ]
        if len(given) > 1:
            self._report(
                given[1][0],
                "an entry has `overrides` or `args`, which is the same thing, not both",
                "move all of them below `overrides`",
                role,
            )
        written: dict[str, Written] = {}
        for name, value in given:
            if not isinstance(value, Entries):
                self._report(value, f"`{name.text}` must be a mapping of argument names to values",
                             f"for example `{name.text}: {{lr: 1e-5}}`", role)  # fmt: skip
                continue
            for key, item in value.pairs:
                self._add(written, key, item, role)
        return written

    def _add(self, written: dict[str, Written], key: Scalar, item: Node, role: str | None) -> None:
        plain = key.text.replace("-", "_")
        if plain in written:
            first = written[plain].name.line
            reason = f"`{shown(key.text)}` is set twice; the first is on line {first}"
            self._report(key, reason, "keep one of the two", role)
        else:
            written[plain] = Written(plain, key, item)

    def _report(self, node: Node, reason: str, fix: str, role: str | None = None) -> None:
        text = shown_value("", node.text) if isinstance(node, Scalar) else ""
        self.problems.append(
            Problem(
                line=node.line, column=node.column, text=text, reason=reason, fix=fix, role=role
            )
        )
