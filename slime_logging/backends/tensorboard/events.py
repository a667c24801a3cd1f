"""Event files as TensorBoard reads them: made of tensorboard's own record format and messages,
without TensorFlow.

Policy: what was appended is in the file, in the operating system's hands, when `append` returns.
Reading stops at the first record that is not whole, as TensorBoard's does.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slime_logging.values.json_value import Json


class EventFile:
    """A new file of events."""

    def __init__(self, path: Path, *, is_private: bool) -> None:
        """Make it, 0600 in a directory of 0700 with `is_private`, else as the process's umask
        says.
        """
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        path.parent.mkdir(mode=0o700 if is_private else 0o777, parents=True, exist_ok=True)
        fd = os.open(
            path,
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC,
            0o600 if is_private else 0o666,
        )
        self._records = RecordWriter(os.fdopen(fd, "wb"))
        # Without this version TensorBoard purges every point whose step is not lower than a later
        # one's.
        self._records.write(event_pb2.Event(file_version="brain.Event:2").SerializeToString())
        self._records.flush()

    def append(self, events: Iterable[bytes]) -> None:
        """Write the events; OSError leaves the file with an unknown part of them."""
        for record in events:
            self._records.write(record)
        self._records.flush()

    def close(self) -> None:
        """Close the file; harmless after an error."""
        try:
            self._records.close()
        except OSError:  # the disk refused what `append` has reported already
            return


def event(time_s: float, step: int, summaries: Sequence[Any]) -> bytes:
    """One event with all the values of a row."""
    from tensorboard.compat.proto import event_pb2, summary_pb2

    message = event_pb2.Event(
        wall_time=time_s, step=step, summary=summary_pb2.Summary(value=summaries)
    )
    return bytes(message.SerializeToString())


def scalar(tag: str, value: float) -> Any:
    """A number, in single precision: TensorBoard's default data server shows no double (0.7.2,
    checked).
    """
    from tensorboard.compat.proto import summary_pb2

    return summary_pb2.Summary.Value(tag=tag, simple_value=value)


def text(tag: str, value: str) -> Any:
    """A text, shown as Markdown."""
    from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
    from tensorboard.plugins.text import metadata

    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[value.encode()])
    return summary_pb2.Summary.Value(
        tag=tag, tensor=tensor, metadata=metadata.create_summary_metadata("", "")
    )


def session_start(name: str, hparams: Mapping[str, Json], start_s: float) -> Any:
    """The hyperparameters of a line in the hparams table, called `name`."""
    from tensorboard.plugins.hparams import summary_v2

    return summary_v2.hparams_pb(dict(hparams), trial_id=name, start_time_secs=start_s).value[0]


def session_end(has_succeeded: bool, end_s: float) -> Any:
    """How that line ended."""
    from tensorboard.compat.proto import summary_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    status = api_pb2.STATUS_SUCCESS if has_succeeded else api_pb2.STATUS_FAILURE
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=end_s)
    held = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
    return summary_pb2.Summary.Value(
        tag=metadata.SESSION_END_INFO_TAG, tensor=metadata.NULL_TENSOR, metadata=held
    )


def read(path: Path) -> Iterator[Any]:
    """The events of a file, up to the first that is not whole."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.compat.tensorflow_stub import errors
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

    records = PyRecordReader_New(str(path))
    while True:
        try:
            records.GetNext()
        except (errors.OutOfRangeError, errors.DataLossError):
            return
        yield event_pb2.Event.FromString(records.record())


def thin_out(path: Path, marks: Container[int], *, is_private: bool) -> None:
    """Leave those events out of a file whose time, step and tags have one of these hashes; a reader
    sees the old file or the new one, whole.
    """
    if not any(_is_among(each, marks) for each in read(path)):
        return
    partial = path.with_name(f".{uuid.uuid4().hex}")
    try:
        file = EventFile(partial, is_private=is_private)
        try:
            file.append(
                each.SerializeToString()
                for each in read(path)
                if each.HasField("summary") and not _is_among(each, marks)
            )
        finally:
            file.close()
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _is_among(event: Any, marks: Container[int]) -> bool:
    tags = tuple(value.tag for value in event.summary.value)
    return hash((event.wall_time, event.step, tags)) in marks


def held_value(summary: Any) -> float | str:
    """What `scalar` or `text` put into a value."""
    if summary.HasField("tensor"):
        return str(summary.tensor.string_val[0].decode())
    return float(summary.simple_value)


def hparams_of(summary: Any) -> dict[str, Json]:
    """What `session_start` put into a value; nothing for any other."""
    from tensorboard.plugins.hparams import metadata

    if summary.tag != metadata.SESSION_START_INFO_TAG:
        return {}
    start = metadata.parse_session_start_info_plugin_data(summary.metadata.plugin_data.content)
    return {key: getattr(held, held.WhichOneof("kind")) for key, held in start.hparams.items()}
