"""How the words of `haste submit` become inputs, outputs, variables and limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from hastegeo.domain import (
    BlobInput,
    BlobOutput,
    ContainerAddress,
    GrantKind,
    GrantVariable,
    OutputCondition,
)
from hastegeo.errors import InputError

_DURATION: Final = re.compile(r"(?P<number>\d+)(?P<unit>[smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SCHEMES: Final = ("http://", "https://")


def parse_input(text: str, own: str) -> BlobInput:
    """Read `SOURCE[=PATH]`.

    The source is a blob of the environment's own container, or a prefix if it ends in a slash, or a whole
    URL. `own` is that container's URL, or empty. What stands after the last `=` is the path in the working
    directory; a source that holds a `=` is therefore written with one more at its end.
    """
    source, separator, path = text.rpartition("=")
    if not separator:
        source, path = text, ""
    container, name = _locate(source, own, text)
    target = path or None
    if not name:
        return BlobInput(container_url=container, path=target)
    if name.endswith("/"):
        return BlobInput(container_url=container, prefix=name, path=target)
    return BlobInput(container_url=container, blob=name, path=target)


def parse_output(text: str, own: str, condition: OutputCondition) -> BlobOutput:
    """Read `PATTERN=DESTINATION`: files of the working directory, and the blob or prefix that they go to."""
    pattern, separator, destination = text.partition("=")
    if not separator or not pattern or not destination:
        raise InputError(
            f"{_shown(text)!r} is not an output.",
            hint="Write PATTERN=DESTINATION, such as 'out/**/*.tif=results/scene-1'.",
        )
    container, name = _locate(destination, own, text)
    return BlobOutput(
        pattern=pattern, container_url=container, prefix=name.rstrip("/") or None, condition=condition
    )


def parse_grant(text: str, own: str) -> GrantVariable:
    """Read `NAME=KIND[:PLACE]`: a variable with a grant of that kind, on a prefix or the whole container."""
    name, separator, rest = text.partition("=")
    kind, _, place = rest.partition(":")
    if not separator or kind not in set(GrantKind):
        raise InputError(
            f"{_shown(text)!r} is not a grant.",
            hint="Write NAME=KIND or NAME=KIND:PREFIX, with a KIND of " + ", ".join(GrantKind) + ".",
        )
    container, prefix = _locate(place, own, text)
    return GrantVariable(
        name=name, kind=GrantKind(kind), container_url=container, prefix=prefix.rstrip("/") or None
    )


def parse_environment(texts: Sequence[str]) -> dict[str, str]:
    """Read `NAME=VALUE` entries. The error for one that is none does not repeat it: it may be a secret."""
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InputError("An --env is not written as NAME=VALUE.", hint="Write --env NAME=VALUE.")
        if name in values:
            raise InputError(f"The variable {name} is given twice.", hint="Give each variable once.")
        values[name] = value
    return values


def parse_duration(text: str) -> timedelta:
    """Read a number with a unit, such as `90s`, `30m`, `4h` or `2d`."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(f"{text!r} is not a duration.", hint="Write a number and a unit, such as 30m or 4h.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})


def split_names(text: str) -> tuple[str, ...]:
    """Read comma-separated names, in order and without repetitions."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _locate(place: str, own: str, text: str) -> tuple[str, str]:
    """Split a place into its container's URL and what lies below; one that is no URL is in `own`."""
    if not place.startswith(_SCHEMES):
        if not own:
            raise InputError(
                f"{_shown(text)!r} names no container, and this environment has none of its own.",
                hint="Write the whole URL, or set AZURE_BATCH_OUTPUT_CONTAINER_URL.",
            )
        return own, place
    if "?" in place or "#" in place:
        raise InputError(
            f"{_shown(place)!r} holds a query.",
            hint="Write the plain URL: the task's grants are made for it when it is submitted.",
        )
    scheme, _, rest = place.partition("://")
    parts = rest.split("/")
    # A container is the first segment below the host, or the second where the account's name is the first.
    for length in (2, 3):
        url = f"{scheme}://{'/'.join(parts[:length])}"
        try:
            ContainerAddress.parse(url)
        except InputError:
            continue
        return url, "/".join(parts[length:])
    # Neither is one, so this says why.
    return ContainerAddress.parse(place).url, ""


def _shown(text: str) -> str:
    return re.sub(r"[?#].*", "?...", text, flags=re.DOTALL)
