"""What settings must hold together: those demanded in one mode, and combinations that cannot work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hastegeo.domain import ContainerAddress
from hastegeo.settings._problems import Problem

if TYPE_CHECKING:  # `model` imports this module
    from hastegeo.settings.model import Settings


def contradictions(settings: Settings, placeholders: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what is missing in the settings' mode, and what cannot work together.

    `placeholders` maps the settings that were left out, because they hold a placeholder, to that placeholder.
    """
    if settings.runner_type == "local":
        return
    for name, what in _missing(settings):
        if name in placeholders:
            yield Problem(name, f"still holds the placeholder {placeholders[name]}; {what}")
        else:
            yield Problem(name, f"is not set; {what}")
    yield from _impossible(settings)


def _missing(settings: Settings) -> Iterator[tuple[str, str]]:
    if not settings.url:
        yield (
            "AZURE_BATCH_URL",
            "put the Batch account's endpoint there, such as https://ACCOUNT.REGION.batch.azure.com",
        )
    if settings.account_key is not None and not settings.account_name:
        yield (
            "AZURE_BATCH_ACCOUNT_NAME",
            "put the Batch account's name there, for its key signs with the name",
        )
    if settings.use_sas:
        if not settings.output_container_url and not settings.allowed_container_urls:
            yield (
                "AZURE_BATCH_OUTPUT_CONTAINER_URL",
                "AZURE_BATCH_USE_SAS needs the container that grants are given for",
            )
    elif not settings.registry_identity_resource_id:
        yield (
            "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
            "put the pool identity's resource id there, or set AZURE_BATCH_USE_SAS=true to do without",
        )


def _impossible(settings: Settings) -> Iterator[Problem]:
    if settings.url.startswith("http://") and settings.account_key is None:
        yield Problem(
            "AZURE_BATCH_URL",
            "is plain http, and tokens travel by https only; use https, or set an account key",
        )
    lists = {
        "AZURE_BATCH_TRAINING_POOL_IDS": settings.training_pool_ids,
        "AZURE_BATCH_INFERENCE_POOL_IDS": settings.inference_pool_ids,
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS": settings.imageryprep_pool_ids,
    }
    several = [name for name, pools in lists.items() if len(pools) > 1]
    if settings.manage_pools and several:
        yield Problem(
            "AZURE_BATCH_MANAGE_POOLS",
            f"cannot be true with several pools in {', '.join(several)}; "
            "set it to false, for shared pools are not managed here",
        )
    urls = [settings.output_container_url, *settings.allowed_container_urls]
    accounts = sorted({ContainerAddress.parse(url).account_url for url in urls if url})
    if len(accounts) > 1:
        yield Problem(
            "HASTE_ALLOWED_CONTAINERS",
            f"names containers of several storage accounts ({', '.join(accounts)}); keep to one account",
        )
    own, allowed = settings.output_container_url, settings.allowed_container_urls
    if settings.use_sas and own and allowed and own not in allowed:
        yield Problem(
            "HASTE_ALLOWED_CONTAINERS",
            "leaves out the container of AZURE_BATCH_OUTPUT_CONTAINER_URL, so that no log could be written; "
            "add it",
        )
