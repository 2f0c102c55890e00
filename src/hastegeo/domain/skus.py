"""The SKU catalogue: what a node of a VM size offers. One more tier is one more row in `skus.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """What a task asks of a node's GPUs: how many, and the memory of each in GiB. Zero count means none."""

    count: int = 0
    memory_gib: float = 0.0


@dataclass(frozen=True, slots=True)
class Sku:
    """One VM size. `gpu_memory_gib` is of one GPU; `hourly_usd` is indicative: it ranks and reports."""

    vm_size: str
    tier: str
    gpu_model: str
    gpu_count: int
    gpu_memory_gib: float
    cores: int
    memory_gib: float
    hourly_usd: float

    def shortfall(self, need: GpuNeed) -> str:
        """Say why a node of this size cannot meet `need`; an empty string means that it can."""
        if need.count > self.gpu_count:
            return f"has {self.gpu_count} GPU a node, the task needs {need.count}"
        if need.count and need.memory_gib > self.gpu_memory_gib:
            return f"has {self.gpu_memory_gib:g} GiB a GPU, the task needs {need.memory_gib:g} GiB"
        return ""


@cache
def sku_catalogue() -> dict[str, Sku]:
    """Return the catalogue, keyed by VM size in lower case (Azure compares sizes without case)."""
    text = resources.files("hastegeo.domain").joinpath("skus.toml").read_text(encoding="utf-8")
    return {row["vm_size"].lower(): Sku(**row) for row in tomllib.loads(text)["sku"]}


def find_sku(vm_size: str) -> Sku | None:
    """Return the catalogue's row of a VM size, or None where it has none."""
    return sku_catalogue().get(vm_size.lower())
