"""Whether imagery can be used, said before anything is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import shapely
from rasterio.warp import transform_bounds

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.gdal import closed_gdal
from hastegeo.workflows.imagery.grid import GridPlan, plan_grid
from hastegeo.workflows.imagery.mosaic import Mosaic
from hastegeo.workflows.imagery.options import ImageryOptions
from hastegeo.workflows.imagery.tiles import (
    EVENTS,
    Event,
    Tile,
    find_tiles,
    has_valid_pixel,
    listing,
    read_tile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventImagery:
    """The tiles of one event, known to be usable together, and the grid they go to."""

    event: Event
    tiles: tuple[Tile, ...]
    plan: GridPlan
    notes: tuple[str, ...]


def survey(
    folder: str | os.PathLike[str], event: Event, options: ImageryOptions | None = None
) -> EventImagery:
    """Read what the tiles of an event are. Raises `InputError` where they cannot make one image."""
    chosen = options or ImageryOptions()
    tiles = tuple(
        read_tile(name, path, keep_black=chosen.keep_black) for name, path in find_tiles(folder, event)
    )
    plan = plan_grid(tiles, area=chosen.area)
    with Mosaic(tiles, plan.grid):
        pass  # its arrangement refuses tiles whose bands differ
    empty = [tile.name for tile in tiles if not has_valid_pixel(tile)]
    if len(empty) == len(tiles):
        raise InputError(
            f"There is nothing in {listing(empty)}: every pixel is black or marked as having no data.",
            hint="Check the nodata value of the files, or choose others.",
        )
    notes = list(plan.notes)
    if empty:
        notes.append(f"Without a pixel of data: {listing(empty)}.")
    if bordered := [tile.name for tile in tiles if tile.border is not None]:
        notes.append(f"Black borders count as no data: {listing(bordered)}.")
    with_alpha = [tile.name for tile in tiles if tile.alpha is not None]
    if with_alpha:
        notes.append(f"An alpha band says which pixels have data, and is not kept: {listing(with_alpha)}.")
    return EventImagery(event=event, tiles=tiles, plan=plan, notes=tuple(notes))


def events_in(folder: str | os.PathLike[str]) -> tuple[Event, ...]:
    """Return the events that a folder has tiles of; tiles in no event's folder count as post-event ones."""
    present: tuple[Event, ...] = tuple(event for event in EVENTS if (Path(folder) / event).is_dir())
    return present or ("post",)


def check_imagery(
    folder: str | os.PathLike[str], options: ImageryOptions | None = None
) -> Mapping[Event, EventImagery]:
    """Check a folder of imagery before work begins, and return what it holds for each event.

    A folder with `pre/` and `post/` has two events; with one of them, or with tiles alone, it has one: tiles
    alone count as post-event imagery. Raises `InputError` as `prepare_imagery` would, and where pre-event and
    post-event imagery show different places. Damage inside compressed data shows only when it is read.
    """
    with closed_gdal():
        found = {event: survey(folder, event, options) for event in events_in(folder)}
        if len(found) == len(EVENTS):
            _check_same_place(found["pre"], found["post"])
    return found


def _check_same_place(pre: EventImagery, post: EventImagery) -> None:
    pre_grid, post_grid = pre.plan.grid, post.plan.grid
    west, south, east, north = transform_bounds(pre_grid.crs, post_grid.crs, *pre_grid.bounds, densify_pts=21)
    if not shapely.box(west, south, east, north).intersects(shapely.box(*post_grid.bounds)):
        raise InputError(
            "The pre-event and the post-event tiles do not overlap: they show different places.",
            hint="Check that both folders belong to one area, and their coordinate reference systems.",
        )
