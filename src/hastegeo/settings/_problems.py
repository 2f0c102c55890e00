"""Problems of a configuration, reported all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hastegeo.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Problem:
    """One setting that is wrong, and what is wrong with it or what to put there."""

    setting: str
    what: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.what}"


def configuration_error(problems: Sequence[Problem]) -> ConfigurationError:
    """Return one error that lists every problem, one a line."""
    count = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    lines = "\n".join(f"  {problem}" for problem in problems)
    return ConfigurationError(
        f"The configuration has {count}:\n{lines}\n",
        hint="The settings are described in docs/reference/settings.md.",
    )
