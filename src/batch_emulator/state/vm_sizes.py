"""The sizes of virtual machines that pools may ask for; the table itself is `vm_sizes.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, kw_only=True)
class VmSize:
    """What one machine of a size has. Memory is in GiB; `gpu_memory_gib` is that of each GPU."""

    name: str
    cores: int
    memory_gib: float
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory_gib: float = 0.0


def find_vm_size(name: str) -> VmSize | None:
    """Return a size by its name, in any case, or None if there is no such size in the table."""
    return vm_sizes().get(name.lower())


@functools.cache
def vm_sizes() -> Mapping[str, VmSize]:
    """Return all sizes by their names in lower case."""
    text = (resources.files("batch_emulator.state") / "vm_sizes.toml").read_text()
    document = tomllib.loads(text)
    sizes = [VmSize(name=name, **size) for name, size in document["size"].items()]
    for family in document["family"]:
        sizes += [
            VmSize(
                name=family["name"].format(cores=cores),
                cores=cores,
                memory_gib=cores * family["memory_gib_per_core"],
            )
            for cores in family["cores"]
        ]
    return {size.name.lower(): size for size in sizes}
