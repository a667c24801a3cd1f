"""What is asked of a Ray cluster: its nodes, and detached actors that take nothing of the job's.

Policy: an actor is bound to one node, because it serves the files that are there. Ray makes it
again when its process dies; when its node dies it is gone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAMESPACE = "slime_logging"

PROBE_NODES = 16
PROBE_S = 30.0
ANSWER_S = 20.0
"""How long an actor may take to answer; one that is being made again takes some seconds."""
AGAIN_S = 0.2


def is_ray_up() -> bool:
    """Whether this process is part of a Ray cluster; imports nothing."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def this_node() -> str:
    """The id of the node that this process is on."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def living_nodes() -> list[dict[str, Any]]:
    """The nodes that are alive, the head first: a driver is most often there."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    return sorted(nodes, key=lambda node: "node:__internal_head__" not in node["Resources"])


def successors(
    hosts: Mapping[tuple[str, str], str], living: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    """For places on nodes that died, the nodes that their hosts have now: of the same host name,
    whatever their address, and without that directory among the places. Hosts may share a name.

    Args:
        hosts: (node, directory) of each place -> its host's name.
        living: node -> its host's name.
    """
    taken, found = set(hosts), {}
    for (node, directory), host in hosts.items():
        free = (n for n, name in living.items() if name == host and (n, directory) not in taken)
        if node not in living and (again := next(free, None)) is not None:
            found[node, directory] = again
            taken.add((again, directory))
    return found


def make_actor(cls: type, name: str, node: str, *arguments: str, at_once: int = 1) -> Any:
    """A detached actor of this name on a node; the one that is there already, where there is one.
    Does not wait for it.
    """
    import ray

    return (
        ray.remote(num_cpus=0)(cls)
        .options(
            name=name,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_concurrency=at_once,
            scheduling_strategy=_on(node),
        )
        .remote(*arguments)
    )


def find_actor(name: str) -> Any:
    """The actor of this name; None when there is none."""
    import ray

    try:
        return ray.get_actor(name, NAMESPACE)
    except ValueError:
        return None


def find_actors(beginning: str) -> list[Any]:
    """Our actors whose names begin so, those that are being made included."""
    from ray.util import list_named_actors

    known = (
        each["name"]
        for each in list_named_actors(all_namespaces=True)
        if each["namespace"] == NAMESPACE
    )
    found = (find_actor(name) for name in known if name.startswith(beginning))
    return [actor for actor in found if actor is not None]


def all_say_yes(actors: Sequence[Any], method: str, timeout_s: float) -> bool:
    """Ask a method of each actor, again and again, until it says yes; whether all did in time.
    Those that are dead are not waited for.
    """
    import ray

    asked = {getattr(actor, method).remote(): actor for actor in actors}
    are_alive = True
    deadline = time.monotonic() + timeout_s
    while asked and time.monotonic() < deadline:
        done, _ = ray.wait(list(asked), timeout=max(0.0, deadline - time.monotonic()))
        for answer in done:
            actor = asked.pop(answer)
            try:
                if not ray.get(answer):
                    time.sleep(AGAIN_S)
                    asked[getattr(actor, method).remote()] = actor
            except ray.exceptions.RayError:
                are_alive = False
    return are_alive and not asked


def ask(method: Any, *arguments: Any) -> Any:
    """What a method of an actor answers within `ANSWER_S`; raises Ray's own errors."""
    import ray

    return ray.get(method.remote(*arguments), timeout=ANSWER_S)


def me() -> Any:
    """In an actor: its own handle."""
    import ray

    return ray.get_runtime_context().current_actor


def end(actor: Any) -> None:
    """End an actor for good."""
    import ray

    ray.kill(actor, no_restart=True)


def node_where(holds: Callable[[str], bool], argument: str) -> str | None:
    """The first node on which `holds(argument)` is true, asked a few nodes at a time."""
    import ray

    nodes = [str(node["NodeID"]) for node in living_nodes()]
    probe = ray.remote(num_cpus=0, max_retries=0)(holds)
    for start in range(0, len(nodes), PROBE_NODES):
        asked = {
            probe.options(scheduling_strategy=_on(node)).remote(argument): node
            for node in nodes[start : start + PROBE_NODES]
        }
        waiting, deadline = list(asked), time.monotonic() + PROBE_S
        while waiting and time.monotonic() < deadline:
            done, waiting = ray.wait(waiting, timeout=1.0)
            for answer in done:
                if _is_true(answer):
                    return asked[answer]
    return None


def _is_true(answer: Any) -> bool:
    import ray

    try:
        return bool(ray.get(answer))
    except ray.exceptions.RayError:
        return False


def _on(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)
