"""A walk over the headers of a tar archive, from one member to the next, over damage too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.webdataset import header as _tar
from shardfs.formats.webdataset.header import BLOCK, END, MAX_SIZE, padded
from shardfs.formats.webdataset.keys import MAX_DEPTH
from shardfs.formats.webdataset.sparse import MAX_PARTS, gnu_map, is_extended, pax_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shardfs.blob import Blob
    from shardfs.formats.webdataset.header import Header
    from shardfs.formats.webdataset.sparse import Map

# An extended header, its data and the member's own header, as WebDataset's writer makes them: one read a member.
_LOOK = 3 * BLOCK
# Behind a small member the next headers are read along.
_NEAR, _LOOK_FAR = 4 * BLOCK, 32 * BLOCK
# The most that is looked at a time for the next header behind damage.
_STRIDE = 1 << 20
# Guesses: the longest extended header and the longest name that are not taken for damage.
_MAX_METADATA = 4 << 20
_MAX_NAME = 1 << 16

_KEPT = frozenset([b"path", b"linkpath", b"size"])
_SPARSE = b"GNU.sparse."
_SPARSE_PAIR = frozenset([b"GNU.sparse.offset", b"GNU.sparse.numbytes"])


class Member(NamedTuple):
    """A file or link in an archive.

    Attributes:
        name: its path as stored, with `./` and all.
        link: what it leads to; None for a file.
        hard: whether it is a hard link.
        offset: where its stored data begins in the archive.
        size: bytes of stored data.
        map: where the parts of a sparse file belong.
        problem: why its bytes can't be read, "" where they can.
    """

    name: bytes
    link: bytes | None
    hard: bool
    offset: int
    size: int
    map: Map | None = None
    problem: str = ""


class Said:
    """What the headers in front of a member say of it, and those of the whole archive of all that follow."""

    def __init__(self) -> None:
        self.name = self.link = b""
        self.pairs: list[bytes] = []
        self._own: dict[bytes, bytes] = {}
        self._global: dict[bytes, bytes] = {}

    @property
    def records(self) -> Mapping[bytes, bytes]:
        """The extended records that count for the next member."""
        return {**self._global, **self._own} if self._global else self._own

    def take(self, kind: int, body: bytes) -> None:
        """Take in the data of a header of that kind. Raises Corrupt."""
        if kind == _tar.LONG_NAME:
            self.name = _tar.text(body)
        elif kind == _tar.LONG_LINK:
            self.link = _tar.text(body)
        else:
            target = self._global if kind == _tar.PAX_GLOBAL else self._own
            # An empty value takes back what was said before (POSIX): it stays, to hide that of a global header.
            for key, value in _tar.parse_pax(body):
                if key in _SPARSE_PAIR:
                    self.pairs.append(value)
                elif key in _KEPT or key.startswith(_SPARSE):
                    target[key] = value

    def forget(self) -> None:
        """Begin with another member."""
        self.name = self.link = b""
        if self._own or self.pairs:
            self._own, self.pairs = {}, []


class Window:
    """A blob that is read some way ahead.

    Attributes:
        ahead: how many bytes are read at least.
    """

    def __init__(self, blob: Blob) -> None:
        self.ahead = _LOOK
        self._blob, self._held, self._at = blob, b"", 0

    def read(self, at: int, length: int) -> bytes:
        """Bytes from *at*, fewer only at the end."""
        start = at - self._at
        if not 0 <= start <= start + length <= len(self._held):
            self._held = self._look(at, length)
            self._at, start = at, 0
        return self._held[start : start + length]

    def _look(self, at: int, length: int) -> bytes:
        if length < self.ahead:
            try:
                return bytes(self._blob.read(at, self.ahead))
            except Corrupt:
                self.ahead = 0  # a stream is damaged, but maybe only behind what is needed
        return bytes(self._blob.read(at, length))


class TarReader:
    """The files and links of an archive in order; other members are passed over.

    Damage is reported, and ends the walk only where no header follows it. After a failure that may pass
    (``Unreadable``) ``next`` goes on where it was.

    Args:
        blob: the archive, uncompressed.
        size: its length where that is known without reading all of it.
        report: takes what is wrong, and the offset.
    """

    def __init__(self, blob: Blob, size: int | None, report: Callable[[str, int], None]) -> None:
        self._blob, self._size, self._report = blob, size, report
        self.at = 0
        """The offset that the walk has come to."""
        self._window, self._said = Window(blob), Said()
        # Name and end of the member that was handed out last; the end is 0 when another header came behind it.
        self._last = b"", 0
        self.ended = False
        self.cut = ""
        """Once the walk has ended: why the bytes of the last member can't be read, "" where they can."""

    def next(self) -> Member | None:
        """The next file or link, None at the end."""
        while not self.ended:
            try:
                block = self._window.read(self.at, BLOCK)
            except Corrupt as error:
                self._stop(error.message)
                break
            if len(block) < BLOCK:
                self._stop("ends inside a header" if block.strip(b"\0") else "")
            elif block == END:
                self._end()
            else:
                try:
                    member = self._step(block)
                except Corrupt as error:
                    self._resume(error.message)
                    continue
                if member is not None and self._is_named(member.name):
                    return member
        return None

    def _step(self, block: bytes) -> Member | None:
        """Go over the header in *block*; the member that it is of. Raises Corrupt where it is none."""
        header = _tar.parse_header(block)
        if header.type in _tar.METADATA:
            self._take_metadata(header)
            return None
        if header.type in _tar.WITHOUT_DATA or self._is_old_folder(header):
            return self._link_member(header)
        return self._data_member(header, block, self._said.records)

    def _is_old_folder(self, header: Header) -> bool:
        """Whether it is a folder as v7 marks them: by a slash at the end of the name, the long one if there is one."""
        return header.type == 0 and (self._said.name or header.name).rstrip(b"\0").endswith(b"/")

    # --- ends and damage ---

    def _end(self) -> None:
        """End the walk at the end of the archive; if it is compressed, at that of the stream, where checksums stand."""
        if self._size is None:
            try:
                self._blob.size()
            except Corrupt as error:
                self._report(error.message, self.at)
        self.ended = True

    def _stop(self, problem: str) -> None:
        """End the walk where nothing more can be read."""
        self.ended = True
        name, end = self._last
        if end and not self._reaches(end):
            self.cut = problem or "the archive ends inside its data"
            problem = _about(name, self.cut)
        if problem:
            self._report(problem, self.at)

    def _reaches(self, end: int) -> bool:
        try:
            return len(self._blob.read(end - 1, 1)) == 1
        except Corrupt:
            return False

    def _resume(self, problem: str) -> None:
        """Go on at the next header behind the damaged one here."""
        self._report(problem, self.at)
        found = None
        try:
            found = next_header(self._blob, self.at + BLOCK)
        except Corrupt as error:
            if error.message != problem:
                self._report(error.message, self.at + BLOCK)
        if found is None:
            self.ended = True
        else:
            self._go_on(found)

    def _go_on(self, at: int, name: bytes = b"", end: int = 0) -> None:
        """Put the member here behind us."""
        self.at, self._last = at, (name, end)
        self._said.forget()

    # --- headers before members ---

    def _take_metadata(self, header: Header) -> None:
        if not 0 <= header.size <= _MAX_METADATA:
            raise Corrupt(f"an extended header of {header.size} bytes")
        at = self.at + BLOCK
        body = self._window.read(at, header.size)
        if len(body) < header.size:
            raise Corrupt("ends inside an extended header")
        try:
            self._said.take(header.type, body)
        except Corrupt as error:  # the member behind it still has its own header
            self._report(error.message, self.at)
        self.at, self._last = at + padded(header.size), (b"", 0)

    # --- members ---

    def _link_member(self, header: Header) -> Member | None:
        """A link; None for other members that have no data."""
        member, at = None, self.at + BLOCK
        if header.type in (_tar.HARD_LINK, _tar.SYMBOLIC_LINK):
            said, pax = self._said, self._said.records
            name = _tar.text(said.name or pax.get(b"path") or header.name)
            link = _tar.text(said.link or pax.get(b"linkpath") or header.link)
            member = Member(name, link, header.type == _tar.HARD_LINK, at, 0)
        self._go_on(at)
        return member

    def _data_member(
        self, header: Header, block: bytes, pax: Mapping[bytes, bytes]
    ) -> Member | None:
        """A file; None for other members that have data."""
        name, kind, size, _ = header
        at, where, problem = self.at + BLOCK, None, ""
        if pax or self._said.name:
            name = self._said.name or pax.get(_SPARSE + b"name") or pax.get(b"path") or name
            name, size = _tar.text(name), _pax_size(pax.get(b"size"), size)
        if not 0 <= size < MAX_SIZE:
            problem = f"has a size of {size} bytes"
        elif pax or kind == _tar.SPARSE:
            try:
                at, where = self._map(kind, block, pax, size)
            except Corrupt as error:
                problem = error.message
                self._report(_about(name, problem), self.at)
        end, is_file = at + size, _tar.is_file(kind)
        if not 0 <= size < MAX_SIZE:
            self._resume(_about(name, problem))
        elif self._size is not None and end > self._size:
            problem = f"should reach to byte {end} of {self._size}"
            self._skip_cut(_about(name, problem))
        else:
            self._window.ahead = _LOOK_FAR if size < _NEAR else _LOOK
            self._go_on(at + padded(size), name, end if size and is_file else 0)
        return Member(name, None, False, at, size, where, problem) if is_file else None

    def _skip_cut(self, problem: str) -> None:
        """Go on behind a member that reaches beyond the end: a lie in an archive that is whole, else all there is."""
        tail = self._blob.read((self._size or 0) - 2 * BLOCK, 2 * BLOCK)
        if bytes(tail) == 2 * END:
            self._resume(problem)
        else:
            self._report(problem, self.at)
            self.ended = True

    def _is_named(self, name: bytes) -> bool:
        """Whether the name is one that can be shown."""
        length = len(name)
        if length <= MAX_DEPTH or (length <= _MAX_NAME and name.count(b"/") <= MAX_DEPTH):
            return True
        self._report(
            f"left out: a name of {length} bytes, {name.count(b'/')} folders deep", self.at
        )
        return False

    def _map(
        self, kind: int, block: bytes, pax: Mapping[bytes, bytes], size: int
    ) -> tuple[int, Map | None]:
        """Where the stored data of a member begins, and where its parts belong if it is sparse."""
        at = self.at + BLOCK
        if kind != _tar.SPARSE:
            return at, pax_map(
                pax, self._said.pairs, size, lambda length: self._window.read(at, length)
            )
        extensions: list[bytes] = []
        more = is_extended(block, header=True)
        while more and len(extensions) * 21 < MAX_PARTS:
            extensions.append(self._window.read(at, BLOCK))
            if len(extensions[-1]) < BLOCK:
                raise Corrupt("ends inside the map of a sparse file")
            more, at = is_extended(extensions[-1], header=False), at + BLOCK
        if more:
            raise TooLarge(f"a sparse file in more than {MAX_PARTS} parts")
        return at, gnu_map(block, extensions, size)


def _about(name: bytes, problem: str) -> str:
    """What is wrong with the member *name*, for people."""
    return f"{name[:255].decode('utf-8', 'backslashreplace')}: {problem}"


def _pax_size(digits: bytes | None, size: int) -> int:
    """The size that an extended header gives, *size* where it gives none."""
    if not digits:
        return size
    return int(digits) if digits.isdigit() and len(digits) < 20 else -1


def next_header(blob: Blob, at: int, stop: int | None = None) -> int | None:
    """The offset of the first header from *at* on and before *stop*, at a multiple of 512; None where there is none."""
    stride, damaged = _LOOK_FAR, False
    while stop is None or at < stop:
        try:
            window = bytes(blob.read(at, stride))
        except Corrupt:
            if damaged:
                raise
            stride, damaged = BLOCK, True  # up to the very place where a stream is damaged
            continue
        found = _tar.find_header(window)
        if found >= 0:
            return at + found
        if len(window) < stride:
            break
        at += stride
        stride = stride if damaged else min(2 * stride, _STRIDE)
    return None
