"""A journal keeps every acknowledged line, and its reader never returns a torn or damaged one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import orjson
import pytest

from slime_logging.record.entries import MAX_LINE_BYTES, encode
from slime_logging.record.journal import Journal, JournalBroken, is_written, journal_name
from slime_logging.record.journal_reader import JournalReader


def row(value: int) -> object:
    return encode("row", {"value": value})


def read_all(path: Path) -> list[dict]:
    reader = JournalReader(path)
    records = []
    while batch := reader.read():
        records += [record for _, record in batch]
    reader.close()
    return records


def test_lines_come_back_in_order_with_their_numbers(tmp_path):
    journal = Journal(tmp_path, "j")
    for value in range(1000):
        assert journal.append(row(value)) == value
    journal.close()
    assert read_all(journal.path) == [{"kind": "row", "seq": v, "value": v} for v in range(1000)]


def test_each_line_is_json_that_other_tools_read(tmp_path):
    journal = Journal(tmp_path, "j")
    journal.append(encode("config", {"values": {"a": 1}, "text": 'quote " and \n newline'}))
    journal.close()
    (line,) = journal.path.read_bytes().splitlines()
    assert orjson.loads(line)["text"] == 'quote " and \n newline'


def test_an_acknowledged_line_survives_sigkill(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from slime_logging.record.journal import Journal; from slime_logging.record.entries import encode\n"
        "j = Journal(Path(sys.argv[1]), 'j'); n = 0\n"
        "while True:\n    j.append(encode('row', {'value': n})); n += 1; print(n, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    acknowledged = [int(process.stdout.readline()) for _ in range(500)][-1]
    process.send_signal(signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, process.stdout.read().split()[:-1] or [0])])
    process.wait()
    records = read_all(tmp_path / "j.jsonl")
    assert [r["value"] for r in records[:acknowledged]] == list(range(acknowledged))


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_torn_tail_is_never_returned_wherever_it_is_cut(tmp_path, cut):
    journal = Journal(tmp_path, "j")
    for value in range(3):
        journal.append(row(value))
    journal.close()
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-cut])
    num_complete = whole[:-cut].count(b"\n")
    reader = JournalReader(journal.path)
    assert [r["value"] for _, r in reader.read()] == list(range(num_complete))
    assert reader.num_bytes_left() == len(whole[:-cut].rsplit(b"\n", 1)[-1])
    reader.close()


def test_a_tail_that_is_completed_later_is_returned_then(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"kind":"row","seq":0}\n{"kind":"r')
    reader = JournalReader(path)
    assert len(reader.read()) == 1
    with path.open("ab") as file:
        file.write(b'ow","seq":1}\n')
    assert [record["seq"] for _, record in reader.read()] == [1]
    reader.close()


def test_a_damaged_line_is_counted_and_the_next_ones_are_read(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"seq":0}\n\x00\x00\x00\n[1]\n{"seq":1}\n')
    reader = JournalReader(path)
    assert [record["seq"] for _, record in reader.read()] == [0, 1]
    assert reader.num_damaged == 2
    reader.close()


def test_a_line_without_end_costs_bounded_memory_and_is_passed_over(tmp_path):
    path = tmp_path / "j.jsonl"
    with path.open("wb") as file:
        file.truncate(MAX_LINE_BYTES + 5_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"seq":7}\n')
    assert [record["seq"] for record in read_all_patiently(path)] == [7]


def read_all_patiently(path: Path) -> list[dict]:
    reader, records, before = JournalReader(path), [], -1
    while reader.offset != before:
        before = reader.offset
        records += [record for _, record in reader.read()]
    reader.close()
    return records


def test_rows_can_be_passed_over_without_parsing(tmp_path):
    journal = Journal(tmp_path, "j")
    journal.append(encode("config", {"values": {}}))
    journal.append(row(1))
    journal.close()
    reader = JournalReader(journal.path)
    assert [record["kind"] for _, record in reader.read(has_rows=False)] == ["config"]
    reader.close()


def test_a_journal_is_never_opened_twice_for_writing(tmp_path):
    Journal(tmp_path, "j").close()
    with pytest.raises(FileExistsError):
        Journal(tmp_path, "j")


def test_names_are_unique_within_a_process():
    assert len({journal_name("actor") for _ in range(1000)}) == 1000


def test_a_hostile_role_makes_no_path():
    assert "/" not in journal_name("../../etc/passwd\n\x1b")


def test_threads_share_a_journal_without_mixing_lines(tmp_path):
    journal = Journal(tmp_path, "j")

    def append(thread: int) -> None:
        for value in range(200):
            journal.append(encode("row", {"thread": thread, "value": value}))

    threads = [threading.Thread(target=append, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    records = read_all(journal.path)
    assert [r["seq"] for r in records] == list(range(1600))
    assert all(
        [r["value"] for r in records if r["thread"] == n] == list(range(200)) for n in range(8)
    )


def test_a_full_disk_breaks_the_journal_and_keeps_what_was_acknowledged(tmp_path):
    import resource

    journal = Journal(tmp_path, "j")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    acknowledged = 0
    try:
        with pytest.raises(JournalBroken):
            while True:
                journal.append(row(acknowledged))
                acknowledged += 1
        with pytest.raises(JournalBroken):
            journal.append(row(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    journal.close()
    assert [r["value"] for r in read_all(journal.path)] == list(range(acknowledged))


def test_an_exception_of_the_jobs_signal_handler_does_not_break_the_journal(tmp_path, monkeypatch):
    journal = Journal(tmp_path, "j")

    def interrupted(*_: object) -> int:
        raise TimeoutError("the job's own limit")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(TimeoutError, match="own limit"):
            journal.append(row(1))
    journal.append(row(2))
    journal.close()
    assert [record["value"] for record in read_all(journal.path)] == [2]


def test_a_record_beyond_the_limit_is_refused_and_the_journal_goes_on(tmp_path):
    journal = Journal(tmp_path, "j")
    with pytest.raises(ValueError, match="the most is"):
        journal.append(encode("row", {"text": "x" * MAX_LINE_BYTES}))
    assert journal.append(row(1)) == 1  # a hole in the numbers shows that one is missing
    journal.close()


def test_a_deleted_file_is_noticed_within_a_second(tmp_path):
    journal = Journal(tmp_path, "j")
    journal.append(encode("row", {}))
    journal.path.unlink()
    time.sleep(1.1)
    with pytest.raises(JournalBroken, match="deleted"):
        journal.append(encode("row", {}))
    journal.close()


def test_the_writer_of_a_journal_is_known_to_live_until_it_closes_or_dies(tmp_path):
    journal = Journal(tmp_path, "j")
    assert is_written(journal.path)
    journal.close()
    assert not is_written(journal.path)
    code = (
        "import sys; from pathlib import Path; from slime_logging.record.journal import Journal\n"
        "j = Journal(Path(sys.argv[1]), 'k'); print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline()
        assert is_written(tmp_path / "k.jsonl")
        writer.kill()
    assert not is_written(tmp_path / "k.jsonl")


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda p: p.symlink_to("/etc/passwd")], ids=["fifo", "link"]
)
def test_only_regular_files_are_read(tmp_path, make):
    make(tmp_path / "j.jsonl")
    with pytest.raises(OSError):
        JournalReader(tmp_path / "j.jsonl")


def test_files_are_for_the_owner_only(tmp_path):
    journal = Journal(tmp_path, "j")
    assert journal.path.stat().st_mode & 0o777 == 0o600
    journal.close()
