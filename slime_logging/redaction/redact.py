"""No secret leaves the process: what is hidden, where, and how it is shown.

Policy: three independent rules, each enough on its own. By name (`secret_names`): the value under a
secret's name, at any depth of mappings and lists, and inside of texts (`secret_text`). By value
(`known_secrets`): the text of every secret this process knows, encoded too, wherever it turns up,
keys included. By form (`secret_forms`): the published shapes of tokens. A hidden value is `<hidden:
NAME>`, with neither length nor hash. Redaction is idempotent, changes nothing else, never raises,
and its time is linear in the text.

What is known is learned from arguments, environment, command line, stored logins and
configuration. Rows teach nothing: their texts are data, in which known secrets, tokens and random
values of assignments are hidden, and nothing else.
"""

from __future__ import annotations

import itertools
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from slime_logging.redaction.config_text import ConfigTexts
from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.row_text import RowTexts
from slime_logging.redaction.safe_text import escape_terminal, safe_exception_text
from slime_logging.redaction.search import encoded
from slime_logging.redaction.secret_files import stored_secrets
from slime_logging.redaction.secret_forms import FormRules
from slime_logging.redaction.secret_json import JsonWalk, texts_in
from slime_logging.redaction.secret_names import NameRules
from slime_logging.redaction.shown_names import Placeholders, ShownNames
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import arguments_to_json, to_json

__all__ = ["Redactor", "escape_terminal", "safe_error", "safe_exception_text"]

_Error = TypeVar("_Error", bound=Exception)


class Redactor:
    """Hides this process's secrets; made by `Redactor.of`, taught more by `learn` and `config`.

    Safe to use from several threads and from signal handlers: nothing waits, and what is learned is
    only ever added to.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        """A redactor that knows no secret by value yet; see `of` for the arguments."""
        self._judge = (rules := NameRules(hide=hide, show=show)).judge
        self._known = KnownSecrets()
        self._forms = FormRules(hide)
        self._placeholders = Placeholders(self._known, self._forms)
        self._shown = self._placeholders.shown
        self._row_texts = RowTexts(self._known, self._forms, self._judge, self._shown)
        self._names = ShownNames(self._row_texts)
        self._texts = ConfigTexts(self._known, self._forms, rules, self._shown)

    @classmethod
    def of(
        cls,
        args: Namespace | Mapping[str, Any] | None,
        environ: Mapping[str, str] = os.environ,
        *,
        argv: Sequence[str] = (),
        hide: Sequence[str] = (),
        show: Sequence[str] = (),
    ) -> Redactor:
        """A redactor that knows the secrets of these arguments, this environment, this command line
        and the trackers' files of stored logins.

        Args:
            args: the job's arguments, nested or not; read, never changed.
            environ: the environment; `HOME`, `NETRC` and the like in it say where logins are.
            argv: the command line.
            hide: more names to hide: exact ones, globs (`acme_*`), `re:` and a regular expression
                over the name, or `text:` and a regular expression (RE2) over any text.
            show: names that are never hidden for what they are called; exact ones only.

        Raises:
            SettingsError: a pattern in `hide` is no regular expression, or `show` holds a pattern.
        """
        redactor = cls(hide=hide, show=show)
        values = {} if args is None else arguments_to_json(args)
        redactor._texts.ordinary = frozenset(values)
        for name, text in stored_secrets(environ):
            redactor.learn(name, text)
        given = {str(name): to_json(value) for name, value in environ.items()}
        for learned in (values, given, {"argv": to_json(list(argv))}):
            redactor._texts.learn_from(learned)
        return redactor

    def __repr__(self) -> str:
        return f"Redactor(num_known={len(self._known)}, num_hidden={len(self.hidden)})"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of everything hidden so far, sorted."""
        return self._placeholders.hidden

    def learn(self, name: str, value: object) -> None:
        """From now on hide this value wherever it turns up, as `<hidden: name>`; values that are
        too short or common are not learned.
        """
        for text in texts_in(to_json(value)):
            self._texts.learn(name, text)

    def config(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The values with every secret hidden: by name at any depth, by value, by form; and learned
        from. The mapping given is not changed.
        """
        self._texts.learn_from(values)
        self._names.shown(list(values))
        return self._walk(self.text).mapping(values)

    def row(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The metrics of one row without secrets: known ones and tokens are hidden wherever they
        stand, under a secret's name and in an assignment what looks random, and nothing else.

        A row costs milliseconds a megabyte. In one that holds thousands of secrets, what is
        behind the first `MAX_REPLACED` is hidden whole; behind `MAX_LOOKED_AT` addresses and
        assignments further ones stay, and what begins as a key of OpenAI is hidden unseen.
        """
        # The texts are looked through as one, parted by a byte that no UTF-8 has.
        texts: list[bytes] = []

        def collect(text: str) -> str:
            texts.append(encoded(text))
            return text

        out = self._walk(collect, in_row=True).mapping(values)
        changed = self._row_texts.changed(texts)
        if not changed:
            return out
        numbers = itertools.count()
        again = self._walk(lambda text: changed.get(next(numbers)) or text, in_row=True)
        return again.mapping(values)

    def key(self, name: str) -> str:
        """A key or metric name without secrets in it. It is remembered: a secret that is learned
        later does not change it.
        """
        return self._names.shown([name])[0]

    def text(self, s: str) -> str:
        """A text with every secret hidden: by the names in it, by value, by form. What cannot be
        looked through is hidden whole.
        """
        return self._texts.text(s)

    def message(self, s: str) -> str:
        """One of our own messages, by value and by form: its own words, such as `--wandb-key or`,
        are not judged.
        """
        return self._texts.message(s)

    def overwritten(self, data: bytes) -> bytes:
        """A file that is no text, with known secrets and tokens overwritten: all else stays where
        it is, so that a sound still plays.
        """
        return self._row_texts.overwritten(data)

    def _walk(self, text: Callable[[str], str], *, in_row: bool = False) -> JsonWalk:
        return JsonWalk(self._judge, text, self.key, self._shown, self._known.is_known, in_row)


def safe_error(error: _Error, args: object, environ: Mapping[str, str] = os.environ) -> _Error:
    """One of our own errors about arguments, without the secrets of these arguments and this
    process in its message.
    """
    known = args if isinstance(args, (Namespace, Mapping)) else getattr(args, "__dict__", None)
    return type(error)(Redactor.of(known, environ, argv=sys.argv).message(str(error)))
