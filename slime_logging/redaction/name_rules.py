"""The verdict on a name with the user's own rules applied: `hide` and `show`.

Policy: `show` settles a name by exact match and beats everything that goes by name (not what goes
by value or form); `hide` comes next and hides even bools and numbers; then the tables of
`secret_names`. Verdicts are remembered.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from slime_logging.errors import SettingsError
from slime_logging.redaction import secret_names
from slime_logging.redaction.secret_forms import Form
from slime_logging.redaction.secret_names import Verdict

MAX_REMEMBERED = 50_000
"""Verdicts kept; names come from options and metrics, so a sound job stays far below."""


class NameRules:
    """Judges names by the user's rules and the tables.

    Args:
        hide: exact names, globs, `re:<regular expression over names>`, `text:<regular expression
        over texts>`.
        show: exact names.

    Raises:
        SettingsError: a pattern that does not compile, or a pattern where only an exact name is
        allowed.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        for name in show:
            if (
                re.search(r"[*?\[\]]", name)
                or name.startswith(("re:", "text:"))
                or not name.strip()
            ):
                raise SettingsError(
                    f"--tracking-show {name!r}: only exact names can be shown, because a pattern would show "
                    "secrets that nobody thought of. "
                    "Write each name out."
                )
        self._show = frozenset(_normal(name) for name in show)
        self._hide_exact = frozenset(_normal(name) for name in hide if not _is_pattern(name))
        self._hide = [
            _compiled(name) for name in hide if _is_pattern(name) and not name.startswith("text:")
        ]
        self.forms = tuple(
            Form(
                "pattern", "", _checked(name, name.removeprefix("text:")).pattern, "--tracking-hide"
            )
            for name in hide
            if name.startswith("text:")
        )
        self._verdicts: dict[str, Verdict] = {}

    @property
    def has_own(self) -> bool:
        """Whether the user hides names of their own, which the tables' quick check knows nothing
        of.
        """
        return bool(self._hide_exact or self._hide)

    def judge(self, name: str) -> Verdict:
        """How a value under this name is treated."""
        verdict = self._verdicts.get(name)
        if verdict is None:
            verdict = self._judge(name)
            if len(self._verdicts) >= MAX_REMEMBERED:
                self._verdicts.clear()
            self._verdicts[name] = verdict
        return verdict

    def _judge(self, name: str) -> Verdict:
        if self._show or self.has_own:
            ways = {_normal(name), _normal(secret_names.leaf(name))}
            if ways & self._show:
                return Verdict.SHOWN
            if ways & self._hide_exact or any(
                pattern.search(way) for pattern in self._hide for way in ways
            ):
                return Verdict.FORCED
        return secret_names.judge(name)


def _normal(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_").lower()


def _is_pattern(name: str) -> bool:
    return name.startswith(("re:", "text:")) or any(c in name for c in "*?[")


def _compiled(name: str) -> re.Pattern[str]:
    if name.startswith("re:"):
        return _checked(name, name.removeprefix("re:"), re.IGNORECASE)
    return re.compile(fnmatch.translate(_normal(name)), re.IGNORECASE)


def _checked(name: str, pattern: str, flags: int = 0) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern, flags)
    except re.error as error:
        raise SettingsError(f"--tracking-hide {name!r}: no regular expression ({error}).") from None
    if not pattern or compiled.groups > 1:
        raise SettingsError(
            f"--tracking-hide {name!r}: the pattern must not be empty and may have one group at most."
        )
    return compiled
