"""What a role trains with by the job's own parser: the difference that the entry's words make.

Policy: a role's arguments are the base plus the difference between what the job's command line
gives with and without the entry's values as flags, so derived values and refusals are those of the
version that runs. Where the command line of this process does not give the base again, nothing is
exact, and `CommandLine.doubt` says why. The base is compared again at each use; the parses are kept
for a namespace.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from argparse import Namespace
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from slime_logging.roles.asked import Asked
from slime_logging.roles.equality import alike, identical
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.problems import harmless, looks_secret, without_secrets
from slime_logging.roles.slimes import is_set_at_run_time
from slime_logging.roles.trial import Parsed, Refusal, Reparse, try_all
from slime_logging.roles.words import without, words_of

Parses: TypeAlias = MutableMapping[tuple[object, ...], Parsed]
"""What command lines gave, by the parser and the words."""

_plain: dict[tuple[object, ...], Parsed] = {}
"""What the last command line gave; whoever uses it compares it with the base first."""

MAX_MISTAKES = 10
"""Refusals of one entry that are looked for, one after another."""

MAX_SUSPECTS = 16
"""Keys that are left out one by one, to learn which of them is refused."""

MAX_WORDS = 600
"""Characters of a validator's words that are shown."""


SLIMES_PARSERS = ("slime.utils.arguments", "slime.backends.megatron_utils.arguments")
"""Where its parsers are; it loads the second, and Megatron-LM with it, when it parses."""


def parse_as_slime(words: list[str]) -> Any:
    """slime's own parser and validation on these words; only for a process of its own."""
    sys.argv = [*sys.argv[:1], *words]
    return sys.modules["slime.utils.arguments"].parse_args()


def slimes_parser() -> Reparse | None:
    """slime's parser, where slime is loaded in this process."""
    found = getattr(sys.modules.get("slime.utils.arguments"), "parse_args", None)
    return parse_as_slime if callable(found) else None


def slimes_arguments(words: Sequence[str]) -> Namespace:
    """The arguments that slime's own parser and validation make of a command line; loads them,
    and what the arguments are made of.

    Raises:
        ImportError: slime or Megatron-LM is not installed here.
        ValueError: The command line is refused; the message is the validator's.
        OSError: The parser gave no answer.
    """
    with contextlib.redirect_stdout(sys.stderr):  # Megatron-LM prints as it is loaded
        for name in SLIMES_PARSERS:
            importlib.import_module(name)
    found = try_all(parse_as_slime, [words])[0]
    if isinstance(found, Refusal):
        raise ValueError(_told(found))
    return found.namespace()


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What an entry comes to: arguments that change or go, keys that no command line can say, and
    what was refused, by the key to blame.
    """

    changed: dict[str, Any] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    unsayable: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class CommandLine:
    """The job's command line, at hand to be parsed again; `doubt` says why it is not."""

    def __init__(
        self, reparse: Reparse, words: Sequence[str], base: Mapping[str, Any], parses: Parses
    ) -> None:
        self.doubt = ""
        self.options: Mapping[str, Option] = {}
        self._reparse = reparse
        self._words = list(words)
        self._parses = parses
        key = (reparse, *self._words)
        try:
            plain = _plain.get(key) or try_all(reparse, [self._words], with_options=True)[0]
        except (OSError, LookupError, AttributeError, EOFError) as error:
            self.doubt = f"it cannot be parsed again ({error})"
            return
        if isinstance(plain, Refusal):
            self.doubt = f"it is refused when it is parsed again: {_told(plain)}"
            return
        _plain.clear()
        _plain[key] = self._plain = plain
        self.options = plain.options
        others = sorted(name for name in plain.packed if not self._gives_again(name, base))
        if others:
            more = f" and {len(others) - 5} more" if len(others) > 5 else ""
            self.doubt = f"it gives other values for {', '.join(others[:5])}{more}"

    def _gives_again(self, name: str, base: Mapping[str, Any]) -> bool:
        if is_set_at_run_time(name):
            return True
        if name not in base:
            return False
        try:
            return alike(self._plain.value(name), base[name])
        except LookupError:  # cannot be sent between processes
            return True

    def outcome(self, asked: Asked) -> Outcome:
        """What the values that an entry asks for come to.

        Raises:
            OSError: The parser gave no answer.
        """
        found = Outcome()
        words: dict[str, list[str]] = {}
        for key, value in asked.values.items():
            option = self.options.get(key)
            said = None if option is None else words_of(option, asked.places[key].node, value)
            if said is None:
                found.unsayable.append(key)
            else:
                words[key] = said
        while words:
            result = self._tried([self._with(words)])[0]
            if isinstance(result, Parsed):
                self._compare(result, found)
                break
            guilty = self._guilty(words, result)
            found.refused[guilty] = _told(result, guilty)
            del words[guilty]
            if len(found.refused) >= MAX_MISTAKES:
                break
        return found

    def _with(self, words: Mapping[str, list[str]]) -> list[str]:
        rest = without(self._words, [self.options[key] for key in words])
        end = rest.index("--") if "--" in rest else len(rest)
        return [*rest[:end], *(word for said in words.values() for word in said), *rest[end:]]

    def _tried(self, command_lines: Sequence[Sequence[str]]) -> list[Parsed | Refusal]:
        keys = [(self._reparse, *words) for words in command_lines]
        new = [n for n, key in enumerate(keys) if key not in self._parses]
        tried = try_all(self._reparse, [command_lines[n] for n in new])
        for n, result in zip(new, tried, strict=True):
            if isinstance(result, Parsed):
                self._parses[keys[n]] = result
        given = dict(zip(new, tried, strict=True))
        return [given[n] if n in given else self._parses[key] for n, key in enumerate(keys)]

    def _guilty(self, words: Mapping[str, list[str]], refusal: Refusal) -> str:
        """The key to blame: the one without which there is no refusal, or another one; those that
        the refusal names before the others.
        """
        said = f"{refusal.words}\n{refusal.code}"
        suspects = sorted(words, key=lambda key: not self._is_named(key, said))[:MAX_SUSPECTS]
        if len(suspects) == 1:
            return suspects[0]
        fewer = [{k: w for k, w in words.items() if k != key} for key in suspects]
        results = self._tried([self._with(rest) for rest in fewer])
        pairs = list(zip(suspects, results, strict=True))
        healed = (key for key, result in pairs if isinstance(result, Parsed))
        changed = (key for key, result in pairs if result != refusal)
        return next(healed, None) or next(changed, suspects[0])

    def _is_named(self, key: str, said: str) -> bool:
        names = "|".join(map(re.escape, (key, *self.options[key].flags)))
        return re.search(rf"(?<![\w-])({names})(?![\w-])", said) is not None

    def _compare(self, result: Parsed, found: Outcome) -> None:
        before, after = self._plain.packed, result.packed
        found.removed = {name for name in before if name not in after}
        for name, packed in after.items():
            if name in before and before[name] == packed:
                continue
            try:
                value = result.value(name)
                if name not in before or not identical(self._plain.value(name), value):
                    found.changed[name] = value
            except LookupError:  # cannot be sent between processes: stays what it is
                continue


def _told(refusal: Refusal, key: str = "") -> str:
    """The validator's own words; its line of code where it has none."""
    words = " ".join(refusal.words.split()) or f"it stops at `{refusal.code}`"
    if looks_secret(key):
        return "the words are hidden, because the value may be secret"
    return harmless(without_secrets(words[:MAX_WORDS]))
