"""Names as they are shown: those of keys and metrics, and those of hidden values."""

from __future__ import annotations

from collections.abc import Sequence

from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.placeholder import name_in, placeholder
from slime_logging.redaction.row_text import RowTexts
from slime_logging.redaction.search import Budget, decoded, encoded
from slime_logging.redaction.secret_forms import FormRules
from slime_logging.redaction.secret_names import leaf

MAX_PLACEHOLDERS = 10_000
MAX_NAMES = 200_000
"""Names whose redacted form is remembered; further ones are redacted each time."""


class ShownNames:
    """Keys and metric names without the secrets in them. A secret that is learned later does not
    change a name that was shown.
    """

    def __init__(self, texts: RowTexts) -> None:
        self._texts = texts
        self._shown: dict[str, str] = {}

    def shown(self, names: Sequence[str]) -> list[str]:
        """How the names are shown; new ones are looked through as one."""
        new = [name for name in names if name not in self._shown]
        if not new:
            return [self._shown[name] for name in names]
        data = b"\xff".join(encoded(name) for name in new)
        after = self._texts.hidden(data)
        parts = new if after == data else list(map(decoded, after.split(b"\xff")))
        found = dict(zip(new, parts, strict=True))
        if len(self._shown) + len(new) <= MAX_NAMES:
            found = {name: self._shown.setdefault(name, text) for name, text in found.items()}
        return [found[name] if name in found else self._shown[name] for name in names]


class Placeholders:
    """What stands for the values that one redactor hides, made once a name; without a secret that
    the name itself holds.
    """

    def __init__(self, known: KnownSecrets, forms: FormRules) -> None:
        self._known = known
        self._forms = forms
        self._made: tuple[int, dict[str, str]] = (0, {})
        self._hidden: set[str] = set()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of everything hidden so far, sorted."""
        return tuple(sorted(self._hidden.copy()))

    def shown(self, name: str, _value: str = "") -> str:
        """What stands for a value of this name."""
        size, made = self._made
        if size != len(self._known) or len(made) > MAX_PLACEHOLDERS:
            self._made = (len(self._known), made := {})
        if name not in made:
            last = self._known.replace(encoded(leaf(name)), lambda _: "secret", Budget())
            last = self._forms.hide(last, lambda *_: "secret", True, Budget())
            made[name] = placeholder(last.decode("utf-8", "replace"))
            self._hidden.add(name_in(made[name]))
        return made[name]
