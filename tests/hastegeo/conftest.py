"""Azurite with two tenants' accounts, and a signed-in identity, over verified TLS."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from azure.core.credentials import TokenCredential
from azure.identity import ManagedIdentityCredential
from azure.storage.blob import BlobServiceClient, ContainerClient

from hastegeo.domain import ContainerAddress
from hastegeo.local_cloud import azurite, identity
from hastegeo.local_cloud.certificates import create_certificates


@dataclass(frozen=True)
class Storage:
    url: str
    credential: TokenCredential

    def address(self, account: str, container: str = "data") -> ContainerAddress:
        return ContainerAddress.parse(f"{self.url}/{account}/{container}")

    def owner(self, account: str) -> ContainerClient:
        """A client with the account's own identity, to prepare and to look."""
        address = self.address(account)
        return ContainerClient(address.account_url, address.container, credential=self.credential)


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder = tmp_path_factory.mktemp("storage")
    certificates = create_certificates(folder / "certificates")
    header = secrets.token_hex(16)
    keys = {name: base64.b64encode(os.urandom(32)).decode() for name in ("dev1store", "dev2store")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in certificates.client_environment().items():
            patch.setenv(name, value)
        tokens, token_url = identity.start(
            ["dev1"],
            identity_header=header,
            key_set_file=folder / "keys.json",
            log_file=folder / "identity.log",
        )
        try:
            server, url = azurite.start(
                azurite.install(),
                accounts=keys,
                certificates=certificates,
                data_dir=folder / "data",
                log_file=folder / "azurite.log",
            )
            try:
                patch.setenv("IDENTITY_ENDPOINT", token_url)
                patch.setenv("IDENTITY_HEADER", header)
                credential = ManagedIdentityCredential(client_id=identity.client_id("dev1"))
                for name in keys:
                    with BlobServiceClient(f"{url}/{name}", credential=credential) as service:
                        for container in ("data", "other"):
                            service.create_container(container).upload_blob("raw/a.tif", b"pixels")
                yield Storage(url, credential)
            finally:
                server.stop()
        finally:
            tokens.stop()
