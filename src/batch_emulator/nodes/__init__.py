"""The node agent: really runs tasks on this machine, each in its own sandbox.

`create_agent` makes one, `load_images` reads the table that maps container images to local commands, and
`probe_drivers` says which kinds of sandbox work here.
"""

from batch_emulator.nodes.agent import LocalNodeAgent, create_agent
from batch_emulator.nodes.drivers import DRIVERS, DriverProbe, DriverUnavailableError, probe_drivers
from batch_emulator.nodes.images import Image, ImageTable, ImageTableError, load_images

__all__ = [
    "DRIVERS",
    "DriverProbe",
    "DriverUnavailableError",
    "Image",
    "ImageTable",
    "ImageTableError",
    "LocalNodeAgent",
    "create_agent",
    "load_images",
    "probe_drivers",
]
