"""`$filter` and `$select`: what they choose, and that whatever else is sent is refused and nothing worse."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.errors import BatchError
from batch_emulator.wire.odata import compile_filter, parse_select

TASK: dict[str, Any] = {
    "id": "Train-7",
    "state": "completed",
    "url": "https://batch.test/jobs/j/tasks/Train-7",
    "creationTime": "2026-01-02T12:00:00.123456Z",
    "requiredSlots": 2,
    "isDedicated": False,
    "displayName": "it's",
    "executionInfo": {"exitCode": 3, "result": "failure", "endTime": "2026-01-02T13:00:00Z"},
    "tags": ["a"],
}


@pytest.mark.parametrize(
    "text",
    [
        "id eq 'train-7'",  # ids compare without regard to case
        "ID EQ 'x' or state eq 'completed'",  # operators are read in any case
        "state ne 'active'",
        "requiredSlots ge 2 and requiredSlots lt 2.5",
        "requiredSlots gt -1",
        "isDedicated eq false",
        "displayName eq 'it''s'",
        "startswith(id,'train-')",
        "startswith( id , 'TRAIN' )",
        "executionInfo/exitCode eq 3",
        "creationTime gt 2026-01-02T12:00:00Z",
        "creationTime lt DateTime'2026-01-02T12:00:01Z'",
        "creationTime gt 2026-01-02T13:00:00+02:00",
        "creationTime gt 2026-01-02",
        "executionInfo/endTime eq 2026-01-02T13:00:00.0000000Z",
        "endTime eq null",
        "executionInfo/failureInfo/code eq null",
        "id ne null",
        "not (state eq 'active')",
        "not not state eq 'completed'",
        "not state eq 'active' and not state eq 'running'",
        " state eq 'completed' ",
        "(((state eq 'completed')))",
    ],
)
def test_a_filter_that_holds(text: str) -> None:
    assert compile_filter(text)(TASK)


@pytest.mark.parametrize(
    "text",
    [
        "id eq 'train'",
        "startswith(id,'rain')",
        "startswith(missing,'x')",
        "missing eq 'x'",
        "missing lt 5",
        "id lt null",
        "requiredSlots gt 2",
        "requiredSlots gt 'a'",  # different kinds are in no order
        "isDedicated eq null",
        "creationTime ge 2026-01-03",
        "id gt 2026-01-03",  # not a date, so in no order with one
        "executionInfo/exitCode/deeper eq 3",
        "tags eq 'a'",
        "not (state eq 'completed')",
    ],
)
def test_a_filter_that_does_not_hold(text: str) -> None:
    assert not compile_filter(text)(TASK)


TRUE, FALSE = "state eq 'completed'", "state eq 'active'"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (f"{TRUE} or {FALSE} and {FALSE}", True),
        (f"({TRUE} or {FALSE}) and {FALSE}", False),
        (f"{FALSE} and {FALSE} or {TRUE}", True),
        (f"{FALSE} and ({FALSE} or {TRUE})", False),
        (f"not {TRUE} or {TRUE}", True),
        (f"not ({TRUE} or {TRUE})", False),
        (f"not {FALSE} and {FALSE}", False),
    ],
)
def test_not_binds_tighter_than_and_and_that_tighter_than_or(text: str, holds: bool) -> None:
    assert compile_filter(text)(TASK) is holds


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "id", "id eq", "eq 'x'", "id eq x", "id = 'x'", "id eq 'x", "id eq 'x' and"),
        *("id eq 'x' 'y'", "(id eq 'x'", "id eq 'x')", "not", "()", "id in ('x')", "id eq ü"),
        *(
            "startswith(id)",
            "startswith('x',id)",
            "startswith(id,5)",
            "startswith(id,'x'",
            "endswith(id,'x')",
        ),
        *("creationTime gt 2026-99-99", "creationTime gt DateTime'yesterday'", "id eq '\N{SNOWMAN}' x"),
        "not " * 100 + "id eq 'x'",
        "(" * 100 + "id eq 'x'" + ")" * 100,
        "id eq 'x' or " * 1000 + "id eq 'x'",
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(BatchError) as raised:
        compile_filter(text)
    assert (raised.value.status, raised.value.code) == (400, "InvalidQueryParameterValue")
    assert ("QueryParameterName", "$filter") in raised.value.values


def test_a_long_filter_is_answered_and_a_longer_one_refused() -> None:
    part = "id eq 'x' or "
    assert compile_filter(part * 500 + TRUE)(TASK)


words = st.sampled_from(
    [
        *("id", "state", "executionInfo/exitCode", "creationTime", "eq", "ne", "lt", "and", "or", "not"),
        *(
            "(",
            ")",
            ",",
            "'x'",
            "'it''s'",
            "5",
            "-1.5",
            "9" * 400,
            "null",
            "true",
            "startswith",
            "2026-01-02",
        ),
        *("DateTime'2026-01-02T12:00:00Z'", "9999-12-31T23:59:59-23:59", "'", "/", "é", "\0"),
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(TASK["creationTime"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
items = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("id", "state", "executionInfo", "creationTime"), values)
)


@given(st.one_of(st.text(), st.lists(words, max_size=12).map(" ".join)), items)
def test_any_text_is_a_filter_or_refused(text: str, item: dict[str, Any]) -> None:
    with contextlib.suppress(BatchError):
        assert compile_filter(text)(item) in {True, False}


def test_select_keeps_what_is_named() -> None:
    select = parse_select("id, executionInfo/exitCode,missing/deeper")
    assert select(TASK) == {"id": "Train-7", "executionInfo": {"exitCode": 3}}


@pytest.mark.parametrize(
    "text", ["executionInfo,executionInfo/exitCode", "executionInfo/exitCode,executionInfo"]
)
def test_select_of_a_whole_is_not_narrowed_by_a_part(text: str) -> None:
    assert parse_select(text)(TASK) == {"executionInfo": TASK["executionInfo"]}


@pytest.mark.parametrize("text", ["", ",", "id,", "id;state", "id/", "/id", "id state", "*"])
def test_what_is_no_select_is_refused(text: str) -> None:
    with pytest.raises(BatchError, match="InvalidQueryParameterValue"):
        parse_select(text)


@given(st.text(), items)
def test_any_text_is_a_select_or_refused(text: str, item: dict[str, Any]) -> None:
    with contextlib.suppress(BatchError):
        assert parse_select(text)(item).keys() <= item.keys()
