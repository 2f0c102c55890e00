"""How the words of `haste submit` are read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hastegeo.cli import _specs
from hastegeo.domain import BlobInput, BlobOutput, GrantKind, GrantVariable, OutputCondition
from hastegeo.errors import InputError

OWN = "https://dev1store.blob.core.windows.net/data"
LOCAL = "https://127.0.0.1:10000/dev1store/data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raw/a.tif", BlobInput(container_url=OWN, blob="raw/a.tif")),
        ("raw/a.tif=in/a.tif", BlobInput(container_url=OWN, blob="raw/a.tif", path="in/a.tif")),
        ("raw/pre/", BlobInput(container_url=OWN, prefix="raw/pre/")),
        ("raw/pre/=in", BlobInput(container_url=OWN, prefix="raw/pre/", path="in")),
        ("raw/year=2024/a.tif=", BlobInput(container_url=OWN, blob="raw/year=2024/a.tif")),
        (f"{LOCAL}/raw/a.tif=a.tif", BlobInput(container_url=LOCAL, blob="raw/a.tif", path="a.tif")),
        (f"{LOCAL}/raw/", BlobInput(container_url=LOCAL, prefix="raw/")),
        (f"{OWN}/raw/", BlobInput(container_url=OWN, prefix="raw/")),
        (OWN, BlobInput(container_url=OWN)),
        (LOCAL, BlobInput(container_url=LOCAL)),
        (
            "https://other.blob.core.windows.net/raw/x",
            BlobInput(container_url="https://other.blob.core.windows.net/raw", blob="x"),
        ),
    ],
)
def test_an_input_is_a_blob_a_prefix_or_a_url(text: str, expected: BlobInput) -> None:
    assert _specs.parse_input(text, OWN) == expected


@pytest.mark.parametrize("text", ["../a", "/raw/a", "a//b", "ftp://x/y", "https://u@h.example/c/b", ""])
def test_a_bad_input_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        _specs.parse_input(text, "" if not text else OWN)


@pytest.mark.parametrize("place", [f"{OWN}/a?sv=1&sig=canarysignature", f"{LOCAL}?sig=canarysignature"])
def test_a_signed_url_is_refused_without_its_signature(place: str) -> None:
    with pytest.raises(InputError) as caught:
        _specs.parse_input(place, OWN)
    assert "canary" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        _specs.parse_output(f"a.tif={place}", OWN, OutputCondition.SUCCESS)
    assert "canary" not in str(caught.value)


def test_an_output_goes_to_a_blob_a_prefix_or_a_url() -> None:
    read = _specs.parse_output
    when = OutputCondition.COMPLETION
    pattern = "out/**/*.tif"
    assert read(f"{pattern}=results/s1/", OWN, when) == BlobOutput(
        pattern=pattern, container_url=OWN, prefix="results/s1", condition=when
    )
    assert read(f"a.tif={LOCAL}/r/a.tif", OWN, when) == BlobOutput(
        pattern="a.tif", container_url=LOCAL, prefix="r/a.tif", condition=when
    )
    for text in ("out/*", "out/*=", "=results"):
        with pytest.raises(InputError, match="not an output"):
            read(text, OWN, when)


def test_a_place_without_a_url_needs_an_own_container() -> None:
    with pytest.raises(InputError, match="none of its own"):
        _specs.parse_input("raw/a.tif", "")


def test_a_grant_has_a_kind_and_may_have_a_place() -> None:
    read = _specs.parse_grant
    assert read("IN_URL=inputs", OWN) == GrantVariable(
        name="IN_URL", kind=GrantKind.INPUTS, container_url=OWN
    )
    assert read("CHECKPOINTS=state:runs/1/", OWN).prefix == "runs/1"
    assert read(f"OUT=outputs:{LOCAL}/x", OWN).container_url == LOCAL
    for text in ("IN_URL", "IN_URL=everything", "=inputs", "S=state"):
        with pytest.raises(InputError):
            read(text, OWN)


def test_environment_entries_keep_what_follows_the_first_equals_sign() -> None:
    assert _specs.parse_environment(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    with pytest.raises(InputError) as caught:
        _specs.parse_environment(["hunter2"])
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InputError, match="twice"):
        _specs.parse_environment(["A=1", "A=2"])


def test_durations_need_a_unit() -> None:
    assert _specs.parse_duration("90s") == timedelta(seconds=90)
    assert _specs.parse_duration("4H") == timedelta(hours=4)
    for text in ("4", "", "h", "-1h", "1.5h"):
        with pytest.raises(InputError, match="not a duration"):
            _specs.parse_duration(text)


def test_names_are_split_in_order() -> None:
    assert _specs.split_names(" b, a,,b ") == ("b", "a")
