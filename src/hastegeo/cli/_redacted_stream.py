"""Masking secrets in a stream of bytes that may be text, or anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hastegeo.cli._output import redact

# A line longer than this is not waited for.
_LONGEST_LINE: Final = 64 * 1024
# More than any secret that has a shape, so that none is cut in two by giving up on a line.
_LONGEST_SECRET: Final = 8 * 1024
_LINE_ENDS: Final = (b"\n", b"\r")


def redacted_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes with secrets masked, line by line: a chunk may end in the middle of a secret.

    A line that is not ended yet is held back until it is, or until the stream ends.
    """
    held = b""
    for chunk in chunks:
        held += chunk
        end = max(held.rfind(mark) for mark in _LINE_ENDS) + 1
        if end:
            yield _masked(held[:end])
            held = held[end:]
        elif len(held) > _LONGEST_LINE:
            # Mask what is there, and keep a tail in which a secret may have begun.
            masked = _masked(held)
            held = masked[-_LONGEST_SECRET:]
            yield masked[:-_LONGEST_SECRET]
    if held:
        yield _masked(held)


def _masked(piece: bytes) -> bytes:
    # Latin-1 maps every byte to one character and back, and secrets are ASCII.
    return redact(piece.decode("latin-1")).encode("latin-1")
