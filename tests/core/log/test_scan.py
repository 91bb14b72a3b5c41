"""Counts as the recipes of the format give them, turns by id, bad lines by number."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from core.log import scan
from core.log.view import View

SAMPLES = Path(__file__).parents[2] / "samples"
TURN = "e061c676-0701-4e5c-b2c8-565cf9462c91"


def stats_of(content: bytes) -> scan.Stats:
    return scan.stats(lambda offset, count: content[offset : offset + count], len(content))


def test_the_sample_counts_as_the_format_says():
    found = stats_of((SAMPLES / "sample-session.jsonl").read_bytes())
    assert found.types == {"event": 2, "ishiki.images": 1, "message": 6}
    assert found.messages == {"assistant": 2, "ishiki.attachment": 1, "ishiki.message.created": 2, "tool": 1}
    assert found.turns == {"turn.start": 1, "turn.done": 1}
    assert (found.lines, found.first, found.last) == (9, 1793531049900, 1793531050101)
    assert (found.bad_lines, found.torn_tail) == (0, False)


STRANGE = b"""{"type":"x"}
{"type":null}
{"no":1}
{"type":7,"data":{}}
{"type":["a",{"b":1}],"data":{"type":"t"}}
{"type":"message","data":{"type":null,"role":"user"}}
{"type":"message","data":{"type":false,"role":"user"}}
{"type":"message","data":{"type":0,"role":"user"}}
{"type":"message","data":{}}
{"type":"message"}
{"type":"message","data":null}
{"type":"message","data":{"role":"a","role":"b"}}
{"type":"a\\u00e9","timestamp":"later"}
"""


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs the Debian package jq")
@pytest.mark.parametrize("name", ["sample-session", "seed-lines", "format-lines", "strange"])
def test_the_counts_are_those_of_jq(tmp_path: Path, name: str):
    path = tmp_path / "events.jsonl"
    path.write_bytes(STRANGE if name == "strange" else (SAMPLES / f"{name}.jsonl").read_bytes())

    def by_jq(recipe: str) -> Counter[str]:
        run = subprocess.run(["jq", "-r", recipe, path], capture_output=True, check=True, text=True)
        return Counter(run.stdout.split("\n")[:-1])

    found = stats_of(path.read_bytes())
    assert found.types == by_jq('.type | if type == "string" then . else tojson end')
    assert found.messages == by_jq('select(.type=="message") | .data.type // .data.role')


def test_bad_lines_are_named_by_number_and_a_torn_tail_is_not_one():
    found = stats_of(b'{"type":"a"}\n\n  \nbad\n[1]\n5\n{"type":"b"}\n{"type":NaN}\n{"type":"cu')
    assert found.bad == [4, 5, 6, 8]
    assert found.torn_tail
    assert found.types == {"a": 1, "b": 1}
    assert stats_of((SAMPLES / "broken.jsonl").read_bytes()).bad == [5]
    whole = stats_of(b'{"type":"a"}')
    assert (whole.lines, whole.torn_tail) == (1, False)


def test_a_file_of_nothing_but_bad_lines_is_counted_and_not_remembered():
    found = stats_of(b"x\n" * 5000)
    assert (found.bad_lines, len(found.bad)) == (5000, scan.MOST_NAMED)


def test_a_turn_is_grouped_by_its_id_and_not_by_position():
    content = (SAMPLES / "sample-session.jsonl").read_bytes()
    lines = content.splitlines()
    shuffled = b"\n".join([lines[0], lines[2], lines[8], lines[1], *lines[3:8]]) + b"\n"
    found = [*scan.of_turn(lambda offset, count: shuffled[offset : offset + count], len(shuffled), TURN)]
    kinds = [kind for line in found if (kind := scan.kind_of(line.raw)) is not None]
    named = [kind.message if kind.data.type or kind.data.role else kind.name for kind in kinds]
    assert [*zip([kind.timestamp % 1000 for kind in kinds], named, strict=True)] == [
        (903, "turn.start"), (957, "assistant"), (957, "tool"), (958, "ishiki.images"), (966, "assistant"),
        (968, "turn.done"),
    ]  # fmt: skip
    assert [*scan.of_turn(lambda offset, count: content[offset : offset + count], len(content), "another")] == []


def test_an_id_in_what_people_say_does_not_make_a_line_one_of_the_turn(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"type":"message","data":{"content":"%s"},"turnId":"other"}\n' % TURN.encode())
    with View(path) as view:
        assert [*scan.of_turn(view.read_at, view.size, TURN)] == []
