"""The commit journal's own format: what a crash must not lose.

::

    frame    mark 4 bytes | length u32 LE | crc32 u32 LE (of generation and body) | generation 8 bytes | body
    body     msgpack [{session, offset, content, sidecars}, …], of one commit

A frame is only written when the one before it is durable. So what is torn at the end was never acknowledged, and
what is torn in the middle was whole once: the mark, which stands in no text, shows where whole ones follow.

All frames of a journal bear the generation of its first: bytes of an earlier journal that a crash left behind its
end can then not be taken for newer ones.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

Sidecars = Mapping[str, bytes]
"""Small files that belong to a batch: path below the session's folder → bytes. One that exists is left alone."""

_MARK = b"\xffIJ\x02"
_HEAD = struct.Struct("<4sII8s")


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of one session's log at their offset, and the small files that belong to them."""

    session: str
    offset: int
    content: bytes
    sidecars: dict[str, bytes]


class Found(NamedTuple):
    """What a journal holds. ``damaged`` and ``torn`` count bytes: of frames that were whole once, and of the end."""

    records: list[Record]
    damaged: int
    torn: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])


def pack(records: Sequence[Record], generation: bytes) -> bytes:
    """One commit as it stands in the journal."""
    body = _encoder.encode(records)
    return _HEAD.pack(_MARK, len(body), zlib.crc32(body, zlib.crc32(generation)), generation) + body


def unpack(journal: bytes) -> Found:
    """All that is whole in a journal, in order; frames of another generation than the first whole one count as torn."""
    records: list[Record] = []
    generation: bytes | None = None
    damaged = end = position = 0
    while (position := journal.find(_MARK, position)) >= 0:
        frame = _frame_at(journal, position)
        if frame is None or frame[0] != (generation := generation or frame[0]):
            position += 1
            continue
        damaged += position - end
        records += _decoder.decode(frame[1])
        position = end = position + _HEAD.size + len(frame[1])
    return Found(records, damaged, len(journal) - end)


def _frame_at(journal: bytes, position: int) -> tuple[bytes, bytes] | None:
    """Generation and body of the frame that stands there; None where none does, or none that is whole."""
    if position + _HEAD.size > len(journal):
        return None
    _, length, checksum, generation = _HEAD.unpack_from(journal, position)
    body = journal[position + _HEAD.size : position + _HEAD.size + length]
    if len(body) < length or zlib.crc32(body, zlib.crc32(generation)) != checksum:
        return None
    return generation, body
