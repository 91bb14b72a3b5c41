"""The commit journal's own format: what a crash must not lose, and how it is put back.

::

    record   length u32 LE | crc32 u32 LE (of generation and body) | generation 8 bytes | body
    body     msgpack {session, offset, content, sidecars}

All records of a journal bear the generation of its first: bytes of an earlier journal that a crash left behind its
end can then not be taken for newer ones.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from core.log.disk import Disk

logger = structlog.get_logger()

_HEAD = struct.Struct("<II8s")


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of one session's log at their offset, and the small files that belong to them."""

    session: str
    offset: int
    content: bytes
    sidecars: dict[str, bytes]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def pack(record: Record, generation: bytes) -> bytes:
    """One record as it stands in the journal."""
    body = _encoder.encode(record)
    return _HEAD.pack(len(body), zlib.crc32(body, zlib.crc32(generation)), generation) + body


def unpack(journal: bytes) -> Iterator[Record]:
    """The records of a journal, up to the first that is torn or of another generation."""
    first = journal[_HEAD.size - 8 : _HEAD.size]
    position = 0
    while position + _HEAD.size <= len(journal):
        length, checksum, generation = _HEAD.unpack_from(journal, position)
        body = journal[position + _HEAD.size : position + _HEAD.size + length]
        if generation != first or len(body) < length or zlib.crc32(body, zlib.crc32(generation)) != checksum:
            return
        yield _decoder.decode(body)
        position += _HEAD.size + length


def put_back(records: Iterator[Record], runtimes: Path, disk: Disk) -> int:
    """Write what session files lack or hold torn, and make it durable. Returns how many files differed.

    The one write to a log that is no append. A stretch that reads back equal is written all the same: after a failed
    sync the page cache shows what the device never got.
    """
    differed: set[Path] = set()
    touched: set[Path] = set()
    for record in records:
        folder = runtimes / record.session
        disk.make_folder(folder)
        path = folder / "events.jsonl"
        touched |= {path, *(folder / name for name in record.sidecars)}
        descriptor = disk.open(path)
        try:
            if disk.read_at(descriptor, record.offset, len(record.content)) != record.content:
                differed.add(path)
            disk.write_at(descriptor, record.offset, record.content)
        finally:
            disk.close(descriptor)
        for name, content in record.sidecars.items():
            try:
                disk.write_new(folder / name, content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                # Somebody put something in its place since. The log does without; that file will not be fetched.
                logger.warning("sidecar_not_placed", session=record.session, file=name, reason=error.strerror)
    sync_paths(touched, disk)
    return len(differed)


def sync_paths(paths: set[Path], disk: Disk) -> None:
    """Make files and the names they stand under durable. A file that is gone has nothing to lose."""
    folders: set[Path] = set()
    for path in paths:
        if not path.exists():
            continue
        descriptor = disk.open(path)
        try:
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        folders |= {path.parent, path.parent.parent}
    for folder in folders:
        disk.sync_folder(folder)
