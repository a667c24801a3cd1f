"""Which node a host has after its own died."""

from __future__ import annotations

from slime_logging.hosts.ray_nodes import successors


def test_a_host_that_is_back_is_known_by_its_name() -> None:
    """For each directory; one that is not back, and one that never died, have no new node."""
    hosts = {("a1", "/x"): "a", ("a1", "/y"): "a", ("b1", "/x"): "b", ("c1", "/x"): "c"}
    living = {"a2": "a", "c1": "c", "d1": "d"}
    assert successors(hosts, living) == {("a1", "/x"): "a2", ("a1", "/y"): "a2"}


def test_hosts_that_share_a_name_do_not_take_each_others_place() -> None:
    """One of two dies: the other one is not taken for it. Both die and come back: each gets one node."""
    hosts = {("one", "/x"): "node", ("two", "/x"): "node"}
    assert successors(hosts, {"two": "node"}) == {}
    assert successors(hosts, {"two": "node", "three": "node"}) == {("one", "/x"): "three"}
    again = successors(hosts, {"three": "node", "four": "node"})
    assert sorted(again) == sorted(hosts)
    assert sorted(again.values()) == ["four", "three"]
