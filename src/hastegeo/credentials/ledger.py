"""The ledger of grants: what was given, to whom, for how long. Append-only, and never a signature.

One JSON object a line: `issued`, `tenant`, `task`, `kind`, `permissions`, `account`, `container`, `prefix`,
`blob`, `starts`, `expires`, `key_id`, `digest` (SHA-256 of the signed URL, so that a leaked URL can be
traced to its line).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from hastegeo.credentials.grant import Grant
from hastegeo.errors import CredentialError


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of the ledger. Times are ISO 8601 in UTC."""

    issued: str
    tenant: str
    task: str
    kind: str
    permissions: str
    account: str
    container: str
    prefix: str | None
    blob: str | None
    starts: str
    expires: str
    key_id: str
    digest: str

    @classmethod
    def of(cls, grant: Grant, *, task: str, issued: datetime) -> LedgerEntry:
        """Return the line of a grant."""
        scope = grant.scope
        return cls(
            issued=issued.isoformat(),
            tenant=grant.tenant,
            task=task,
            kind=scope.kind,
            permissions=scope.letters,
            account=scope.container.account_url,
            container=scope.container.container,
            prefix=scope.prefix,
            blob=scope.blob,
            starts=grant.starts.isoformat(),
            expires=grant.expires.isoformat(),
            key_id=grant.key_id,
            digest=grant.url.digest,
        )

    def is_live(self, now: datetime) -> bool:
        """Whether the grant has not expired at `now`."""
        return datetime.fromisoformat(self.expires) > now


class GrantLedger:
    """A ledger file. Several threads and processes may append to the same one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entries: Iterable[LedgerEntry]) -> None:
        """Write entries and make sure that they are on disk.

        Raises `CredentialError` where that is impossible.
        """
        text = "".join(json.dumps(asdict(entry), sort_keys=True) + "\n" for entry in entries)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # One write to a file opened for appending is not mixed with another process's.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, text.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CredentialError(
                f"The ledger of grants {self.path} cannot be written ({error.strerror}): no grant is given.",
                hint="Set HASTE_GRANT_LEDGER to a file that this process may write.",
            ) from error

    def entries(self, *, tenant: str | None = None, task: str | None = None) -> Iterator[LedgerEntry]:
        """Yield the lines, oldest first, of one tenant or task or of all. A missing file has none.

        A line cut short by a crash is skipped. Raises `CredentialError` where the file cannot be read.
        """
        try:
            with self.path.open(encoding="utf-8") as lines:
                for line in lines:
                    entry = _read(line)
                    if entry is None:
                        continue
                    if tenant in {None, entry.tenant} and task in {None, entry.task}:
                        yield entry
        except FileNotFoundError:
            return
        except OSError as error:
            raise CredentialError(
                f"The ledger of grants {self.path} cannot be read ({error.strerror})."
            ) from error


def default_ledger_path() -> Path:
    """Return where the ledger is kept if HASTE_GRANT_LEDGER is unset: the user's state folder (XDG)."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "haste" / "grants.jsonl"


def _read(line: str) -> LedgerEntry | None:
    try:
        return LedgerEntry(**json.loads(line))
    except (ValueError, TypeError):
        return None
