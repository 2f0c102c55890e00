"""Draw targets over time as a step chart: SVG, written by hand so that it needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Final

from batch_emulator.autoscale.replay import Run, Trace

_WIDTH, _HEIGHT = 960, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 48, 40
_DEMAND: Final = "$PendingTasks"

# Dark blue, orange and grey differ for colour-blind readers too, and each line has its own dashes.
_STYLES: Final = {
    "dedicated": 'stroke="#1f4e9c" stroke-width="2"',
    "low-priority": 'stroke="#d9730d" stroke-width="2" stroke-dasharray="7 3"',
    _DEMAND: 'stroke="#8a8a8a" stroke-width="1" stroke-dasharray="2 2"',
}

_CROSS: Final = "l8 8m0 -8l-8 8"
_FAILED: Final = 'stroke="#b00020" stroke-width="2"'

# A value holds until the next point; None leaves a gap.
Point = tuple[datetime, float | None]


@dataclass(frozen=True)
class _Scale:
    first: datetime
    last: datetime
    top: float

    def x(self, moment: datetime) -> float:
        share = (moment - self.first) / (self.last - self.first)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM)


def draw(title: str, runs: Sequence[Run], trace: Trace) -> str:
    """Return an SVG document: both targets, pending tasks if the trace has them, and failed evaluations."""
    lines: dict[str, list[Point]] = {
        "dedicated": [(run.at, run.result.target_dedicated) for run in runs],
        "low-priority": [(run.at, run.result.target_low_priority) for run in runs],
    }
    demand: list[Point] = [(at, values.get(_DEMAND)) for at, values in trace.rows]
    if any(value is not None for _, value in demand):
        lines[_DEMAND] = demand
    first = trace.rows[0][0]
    last = max(trace.rows[-1][0], first + timedelta(seconds=1))
    highest = max(value or 1 for line in lines.values() for _, value in line)
    step = _tick_step(highest)
    scale = _Scale(first, last, step * math.ceil(highest / step))
    failed = [run for run in runs if run.result.error is not None]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
            ' font-family="sans-serif" font-size="12">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
            *_legend(list(lines), failures=bool(failed)),
            *_value_axis(scale, step),
            *_time_axis(scale),
            *(_step_line(scale, line, _STYLES[name]) for name, line in lines.items()),
            *(_failure(scale, run) for run in failed),
            "</svg>",
            "",
        ]
    )


def _tick_step(highest: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten, that gives at most six ticks."""
    magnitude = 10.0 ** math.floor(math.log10(highest))
    steps = (magnitude * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5))
    return max(1, next(step for step in steps if highest / step <= 6))


def _value_axis(scale: _Scale, step: float) -> list[str]:
    marks = []
    for index in range(round(scale.top / step) + 1):
        y = scale.y(index * step)
        marks.append(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{index * step:g}</text>'
        )
    return marks


def _time_axis(scale: _Scale) -> list[str]:
    span = scale.last - scale.first
    pattern = (
        "%H:%M:%S" if span < timedelta(minutes=30) else "%H:%M" if span < timedelta(days=2) else "%m-%d %H:%M"
    )
    marks = []
    for index in range(7):
        moment = scale.first + span * index / 6
        anchor = {0: "start", 6: "end"}.get(index, "middle")
        marks.append(
            f'<text x="{scale.x(moment):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="{anchor}">'
            f"{moment:{pattern}}</text>"
        )
    marks.append(
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">'
        f"UTC, from {scale.first:%Y-%m-%d %H:%M}</text>"
    )
    return marks


def _step_line(scale: _Scale, points: Sequence[Point], style: str) -> str:
    path: list[str] = []
    drawing = False
    for at, value in points:
        if drawing:
            path.append(f"H{scale.x(at):.1f}")
        if value is not None:
            path.append(f"V{scale.y(value):.1f}" if drawing else f"M{scale.x(at):.1f} {scale.y(value):.1f}")
        drawing = value is not None
    if drawing:
        path.append(f"H{scale.x(scale.last):.1f}")
    return f'<path d="{"".join(path)}" fill="none" {style}/>'


def _failure(scale: _Scale, run: Run) -> str:
    detail = escape("; ".join(value for _, value in run.result.error.values)) if run.result.error else ""
    x, y = scale.x(run.at), scale.y(0)
    return (
        f'<path d="M{x - 4:.1f} {y - 4:.1f}{_CROSS}" {_FAILED}>'
        f"<title>{run.at:%H:%M:%S} {detail}</title></path>"
    )


def _legend(names: Sequence[str], *, failures: bool) -> list[str]:
    entries = [f'<path d="M{{x}} 35h26" fill="none" {_STYLES[name]}/>' for name in names]
    labels = list(names)
    if failures:
        entries.append(f'<path d="M{{x}} 31{_CROSS}" {_FAILED}/>')
        labels.append("failed evaluation")
    return [
        entry.format(x=_LEFT + 130 * index)
        + f'<text x="{_LEFT + 130 * index + 32}" y="39">{escape(label)}</text>'
        for index, (entry, label) in enumerate(zip(entries, labels, strict=True))
    ]
