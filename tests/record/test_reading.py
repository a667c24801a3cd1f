"""A journal is read from its start; what is damaged is passed over, and the records behind it are read all the same."""

from __future__ import annotations

from slime_logging.record.reading import count_rows, read_opening, read_records, read_rows

OPEN = '{"kind":"open","schema":1,"seq":0,"run_id":"a","journal":"j","host":"h","pid":1,"start":1,"time_s":0.0}\n'
ROW = '{"kind":"row","seq":%d,"time_s":1.0,"step_key":"train/step","step":%d,"metrics":{"x":1}}\n'
MALFORMED = '{"kind":"row","seq":2,"time_s":1.0,"step":null,"metrics":3}\n'


def test_a_row_that_is_none_does_not_hide_the_rows_behind_it(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text(OPEN + ROW % (1, 1) + MALFORMED + "not json\n" + ROW % (3, 3))
    assert [row.step for row in read_rows(path)] == [1, 3]
    assert count_rows(path) == 3


def test_rows_end_at_the_offset_asked_for(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text(OPEN + ROW % (1, 1) + ROW % (2, 2))
    assert [row.step for row in read_rows(path, len(OPEN + ROW % (1, 1)))] == [1]


def test_a_file_that_is_no_journal_gives_nothing(tmp_path):
    path = tmp_path / "j.jsonl"
    for text in (
        "",
        "hello\n",
        ROW % (0, 0),
        OPEN.replace('"schema":1', '"schema":9') + ROW % (1, 1),
    ):
        path.write_text(text)
        assert (list(read_records(path)), list(read_rows(path)), read_opening(path)) == (
            [],
            [],
            None,
        )
