"""What is printed, and how streams are masked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hastegeo.cli import _output
from hastegeo.cli._redacted_stream import redacted_lines

SIGNED = b"GET https://x/y?sv=1&sig=canary%2Bcanary%3D&se=2 ok"


@given(st.lists(st.binary(max_size=40)).map(b"".join), st.integers(1, 7))
def test_a_stream_without_secrets_is_passed_on_byte_by_byte(content: bytes, size: int) -> None:
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    if b"sig" not in content.lower():
        assert b"".join(redacted_lines(chunks)) == content


@pytest.mark.parametrize("size", range(1, len(SIGNED) + 1))
def test_a_signature_is_masked_wherever_chunks_end(size: int) -> None:
    content = b"before\n" + SIGNED + b"\nafter"
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    assert b"".join(redacted_lines(chunks)) == b"before\nGET https://x/y?sv=1&sig=REDACTED&se=2 ok\nafter"


@pytest.mark.parametrize("offset", [65_400, 65_530, 73_700, 131_000])
def test_a_signature_in_a_line_without_an_end_is_masked(offset: int) -> None:
    content = b"\x00" * offset + SIGNED + b"\x00" * 70_000
    chunks = [content[at : at + 1000] for at in range(0, len(content), 1000)]
    pieces = list(redacted_lines(chunks))
    assert b"canary" not in b"".join(pieces)
    assert len(pieces) > 1, "such a line is not held back as a whole"


def test_a_line_is_passed_on_when_it_ends() -> None:
    stream = redacted_lines(iter([b"one\ntw", b"o\rthree", b""]))
    assert [next(stream), next(stream), next(stream)] == [b"one\n", b"two\r", b"three"]


def test_json_is_plain_and_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    _output.print_json(
        {"at": moment, "for": timedelta(minutes=2), "url": 'x?sig=canary"', "n": [1, None, True]}
    )
    out = capsys.readouterr().out
    assert '"2026-03-01T00:00:00+00:00"' in out
    assert "120.0" in out
    assert "canary" not in out


def test_a_table_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _output.print_table(("A", "LONG"), [("x" * 200, "y"), ("z", "w")])
    header, first, second = capsys.readouterr().out.splitlines()
    assert first == "x" * 200 + "  y"
    assert header.index("LONG") == first.index("y") == second.index("w")
    _output.print_table(("A",), [], empty="Nothing.")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Nothing.\n")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d"), (-5, "0s")],
)
def test_durations_are_short(seconds: int, text: str) -> None:
    assert _output.length(timedelta(seconds=seconds)) == text


def test_progress_elsewhere_than_on_a_terminal_is_a_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    with _output.steps("Starting", total=2) as progress:
        progress.say("one", done=1)
        progress.say("one", done=1)
        progress.say("two", done=2)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["Starting", "one", "two"]
    assert captured.out == ""
