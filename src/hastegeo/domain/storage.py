"""Addresses of blob containers, read strictly.

A grant is given for an address, so two spellings of one container, or one spelling that two programs read
differently, are a way around a policy. An address is therefore accepted only in its one canonical form:
no user info, query, fragment, escapes, dot segments, upper case, or trailing dot. Container naming rules:
https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, NoReturn
from urllib.parse import SplitResult, quote, urlsplit

from hastegeo.errors import InputError

_VISIBLE_ASCII: Final = re.compile(r"[!-~]+")
_HOST_STYLE: Final = re.compile(
    r"(?P<account>[a-z0-9]{3,24})(\.z[0-9]{1,3})?\.blob\.[a-z0-9-]+(\.[a-z0-9-]+)*"
)
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9](?:-?[a-z0-9])*")
_MAX_BLOB_NAME_LENGTH: Final = 1024
_HTTPS_PORT: Final = 443


@dataclass(frozen=True, slots=True, order=True)
class ContainerAddress:
    """One container of one storage account; equal addresses name the same container.

    `account_url` is the account's blob endpoint without a trailing slash:
    `https://acct.blob.core.windows.net`, or path-style (`https://127.0.0.1:10000/acct`) for the local
    Azurite.
    """

    account_url: str
    account: str
    container: str

    @classmethod
    def parse(cls, url: str) -> ContainerAddress:
        """Read a container URL. Raises `InputError` for any but the canonical form, saying what is wrong."""
        parts, host, port = _split(url)
        segments = parts.path.split("/")[1:]
        if segments and segments[-1] == "":
            segments = segments[:-1]
        if match := _HOST_STYLE.fullmatch(host):
            account, account_path = match["account"], ""
        elif _is_path_style(host):
            if not segments or not _ACCOUNT.fullmatch(segments[0]):
                _refuse(url, "it names no storage account after the host")
            account, account_path = segments[0], f"/{segments[0]}"
            segments = segments[1:]
        else:
            _refuse(url, "its host is no blob endpoint")
        if len(segments) != 1:
            _refuse(url, "it must name exactly one container and nothing below it")
        if not _CONTAINER.fullmatch(segments[0]):
            _refuse(url, "its container name is not a legal one")
        authority = host if port in {None, _HTTPS_PORT} else f"{host}:{port}"
        return cls(account_url=f"https://{authority}{account_path}", account=account, container=segments[0])

    @property
    def url(self) -> str:
        """The container's URL, without a signature."""
        return f"{self.account_url}/{self.container}"

    def blob_url(self, blob: str) -> str:
        """The URL of a blob in this container, escaped, without a signature."""
        return f"{self.url}/{quote(blob, safe='/~')}"

    def __str__(self) -> str:
        return self.url


def check_blob_name(name: str, *, what: str = "blob name") -> str:
    """Return `name` if it is a plain relative blob name or prefix, else raise `InputError`.

    Refused are an empty name, a leading slash, empty, `.` and `..` segments (a trailing slash is fine), a
    backslash and control characters: storage accepts some of them, but programs on the way rewrite them.
    """
    segments = name.removesuffix("/").split("/")
    if (
        not name
        or len(name) > _MAX_BLOB_NAME_LENGTH
        or "\\" in name
        or any(ord(character) < 0x20 or ord(character) == 0x7F for character in name)
        or any(segment in {"", ".", ".."} for segment in segments)
    ):
        raise InputError(
            f"The {what} {name!r} is not a plain relative path.",
            hint="Use names such as raw/pre/tile.tif: no leading slash, no '..', no backslash.",
        )
    return name


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    # urlsplit silently drops tabs and newlines and unescapes nothing: look at the text before it does.
    if not _VISIBLE_ASCII.fullmatch(url):
        _refuse(url, "it holds spaces, control or non-ASCII characters, or is empty")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        _refuse(url, "it is not a URL")
    if parts.scheme != "https" or not url.startswith("https://"):
        _refuse(url, "it does not start with https://")
    if "@" in parts.netloc:
        _refuse(url, "it holds user info before the host")
    if parts.query or "?" in url:
        _refuse(url, "it holds a query; grants are made by this library, so give the plain URL")
    if parts.fragment or "#" in url:
        _refuse(url, "it holds a fragment")
    if "%" in url or "\\" in url:
        _refuse(url, "it holds escaped or backslash characters")
    host = parts.hostname or ""
    netloc_host = parts.netloc.removesuffix(f":{port}") if port is not None else parts.netloc
    if netloc_host not in {host, f"[{host}]"}:
        _refuse(url, "its host is not written in plain lower case")
    return parts, netloc_host, port


def _is_path_style(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _refuse(url: str, why: str) -> NoReturn:
    shown = re.sub(r"[?#].*", "?...", url, flags=re.DOTALL)
    shown = re.sub(r"//[^/]*@", "//...@", shown)
    raise InputError(
        f"{shown!r} is not a container URL: {why}.",
        hint="Write it as https://ACCOUNT.blob.core.windows.net/CONTAINER.",
    )
