"""Learns the secrets of arguments, environment, command line and configuration: whole values, and
the secrets inside of them.
"""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Mapping

import orjson

from slime_logging.redaction.config_text import ConfigTexts
from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.placeholder import placeholder
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.secret_forms import LOGIN, login_in
from slime_logging.redaction.secret_json import JsonWalk
from slime_logging.redaction.secret_names import Judge, leaf
from slime_logging.values.json_value import Json

MAX_PIECES = 200
"""Of a secret that are looked at: the parts of a cookie, of a command, of an address."""
_PIECE = re.compile(r"[^\s;,=&|<>\"'/:@]{16,}")


class Learner:
    """Fills the known secrets.

    Attributes:
        ordinary: texts that are no secrets here, such as the names of the options.
    """

    def __init__(self, known: KnownSecrets, judge: Judge, texts: ConfigTexts) -> None:
        self.ordinary: frozenset[str] = frozenset()
        self._known = known
        self._judge = judge
        self._texts = texts

    def learn_from(self, values: Mapping[str, Json]) -> None:
        """Learn every secret in the values, and the secrets inside of each."""
        text = functools.partial(self._texts.found, hide=self._hide)
        JsonWalk(self._judge, text, str, self._hide, self._known.is_known).mapping(values)

    def learn(self, name: str, text: str) -> bool:
        """Learn a text, its parts that look random, and of `user:password`, quoted and in base64
        too, the password; returns whether something is new.
        """
        last = leaf(name)
        ways = {
            *(piece for piece in _PIECE.findall(text)[:MAX_PIECES] if looks_random(piece)),
            text.strip("\"'"),
            text.rstrip("="),
            urllib.parse.unquote(text, errors="replace"),
            login_in(text),
        }
        ways |= {way.partition(":")[2] for way in ways if LOGIN.match(way)}
        return sum(self._known.learn(last, way, self.ordinary) for way in (text, *ways)) > 0

    def _hide(self, name: str, text: str) -> str:
        """Learn a value together with the secrets inside of it; nobody sees the placeholder."""
        if "<hidden: " not in text and self.learn(name, text):
            inside = functools.partial(self._texts.found, hide=self._hide_inside)
            try:
                values = orjson.loads(text)
            except orjson.JSONDecodeError:
                values = text
            known = self._known.is_known
            JsonWalk(self._judge, inside, str, self._hide_inside, known).any(values)
        return placeholder(name)

    def _hide_inside(self, name: str, text: str) -> str:
        self.learn(name, text)
        return placeholder(name)
