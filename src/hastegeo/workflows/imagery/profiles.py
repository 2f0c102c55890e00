"""Source profiles: which bands are shown, and how they are stretched. Data, to which users add their own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

from hastegeo.errors import InputError

GENERIC: Final = "generic"
_KEYS: Final = frozenset({"bands", "percentiles", "range"})
_DEFAULT_PERCENTILES: Final = (2, 98)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How imagery of one source is shown.

    `bands` maps a number of bands to the 1-based bands shown as red, green and blue. `fixed_range` are the
    values that become 1 and 255; without it, those at `percentiles` of each band do.
    """

    name: str
    bands: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    percentiles: tuple[int, int] = _DEFAULT_PERCENTILES
    fixed_range: tuple[float, float] | None = None

    def shown(self, colours: Sequence[str]) -> tuple[tuple[int, int, int], str]:
        """Return the positions (0-based) of the bands shown, and why, as a sentence.

        `colours` names each band's colour, as the tiles do.
        """
        chosen = self.bands.get(len(colours))
        if chosen is not None:
            red, green, blue = chosen
            return (red - 1, green - 1, blue - 1), (
                f"Bands {red}, {green} and {blue} are shown, as the profile {self.name} has it for "
                f"{len(colours)} bands."
            )
        if {"red", "green", "blue"} <= set(colours):
            named = (colours.index("red"), colours.index("green"), colours.index("blue"))
            return named, "The bands shown are those that the tiles name red, green and blue."
        if len(colours) < 3:
            return (0, 0, 0), "The first band is shown in grey: there are fewer than three."
        return (0, 1, 2), "Bands 1, 2 and 3 are shown: the tiles name no colours."


def find_profile(name: str, *, file: Path | None = None) -> Profile:
    """Return a profile by name, from the user's file first. Raises `InputError` where there is none."""
    profiles = _read(resources.files(__package__).joinpath("profiles.toml").read_text(encoding="utf-8"), "")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            raise InputError(f"The profiles file {file} cannot be read.", hint="Check the path.") from None
        profiles |= _read(text, f" in {file}")
    if name not in profiles:
        raise InputError(
            f"There is no source profile {name!r}.", hint=f"Choose one of: {', '.join(sorted(profiles))}."
        )
    return profiles[name]


def _read(text: str, where: str) -> dict[str, Profile]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The profiles{where} are not TOML: {error}.") from None
    return {name: _parse(name, entry, where) for name, entry in document.items()}


def _parse(name: str, entry: Any, where: str) -> Profile:
    if not isinstance(entry, dict) or not entry.keys() <= _KEYS:
        raise InputError(
            f"The profile {name}{where} is not a table of bands, percentiles and range.",
            hint="Write it as the profiles that come with HASTE are written.",
        )
    limits = entry.get("range")
    if limits is not None and not _are_numbers(limits, int | float):
        raise InputError(f"The profile {name}{where} needs a range of two rising numbers.")
    percentiles = entry.get("percentiles", list(_DEFAULT_PERCENTILES))
    if not _are_numbers(percentiles, int) or not 0 <= percentiles[0] < percentiles[1] <= 100:
        raise InputError(f"The profile {name}{where} needs two rising whole percentiles from 0 to 100.")
    return Profile(
        name=name,
        bands=dict(_parse_bands(name, key, value, where) for key, value in entry.get("bands", {}).items()),
        percentiles=(percentiles[0], percentiles[1]),
        fixed_range=None if limits is None else (float(limits[0]), float(limits[1])),
    )


def _are_numbers(value: Any, kind: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(part, kind) and not isinstance(part, bool) for part in value)
        and value[0] < value[1]
    )


def _parse_bands(name: str, key: str, value: Any, where: str) -> tuple[int, tuple[int, int, int]]:
    count = int(key) if key.isdecimal() else 0
    if (
        not isinstance(value, list)
        or len(value) != 3
        or not all(type(band) is int and 1 <= band <= count for band in value)
    ):
        raise InputError(
            f"The profile {name}{where} needs three bands for each number of them, such as 4 = [3, 2, 1]."
        )
    return count, (value[0], value[1], value[2])
