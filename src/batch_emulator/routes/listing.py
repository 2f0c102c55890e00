"""Lists: filter, select, and pages whose cost does not grow with how far one has read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from batch_emulator.errors import BatchError
from batch_emulator.routes.registry import Answer, Call
from batch_emulator.state import Json
from batch_emulator.wire.odata import compile_filter, parse_select

_LARGEST_PAGE = 1000
_Item = TypeVar("_Item")


def page_size(call: Call) -> int:
    """Return how many items the client wants at most in one answer."""
    text = call.query.get("maxresults")
    if text is None:
        return _LARGEST_PAGE
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _LARGEST_PAGE:
        raise BatchError(
            "OutOfRangeInput", values=(("QueryParameterName", "maxresults"), ("QueryParameterValue", text))
        )
    return int(text)


def start_after(call: Call) -> int:
    """Return the sequence number after which the asked page begins; 0 for the first page."""
    text = call.query.get("$skiptoken", "0")
    if not text.isascii() or not text.isdigit():
        raise BatchError("InvalidQueryParameterValue", values=(("QueryParameterName", "$skiptoken"),))
    return int(text)


class Sequenced(Protocol):
    """Something with a number that rises in the order of creation."""

    @property
    def sequence(self) -> int:
        """The number."""
        ...


_SequencedItem = TypeVar("_SequencedItem", bound=Sequenced)


def sequenced(items: Iterable[_SequencedItem], after: int) -> Iterator[tuple[int, _SequencedItem]]:
    """Yield the items after a sequence number, so that what is deleted between two pages hides nothing."""
    return ((item.sequence, item) for item in items if item.sequence > after)


def numbered(items: Iterable[_Item], after: int) -> Iterator[tuple[int, _Item]]:
    """Number items from 1, and yield those after a number: for short lists without numbers of their own."""
    return ((number, item) for number, item in enumerate(items, start=1) if number > after)


def list_answer(
    call: Call, kind: str, items: Iterable[tuple[int, _Item]], render: Callable[[_Item], Json]
) -> Answer:
    """Answer one page of `(sequence number, item)` pairs, which start after `start_after(call)`."""
    size = page_size(call)
    matches = compile_filter(call.query["$filter"]) if call.query.get("$filter") else None
    select = parse_select(call.query["$select"]) if call.query.get("$select") else None
    found: list[tuple[int, Json]] = []
    for number, item in items:
        shown = render(item)
        if matches is not None and not matches(shown):
            continue
        found.append((number, shown))
        # One more than the page tells whether there is a next one.
        if len(found) > size:
            break
    page = [shown for _, shown in itertools.islice(found, size)]
    body: dict[str, Any] = {
        "odata.metadata": f"{call.world.url}/$metadata#{kind}",
        "value": [select(shown) for shown in page] if select else page,
    }
    if len(found) > size:
        body["odata.nextLink"] = _next_link(call, found[size - 1][0])
    return Answer(body=body)


def one_answer(call: Call, kind: str, shown: Json) -> Json:
    """Return one resource as a body, with `$select` applied."""
    select = parse_select(call.query["$select"]) if call.query.get("$select") else None
    chosen = select(shown) if select else shown
    return {"odata.metadata": f"{call.world.url}/$metadata#{kind}/@Element", **chosen}


def _next_link(call: Call, last: int) -> str:
    # The host is the one that the client used, so that a name or a tunnel goes on working.
    query = {name: value for name, value in call.query.items() if name != "$skiptoken"}
    base = urlsplit(call.url)
    return f"{base.scheme}://{base.netloc}{base.path}?{urlencode({**query, '$skiptoken': last})}"
