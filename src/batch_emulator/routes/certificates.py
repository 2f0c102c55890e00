"""Certificates, which azure-batch 14.2 can still ask for: the service has retired them.

Source: https://learn.microsoft.com/azure/batch/batch-certificate-migration-guide
"""

from __future__ import annotations

from batch_emulator.routes.listing import list_answer
from batch_emulator.routes.registry import Answer, Call, registry


@registry.operation("GET", "/certificates", note="The account holds no certificates.")
def list_certificates(call: Call) -> Answer:
    """List the certificates: none."""
    return list_answer(call, "certificates", (), lambda certificate: certificate)
