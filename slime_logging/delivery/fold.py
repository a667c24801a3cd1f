"""The run's configuration out of the records of all its processes, the same whatever order they are
read in.

Policy: for each key the value with the highest rank stands: a later start of the run beats an
earlier one, within a start what a role says of itself beats what the primary expected of it, what
was said later (`log_config`) beats both, and among equals the later time does. A value that a later
start changed is kept beside it under `resume/<start>/<key>`.

The facts of a process stand under `<role>/process/<fact>`. Where several processes of one start
have one role, those of the last one stand there, and all facts of each under
`<role>/process/<its label>` too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from slime_logging.layout.joined import own_overrides
from slime_logging.layout.scope import UNPREFIXED_ROLES, flatten, process_label
from slime_logging.record.entries import ConfigEntry
from slime_logging.record.recorder import RANK_EXPECTED, RANK_OWN, RANK_POSSIBLE
from slime_logging.values.json_value import Json
from slime_logging.values.run import RunConfig

_Rank = tuple[int, int, float, str]

NUM_MANY = 64
"""Keys in a record that is compared as a whole: the arguments that all processes of a role say."""


@dataclass(slots=True)
class _Said:
    """What one record said; its rank is that of the latest which said exactly the same."""

    rank: _Rank
    written: bytes
    num_standing: int = 0


class ConfigFold:
    """The configuration so far. Adding the same entries in any order gives the same result."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], dict[int, tuple[_Said, Json]]] = {}
        self._last: dict[tuple[str, int, int], _Said] = {}
        self._processes: dict[str, dict[tuple[int, str], dict[str, Json]]] = {}
        self._expected: dict[str, dict[str, tuple[_Rank, Json]]] = {}

    def add(self, entry: ConfigEntry) -> bool:
        """Take one record in; returns whether anything changed that a tracker shows."""
        said = _Said((entry.start, entry.rank, entry.time_s, entry.journal), _written(entry))
        place, rank = (entry.scope, entry.start, entry.rank), said.rank
        last = self._last.get(place)
        if last and last.written == said.written and last.num_standing == len(entry.values):
            last.rank = max(last.rank, rank)
            return False
        has_changed = self._is_of_a_further_process(entry)
        for key, value in entry.values.items():
            by_start = self._said.setdefault((entry.scope, key), {})
            before = by_start.get(entry.start)
            if before is None or rank > before[0].rank:
                by_start[entry.start] = (said, value)
                said.num_standing += 1
                if before is not None:
                    before[0].num_standing -= 1
                has_changed |= before is None or before[1] != value
            if entry.rank <= RANK_EXPECTED:
                expected = self._expected.setdefault(entry.scope, {})
                if key not in expected or rank > expected[key][0]:
                    expected[key] = (rank, value)
        if said.written and not any("process/" in key for key in entry.values):
            self._last[place] = said
        return has_changed

    def config(self, roles: Sequence[str]) -> RunConfig:
        """The configuration as it stands, with the roles in this order and any further ones behind
        them.
        """
        scopes: dict[str, dict[str, Json]] = {}
        own: dict[str, dict[str, Json]] = {}
        changes: dict[str, Json] = {}
        joined = self._joined()
        for (scope, key), by_start in self._said.items():
            starts = sorted(by_start)
            said, value = by_start[starts[-1]]
            rank = said.rank
            if rank[1] == RANK_POSSIBLE and _role_of(scope, key) not in joined:
                continue
            scopes.setdefault(scope, {})[key] = value
            if rank[1] == RANK_OWN:
                own.setdefault(scope, {})[key] = value
            full_key = f"{scope}/{key}" if scope else key
            for earlier, later in pairwise(starts):
                was, now = by_start[earlier][1], by_start[later][1]
                if was != now and not _is_of_a_process(full_key):
                    changes[f"resume/{later}/{full_key}"] = {"before": was, "now": now}
        recorded = scopes.setdefault("", {})
        for scope, values in own.items():
            recorded |= own_overrides(
                scope or "actor", values, self._expected_of(scope, recorded), recorded
            )
        recorded.update({**changes, **self._processes_told_apart()})
        return flatten(
            scopes, tuple(dict.fromkeys((*roles, *(scope for scope in scopes if scope))))
        )

    def is_known(self, role: str) -> bool:
        """Whether the primary said what it knows of a role."""
        return role in self._expected

    def _is_of_a_further_process(self, entry: ConfigEntry) -> bool:
        """Note the facts of a process; whether it is not the first one of its role."""
        is_further = False
        heads = ("",) if entry.scope else tuple(f"{role}/" for role in UNPREFIXED_ROLES)
        for head in (f"{head}process/" for head in heads):
            facts = {k[len(head) :]: v for k, v in entry.values.items() if k.startswith(head)}
            if facts:
                place = f"{entry.scope}/{head}" if entry.scope else head
                of_role = self._processes.setdefault(place, {})
                is_further |= bool(of_role) and (entry.start, entry.journal) not in of_role
                of_role.setdefault((entry.start, entry.journal), {}).update(facts)
        return is_further

    def _processes_told_apart(self) -> dict[str, Json]:
        """The facts of each process of the last start whose role has several."""
        apart: dict[str, Json] = {}
        for place, of_role in self._processes.items():
            last = max(start for start, _ in of_role)
            ours = {journal: facts for (start, journal), facts in of_role.items() if start == last}
            if len(ours) > 1:
                for journal, facts in sorted(ours.items()):
                    apart[place + process_label(facts, journal)] = facts
        return apart

    def _joined(self) -> set[str]:
        """The roles that say something of themselves, or are expected to."""
        return {
            scope
            for (scope, _), by_start in self._said.items()
            if any(said.rank[1] > RANK_POSSIBLE for said, _ in by_start.values())
        }

    def _expected_of(self, scope: str, recorded: Mapping[str, Json]) -> dict[str, Json]:
        """What the primary said of a role; of one that it does not know, the job's arguments before
        any override.
        """
        expected = {key: value for key, (_, value) in self._expected.get(scope, {}).items()}
        if expected:
            return expected
        job = {key: value for key, (_, value) in self._expected.get("", {}).items()}
        actors = {key: recorded.get(f"overrides/actor/{key}") for key in job}
        bases = {key: it["base"] for key, it in actors.items() if isinstance(it, dict)}
        return {**job, **bases}


def _written(entry: ConfigEntry) -> bytes:
    """The values as text, to be compared exactly; empty where they are not to be."""
    if entry.rank <= RANK_EXPECTED or len(entry.values) < NUM_MANY:
        return b""
    try:
        return orjson.dumps(entry.values)
    except TypeError:
        return b""


def _role_of(scope: str, key: str) -> str:
    return scope or key.removeprefix("overrides/").partition("/")[0]


def _is_of_a_process(key: str) -> bool:
    return key.startswith("process/") or "/process/" in key or key == "redacted_keys"
