"""Tar archives, right and wrong ones, byte by byte."""

from __future__ import annotations

from typing import NamedTuple

from shardfs.blob import Blob, Bytes
from shardfs.formats.webdataset.header import BLOCK, END, padded
from shardfs.formats.webdataset.scan import Member, TarReader


def header(
    name: str,
    size: int = 0,
    kind: bytes = b"0",
    *,
    link: str = "",
    prefix: str = "",
    magic: bytes = b"ustar\x0000",
    size_field: bytes = b"",
    tail: bytes = b"",
    encoding: str = "utf-8",
) -> bytes:
    """A header block with its checksum. *tail* replaces what is in it from byte 345 on."""
    block = b"".join(
        [
            name.encode(encoding).ljust(100, b"\0"),
            b"0000644\0" + 2 * b"0000000\0",
            size_field or b"%011o\0" % size,
            b"14512345000\0",
            8 * b" ",
            kind,
            link.encode(encoding).ljust(100, b"\0"),
            magic,
            bytes(80),
            (tail or prefix.encode(encoding)).ljust(167, b"\0"),
        ]
    )
    assert len(block) == BLOCK
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def member(name: str, data: bytes = b"", kind: bytes = b"0", *, link: str = "") -> bytes:
    """A header and the data behind it."""
    return header(name, len(data), kind, link=link) + data.ljust(padded(len(data)), b"\0")


def pax(kind: bytes = b"x", **records: str) -> bytes:
    """An extended header; `__` in a keyword is a dot."""
    return pax_records(
        *((key.replace("__", "."), value) for key, value in records.items()), kind=kind
    )


def pax_records(*records: tuple[str, str], kind: bytes = b"x") -> bytes:
    """An extended header, the keywords of which may repeat."""
    body = b""
    for key, value in records:
        record = f" {key}={value}\n".encode()
        length = len(record)
        while length != len(record) + len(str(length)):
            length = len(record) + len(str(length))
        body += b"%d%b" % (length, record)
    return member("././@PaxHeader", body, kind)


def archive(*members: bytes) -> bytes:
    """An archive with its two end blocks."""
    return b"".join(members) + 2 * END


class Walk(NamedTuple):
    """What a walk over an archive has found."""

    members: list[Member]
    faults: list[tuple[str, int]]
    cut: str

    @property
    def names(self) -> list[bytes]:
        return [member.name for member in self.members]


def walk(data: bytes | Blob, *, size_is_known: bool = True) -> Walk:
    blob = Bytes(data) if isinstance(data, bytes) else data
    faults: list[tuple[str, int]] = []
    size = blob.size() if size_is_known else None
    reader = TarReader(blob, size, lambda message, offset: faults.append((message, offset)))
    members = []
    while (found := reader.next()) is not None:
        members.append(found)
    assert reader.next() is None
    return Walk(members, faults, reader.cut)
