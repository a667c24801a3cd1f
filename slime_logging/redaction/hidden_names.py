"""What stands for a hidden value, and the names of all that was hidden."""

from __future__ import annotations

from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.placeholder import name_in, placeholder
from slime_logging.redaction.search import Budget
from slime_logging.redaction.secret_names import leaf

MAX_CACHED = 10_000


class HiddenNames:
    """The names under which something was hidden.

    Attributes:
        names: as they are shown, so without the secrets that a name may hold itself.
    """

    def __init__(self, known: KnownSecrets) -> None:
        self.names: set[str] = set()
        self._known = known
        self._cached: tuple[int, dict[str, str]] = (0, {})

    def shown(self, name: str) -> str:
        """The placeholder for a value of this name, which is told in `names`."""
        size, cached = self._cached
        if size != len(self._known) or len(cached) > MAX_CACHED:
            self._cached = (len(self._known), cached := {})
        if name not in cached:
            last = leaf(name).encode("utf-8", "surrogatepass")
            last = self._known.replace(last, lambda _: "secret", Budget())
            cached[name] = placeholder(last.decode("utf-8", "replace"))
            self.names.add(name_in(cached[name]))
        return cached[name]
