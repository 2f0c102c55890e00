"""How the text of an environment variable becomes a value. Every error says what to write instead."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from hastegeo.domain import ContainerAddress, check_tenant_name
from hastegeo.errors import InputError

_PLACEHOLDER: Final = re.compile(r"<[^<>]+>")
_BATCH_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})
_SIZE: Final = re.compile(r"[1-9][0-9]*[bkmg]?")
_SHORT_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CAPABILITY: Final = re.compile(r"[A-Z][A-Z_]*")


def placeholder_in(text: str) -> str:
    """Return the first `<placeholder>` that a value still holds, or an empty string."""
    match = _PLACEHOLDER.search(text)
    return match.group() if match else ""


def _boolean(value: object) -> object:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("write true or false (1, 0, yes and no work too)")


def _words(value: object) -> object:
    """Split at commas; trimmed, empties dropped, duplicates removed, order kept."""
    if not isinstance(value, str):
        return value
    trimmed = (part.strip() for part in value.split(","))
    return tuple(dict.fromkeys(part for part in trimmed if part))


def _batch_id(value: object) -> object:
    if isinstance(value, str) and value and not _BATCH_ID.fullmatch(value):
        raise ValueError(f"{value!r} is not an id; write 1 to 64 letters, digits, hyphens or underscores")
    return value


def _batch_ids(value: object) -> object:
    words = _words(value)
    if isinstance(words, tuple):
        for word in words:
            _batch_id(word)
    return words


def _container_url(value: object) -> object:
    if not isinstance(value, str) or not value:
        return value
    try:
        return ContainerAddress.parse(value).url
    except InputError as error:
        raise ValueError(str(error)) from None


def _container_urls(value: object) -> object:
    words = _words(value)
    if not isinstance(words, tuple):
        return words
    return tuple(dict.fromkeys(str(_container_url(word)) for word in words))


def _service_url(value: object) -> object:
    if not isinstance(value, str) or not value:
        return value
    text = value.strip().rstrip("/")
    parts = urlsplit(text)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.path
        or parts.query
        or "@" in parts.netloc
    ):
        raise ValueError("write the account's endpoint, such as https://ACCOUNT.REGION.batch.azure.com")
    return text


def _server_name(value: object) -> object:
    """Strip the scheme and slashes that older deployments put before a registry's name."""
    if not isinstance(value, str):
        return value
    return re.sub(r"^https?://", "", value.strip()).rstrip("/")


def _tenant(value: object) -> object:
    if not isinstance(value, str) or not value:
        return value
    try:
        return check_tenant_name(value)
    except InputError as error:
        raise ValueError(str(error)) from None


def _duration(value: object) -> object:
    """Take ISO 8601 (PT4H, P2D), or a number with a unit (4h, 2d). A bare number has none, and is refused."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if match := _SHORT_DURATION.fullmatch(text.lower()):
        return timedelta(seconds=int(match["number"]) * _UNIT_SECONDS[match["unit"]])
    if not text.upper().startswith("P"):
        raise ValueError("write a duration, such as 4h or PT4H for four hours, or 2d or P2D for two days")
    return text.upper()


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta(0):
        raise ValueError("write a duration that is not negative")
    return value


def _size(value: object) -> object:
    if isinstance(value, str) and not _SIZE.fullmatch(value.strip().lower()):
        raise ValueError("write a size, such as 512m or 2g")
    return value.strip().lower() if isinstance(value, str) else value


def _capabilities(value: object) -> object:
    words = _words(value)
    if isinstance(words, tuple):
        for word in words:
            if not _CAPABILITY.fullmatch(word) or word == "ALL":
                raise ValueError(
                    f"{word!r} is not a capability; name each one that the image needs, such as CHOWN"
                )
    return words


def shown(value: object) -> str:
    """Write a value the way a user would write it in the environment."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, timedelta):
        return iso_duration(value)
    return str(value)


def iso_duration(value: timedelta) -> str:
    """Write a duration as ISO 8601, such as P2D or PT1H30M."""
    days, seconds = value.days, value.seconds
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    clock = "".join(
        f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if number
    )
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"P{text}" if text else "PT0S"


Boolean = Annotated[bool, BeforeValidator(_boolean)]
BatchId = Annotated[str, BeforeValidator(_batch_id)]
BatchIds = Annotated[tuple[str, ...], BeforeValidator(_batch_ids)]
ContainerUrl = Annotated[str, BeforeValidator(_container_url)]
ContainerUrls = Annotated[tuple[str, ...], BeforeValidator(_container_urls)]
ServiceUrl = Annotated[str, BeforeValidator(_service_url)]
ServerName = Annotated[str, BeforeValidator(_server_name)]
TenantName = Annotated[str, BeforeValidator(_tenant)]
Size = Annotated[str, BeforeValidator(_size)]
Capabilities = Annotated[tuple[str, ...], BeforeValidator(_capabilities)]
Duration = Annotated[timedelta, BeforeValidator(_duration), AfterValidator(_not_negative)]
