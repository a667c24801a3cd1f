"""The folded configuration is the same whatever order the processes' records are read in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.delivery.fold import NUM_MANY, ConfigFold
from slime_logging.record.entries import ConfigEntry


def entry(values, *, scope="", rank=0, start=1, time_s=1.0, journal="j") -> ConfigEntry:
    return ConfigEntry(
        journal=journal, start=start, rank=rank, time_s=time_s, scope=scope, values=values
    )


def folded(*entries: ConfigEntry) -> dict:
    fold = ConfigFold()
    for item in entries:
        fold.add(item)
    return dict(fold.config(("actor",)).values)


def test_a_role_is_prefixed_and_the_actor_is_not():
    assert folded(entry({"lr": 1}), entry({"lr": 2}, scope="critic")) == {"lr": 1, "critic/lr": 2}


def test_what_a_role_says_of_itself_beats_what_the_primary_expected():
    expected, own = (
        entry({"lr": 1}, scope="critic", time_s=9.0),
        entry({"lr": 2}, scope="critic", rank=1),
    )
    assert folded(expected, own) == folded(own, expected)
    assert folded(own, expected)["critic/lr"] == 2


def test_what_is_said_later_beats_both():
    own, late = entry({"n": None}, rank=1, time_s=9.0), entry({"n": 7}, rank=2)
    assert folded(late, own)["n"] == 7


def test_a_value_changed_on_resume_stands_and_the_change_is_recorded():
    values = folded(
        entry({"lr": 1}, rank=2),
        entry({"lr": 3}, start=2),
        entry({"same": 0}),
        entry({"same": 0}, start=2),
    )
    assert values == {"lr": 3, "same": 0, "resume/2/lr": {"before": 1, "now": 3}}


def test_facts_of_processes_are_not_reported_as_changed_on_resume():
    values = folded(
        entry({"process/pid": 1}, scope="critic"),
        entry({"process/pid": 2}, scope="critic", start=2),
    )
    assert values == {"critic/process/pid": 2}


def facts_of(host: str, journal: str, *, scope="explorer", start=1, head="") -> ConfigEntry:
    values = {f"{head}process/host": host, f"{head}process/pid": 1}
    return entry(values, scope=scope, start=start, journal=journal, rank=1)


@pytest.mark.parametrize(
    ("scope", "head", "place"),
    [("explorer", "", "explorer/process/"), ("", "actor/", "actor/process/")],
)
def test_the_facts_of_several_processes_of_a_role_are_all_kept(scope, head, place):
    """Also of those whose hosts have one name and whose pids are equal."""
    hosts = ("h1", "h2", "h3", "h3")
    entries = [
        facts_of(host, f"explorer-00000{number}", scope=scope, head=head)
        for number, host in enumerate(hosts)
    ]
    values = folded(*entries)
    assert values == folded(*reversed(entries))
    kept = [value for key, value in values.items() if isinstance(value, dict)]
    assert kept == [{"host": host, "pid": 1} for host in hosts]
    assert all(key.startswith(place) for key in values)
    assert values[f"{place}host"] == "h3"


def test_the_only_process_of_a_role_stands_once_whatever_the_start_before_had():
    values = folded(facts_of("h1", "a"), facts_of("h2", "b"), facts_of("h9", "c", start=2))
    assert values == {"explorer/process/host": "h9", "explorer/process/pid": 1}


def test_a_further_process_is_a_change_though_its_facts_are_equal():
    fold = ConfigFold()
    assert fold.add(facts_of("h", "a"))
    assert fold.add(facts_of("h", "b"))
    assert not fold.add(facts_of("h", "b"))


def test_a_key_of_a_role_that_is_called_process_is_no_fact():
    values = folded(
        entry({"lr": 1}, scope="process"), entry({"lr": 1}, scope="process", journal="k")
    )
    assert values == {"process/lr": 1}


def test_the_roles_view_holds_each_roles_own_values():
    fold = ConfigFold()
    fold.add(entry({"lr": 1, "overrides/critic/lr": {"base": 1, "value": 2}}))
    fold.add(entry({"lr": 2}, scope="critic"))
    assert fold.config(("actor", "critic")).roles == {"actor": {"lr": 1}, "critic": {"lr": 2}}


def test_adding_tells_whether_a_tracker_would_see_a_change():
    fold = ConfigFold()
    assert fold.add(entry({"lr": 1}))
    assert not fold.add(entry({"lr": 1}, rank=1))
    assert fold.add(entry({"lr": 2}, rank=2))
    assert not fold.add(entry({"lr": 9}))


entries = st.lists(
    st.builds(
        entry,
        st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), min_size=1),
        scope=st.sampled_from(["", "critic"]),
        rank=st.integers(0, 2),
        start=st.integers(1, 3),
        time_s=st.floats(0, 5),
        journal=st.sampled_from(["j", "k"]),
    ),
    max_size=8,
    unique_by=lambda e: (e.scope, e.rank, e.start, e.time_s, e.journal),
)


@given(entries, st.randoms())
def test_order_never_matters(items, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    assert folded(*items) == folded(*shuffled)


MANY = {f"name{number}": number for number in range(NUM_MANY)}

many = st.lists(
    st.builds(
        entry,
        st.dictionaries(st.sampled_from(["name0", "name1", "last"]), st.sampled_from([0, 1, True])),
        rank=st.sampled_from([1, 1, 2]),
        start=st.sampled_from([1, 1, 2]),
        time_s=st.floats(0, 5),
        journal=st.sampled_from(["j", "k"]),
    ),
    max_size=8,
    unique_by=lambda e: (e.rank, e.start, e.time_s, e.journal),
)


@settings(max_examples=40, deadline=None)
@given(many, st.randoms())
def test_what_many_processes_say_alike_counts_as_what_each_says_by_itself(items, random):
    """The arguments of a role are compared as a whole; the values that stand are the same, whatever the order."""
    alike = [replace(item, values=MANY | dict(item.values)) for item in items]
    pieces = [
        replace(item, values=dict(half))
        for item in alike
        for shuffled in [random.sample(sorted(item.values.items()), len(item.values))]
        for half in (shuffled[:32], shuffled[32:])
    ]
    assert repr(sorted(folded(*alike).items())) == repr(sorted(folded(*pieces).items()))


def test_what_is_known_of_a_possible_role_counts_once_it_joins():
    """A critic that never ran leaves no key; one that joined has its overrides too."""
    known = entry({"lr": 2, "warmup": 3}, scope="critic", rank=-1)
    overrides = entry({"overrides/critic/lr": {"base": 1, "value": 2}}, rank=-1)
    joined = entry({"lr": 2}, scope="critic", rank=1)
    assert folded(entry({"lr": 1}), known, overrides) == {"lr": 1}
    assert folded(joined, overrides, entry({"lr": 1}), known) == {
        "lr": 1,
        "critic/lr": 2,
        "critic/warmup": 3,
        "overrides/critic/lr": {"base": 1, "value": 2},
    }


def test_a_role_that_runs_with_other_values_stands_with_its_own():
    """Its override says the base, what it has, and what was expected; run-time values are none."""
    expected = entry({"lr": 2, "n": 1, "num_rollout": None}, scope="critic")
    overrides = entry({"overrides/critic/lr": {"base": 1, "value": 2, "source": "file"}})
    own = entry({"lr": 9, "n": 1, "num_rollout": 5}, scope="critic", rank=1)
    values = folded(own, expected, overrides)
    assert values["critic/lr"] == 9
    assert values["overrides/critic/lr"] == {"base": 1, "value": 9, "source": "own", "asked": 2}
    assert [key for key in values if key.startswith("overrides/")] == ["overrides/critic/lr"]


def test_a_role_that_nobody_knew_is_compared_with_the_job_before_overrides():
    """A reward model's overrides are against the command line, not against the actor's."""
    job = entry({"lr": 2, "n": 1, "overrides/actor/lr": {"base": 1, "value": 2, "source": "file"}})
    values = folded(job, entry({"lr": 1, "n": 4}, scope="reward", rank=1))
    assert values["overrides/reward/n"] == {"base": 1, "value": 4, "source": "own", "asked": 1}
    assert "overrides/reward/lr" not in values
