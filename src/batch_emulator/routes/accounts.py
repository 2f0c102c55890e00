"""Operations on the account: what it offers."""

from __future__ import annotations

from batch_emulator.errors import BatchError
from batch_emulator.routes.listing import list_answer, numbered, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.state import Json

# A pool may name any image; these are the ones that the listing shows.
_IMAGES: tuple[Json, ...] = tuple(
    {
        "nodeAgentSKUId": agent,
        "imageReference": {"publisher": publisher, "offer": offer, "sku": sku, "version": "latest"},
        "osType": "linux",
        "capabilities": ["DockerCompatible", "NvidiaTeslaDriverInstalled"],
        "verificationType": "verified",
    }
    for agent, publisher, offer, sku in (
        ("batch.node.ubuntu 24.04", "microsoft-dsvm", "ubuntu-hpc", "2404"),
        ("batch.node.ubuntu 22.04", "microsoft-dsvm", "ubuntu-hpc", "2204"),
    )
)


@registry.operation("GET", "/supportedimages")
def list_supported_images(call: Call) -> Answer:
    """List the images that nodes can be made of."""
    items = numbered(_IMAGES, start_after(call))
    return list_answer(call, "supportedimages", items, lambda image: image)


@registry.operation("GET", "/applications", note="The account holds no application packages.")
def list_applications(call: Call) -> Answer:
    """List the application packages: none."""
    return list_answer(call, "applications", (), lambda application: application)


@registry.operation("GET", "/applications/{applicationId}", note="The account holds no application packages.")
def get_application(call: Call) -> Answer:  # noqa: ARG001 - the answer is the same for every id
    """Answer that there is no such application."""
    raise BatchError("ApplicationNotFound")
