"""What a namespace and the environment say of each option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from slime_logging.errors import SettingsError
from slime_logging.redaction.safe_text import as_label
from slime_logging.settings.options import BY_NAME

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off", "none")
MAX_NAME_CHARS = 256


class Given:
    """What a namespace and the environment say, and which of the two said it, for messages."""

    def __init__(self, args: object, environ: Mapping[str, str]) -> None:
        self.args = args
        self.environ = environ

    def said(self, name: str) -> tuple[str, Any]:
        """Who says an option, and what: its flag, else a variable; None where nobody does."""
        option = BY_NAME[name]
        value = getattr(self.args, name, None)
        if value not in (None, ""):
            return option.flag, value
        return option.said_by(self.environ) or (option.flag, None)

    def value(self, name: str) -> Any:
        """What an option is. A secret one stays where it is: whoever needs it looks there."""
        return getattr(self.args, name, None) if BY_NAME[name].is_secret else self.said(name)[1]

    def text(self, name: str) -> str | None:
        """An option as text."""
        value = self.said(name)[1]
        return None if value is None else str(value)

    def names(self, name: str) -> tuple[str, ...]:
        """A list of names, also as one text."""
        value = self.said(name)[1] or ()
        return (
            tuple(value.replace(",", " ").split())
            if isinstance(value, str)
            else tuple(str(item) for item in value)
        )

    def label(self, name: str, most_chars: int = MAX_NAME_CHARS) -> str | None:
        """What people call something, cleaned; words as one text with commas, as vendors write
        them.
        """
        value = self.said(name)[1]
        words = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
        return as_label(",".join(map(str, words)), most_chars) or None

    def choice(self, name: str) -> str | None:
        """One of the option's choices; `SettingsError` for another value."""
        label, value = self.said(name)
        choices = BY_NAME[name].keywords["choices"]
        if value is not None and value not in choices:
            raise SettingsError(f"{label} {value!r}: must be one of {', '.join(choices)}.")
        return cast("str | None", value)

    def truth(self, name: str) -> bool:
        """Yes or no; `SettingsError` for a word that is neither."""
        label, value = self.said(name)
        if not isinstance(value, str):
            return bool(value)
        if value.lower() not in (*TRUE, *FALSE):
            raise SettingsError(f"{label} {value!r}: must be 1 or 0.")
        return value.lower() in TRUE

    def seconds(self, name: str, default: float) -> float:
        """A time of 0 or more; `SettingsError` for anything else."""
        label, value = self.said(name)
        try:
            seconds = default if value is None else float(value)
        except (TypeError, ValueError):
            seconds = -1.0
        if not 0 <= seconds < 1e7:
            raise SettingsError(f"{label} {value!r}: must be a number of seconds, 0 or more.")
        return seconds
