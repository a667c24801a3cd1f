"""Bringing what waits in a directory of this host to the run's own, by hand, over a Ray cluster
that is up.
"""

from __future__ import annotations

from functools import partial

from slime_logging.errors import RunConflictError, RunNotFoundError
from slime_logging.hosts.carry import Carrier
from slime_logging.hosts.merge import Merged, brought
from slime_logging.hosts.ray_nodes import ask
from slime_logging.hosts.relay import find_receiver
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.record.run import RunDirectory


def push(directory: RunDirectory, cluster: str) -> Merged:
    """Carry everything that is there now; what the run's own directory holds is not sent again.

    Args:
        directory: of a host that does not see the run's own one.
        cluster: the Ray cluster's address, or "auto" for the one of this host.

    Raises:
        RunConflictError: this is the run's own directory.
        RunNotFoundError: no cluster, or none of its nodes sees the run's own directory.
    """
    import ray

    file = directory.read()
    if file.outpost_of is None:
        raise RunConflictError(f"{directory.path} is the run's own directory: nothing to bring.")
    try:
        ray.init(address=cluster, log_to_driver=False, configure_logging=False)
        receiver = find_receiver(RunAddress.of_token(file.outpost_of))
    except (ConnectionError, LookupError, RuntimeError, ValueError) as error:
        raise RunNotFoundError(
            f"{error}. Copy {directory.path} to the run's host, and there: slime-logging merge COPY"
            " --into RUN"
        ) from error

    carrier = Carrier(directory.path, partial(ask, receiver.take))
    try:
        num_bytes = carrier.carry()
        return brought(directory, carrier, num_bytes)
    except ray.exceptions.RayError as error:
        raise RunNotFoundError(f"the receiver is gone: {error}; try again.") from error
    finally:
        ray.shutdown()
