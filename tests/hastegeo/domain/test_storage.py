"""Addresses of containers: one canonical form, and nothing that two programs could read differently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hastegeo.domain import ContainerAddress, check_blob_name
from hastegeo.errors import InputError

HOST_STYLE = "https://dev1store.blob.core.windows.net/data"


@pytest.mark.parametrize(
    ("url", "account", "container", "account_url"),
    [
        (HOST_STYLE, "dev1store", "data", "https://dev1store.blob.core.windows.net"),
        (f"{HOST_STYLE}/", "dev1store", "data", "https://dev1store.blob.core.windows.net"),
        ("https://acct.z12.blob.storage.azure.net/a-b", "acct", "a-b", "https://acct.z12.blob.storage.azure.net"),
        ("https://acct.blob.core.windows.net:443/data", "acct", "data", "https://acct.blob.core.windows.net"),
        ("https://127.0.0.1:10000/dev1/data", "dev1", "data", "https://127.0.0.1:10000/dev1"),
        ("https://localhost:10000/dev1/data", "dev1", "data", "https://localhost:10000/dev1"),
        ("https://[::1]:10000/dev1/data", "dev1", "data", "https://[::1]:10000/dev1"),
    ],
)  # fmt: skip
def test_both_styles_are_read(url: str, account: str, container: str, account_url: str) -> None:
    address = ContainerAddress.parse(url)
    assert (address.account, address.container, address.account_url) == (account, container, account_url)
    assert address == ContainerAddress.parse(address.url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "dev1store.blob.core.windows.net/data",
        "http://dev1store.blob.core.windows.net/data",
        "HTTPS://dev1store.blob.core.windows.net/data",
        "https://DEV1STORE.blob.core.windows.net/data",
        "https://dev1store.blob.core.windows.net./data",
        "https://dev1store.blob.core.windows.net/Data",
        "https://dev1store.blob.core.windows.net/data?sig=secret",
        "https://dev1store.blob.core.windows.net/data?",
        "https://dev1store.blob.core.windows.net/data#x",
        "https://dev1store.blob.core.windows.net/data/blob",
        "https://dev1store.blob.core.windows.net/data/..",
        "https://dev1store.blob.core.windows.net/data/../other",
        "https://dev1store.blob.core.windows.net/./data",
        "https://dev1store.blob.core.windows.net//data",
        "https://dev1store.blob.core.windows.net/data//",
        "https://dev1store.blob.core.windows.net/d%61ta",
        "https://dev1store.blob.core.windows.net%2Fdata",
        "https://dev1store.blob.core.windows.net\\@evil.example/data",
        "https://dev1store.blob.core.windows.net@evil.example/data",
        "https://user:pass@dev1store.blob.core.windows.net/data",
        "https://evil.example/dev1store.blob.core.windows.net/data",
        "https://dev1store.blob.core.windows.net.evil.example:1/../data",
        "https://dev1store.blob.core.windows.net/da\tta",
        "https://dev1store.blob.core.windows.net/da\nta",
        " https://dev1store.blob.core.windows.net/data",
        "https://dev1store.blob.core.windows.net/d\u0430ta",
        "https://dev1store.blob.core.windows.net:port/data",
        "https://dev1store.blob.core.windows.net/$root",
        "https://dev1store.blob.core.windows.net/",
        "https://dev1store.blob.core.windows.net/a--b",
        "https://127.0.0.1:10000/data",
        "https://127.0.0.1:10000/dev1/data/more",
        "https:///data",
    ],
)  # fmt: skip
def test_any_other_spelling_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="not a container URL") as caught:
        ContainerAddress.parse(url)
    assert "secret" not in str(caught.value)
    assert "user:pass" not in str(caught.value)


@given(st.text(max_size=60).map(lambda text: f"https://dev1store.blob.core.windows.net/{text}"))
def test_whatever_is_accepted_names_this_account(url: str) -> None:
    try:
        address = ContainerAddress.parse(url)
    except InputError:
        return
    assert address.account == "dev1store"
    assert address.url.rstrip("/") == url.rstrip("/")


@pytest.mark.parametrize("name", ["a", "raw/pre/tile 1.tif", "a/b/", "ü/ø", "100%.tif", "**/*.tif"])
def test_plain_blob_names_are_kept(name: str) -> None:
    assert check_blob_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "/a", "a//b", "a/../b", "..", "./a", "a\\b", "a\x00b", "a\nb", "x" * 1025]
)
def test_blob_names_that_climb_or_hide_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        check_blob_name(name)


def test_a_blob_url_is_escaped() -> None:
    address = ContainerAddress.parse(HOST_STYLE)
    assert address.blob_url("raw/a b%#?.tif") == f"{HOST_STYLE}/raw/a%20b%25%23%3F.tif"
