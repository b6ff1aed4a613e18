"""The tree as a FUSE file system: unpack a request, ask the tree, pack the answer.

Handlers run on the event loop and never block it: each first asks the tree for what needs no waiting, and only if
there is some (a disk, a network, a decompression) asks again in a thread. One guard on every handler turns failures
into errno values, since pyfuse3 ends the mount on any other exception.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import stat
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyfuse3
import trio

from shardfs.blob import Blob, no_wait, read_into
from shardfs.errors import NotFound, ShardfsError, Unexpected, WouldBlock
from shardfs.names import from_bytes, to_bytes
from shardfs.tree.inodes import Ino
from shardfs.tree.nodes import Attr, Type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pyfuse3 import FileHandleT, FileNameT, InodeT, ReaddirToken, RequestContext

    from shardfs.fuse.loop import FastLoop
    from shardfs.options import MountOptions
    from shardfs.tree.nodes import Listed
    from shardfs.tree.tree import Tree

log = logging.getLogger("shardfs")

T = TypeVar("T")
Handler = TypeVar("Handler", bound="Callable[..., Awaitable[Any]]")

# Bytes that the kernel asks for at most, as libfuse arranges it with it.
_LARGEST_READ = 1 << 20
# The unit of st_blocks, by POSIX.
_BLOCK = 512
# How long the kernel may believe what changes under a mount (statistics), in seconds.
_VOLATILE_TTL = 0


def guarded(handler: Handler) -> Handler:
    """Answer EIO, and say it in the log, where a handler fails in a way that nobody thought of."""

    @functools.wraps(handler)
    async def safe(self: Operations, *args: Any) -> Any:
        self.tree.served.requests += 1
        try:
            return await handler(self, *args)
        except pyfuse3.FUSEError:
            raise
        except ShardfsError as error:
            self.tree.note(error)
            raise pyfuse3.FUSEError(error.errno) from error
        except Exception as error:
            log.debug("%s failed", handler.__name__, exc_info=True)
            what = f"{handler.__name__}: {type(error).__name__}: {error} (please report this)"
            self.tree.note(Unexpected(what).at(*getattr(error, "places", ())))
            raise pyfuse3.FUSEError(errno.EIO) from error

    return cast("Handler", safe)


class Listing:
    """An open folder: the entries that were read ahead, and where the next ones begin."""

    __slots__ = ("cookie", "entries", "ino", "position")

    def __init__(self, ino: Ino) -> None:
        self.ino, self.cookie, self.position = ino, 0, 0
        self.entries: Sequence[Listed] = ()

    def seek(self, cookie: int) -> None:
        if cookie != self.cookie:
            self.cookie, self.position, self.entries = cookie, 0, ()


class Operations(pyfuse3.Operations):
    """The handlers of FUSE requests."""

    supports_dot_lookup = False
    enable_writeback_cache = False

    def __init__(self, tree: Tree, settings: MountOptions, loop: FastLoop) -> None:
        super().__init__()
        self.tree, self._settings, self._loop = tree, settings, loop
        self._limiter = trio.CapacityLimiter(settings.max_threads)
        self._handles: dict[int, Blob | Listing] = {}
        self._next = 0
        self._buffer = memoryview(bytearray(_LARGEST_READ))
        self._uid = os.getuid() if settings.uid is None else settings.uid
        self._gid = os.getgid() if settings.gid is None else settings.gid
        mask = ~settings.umask
        self._modes = {
            Type.FOLDER: stat.S_IFDIR | settings.dir_mode & mask,
            Type.FILE: stat.S_IFREG | settings.file_mode & mask,
            Type.LINK: stat.S_IFLNK | 0o777,
        }

    # --- names and attributes ---

    @guarded
    async def lookup(
        self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext
    ) -> pyfuse3.EntryAttributes:
        try:
            return self._entry(await self._ask(self.tree.lookup, parent_inode, from_bytes(name)))
        except NotFound:
            return self._absent()

    @guarded
    async def getattr(
        self, inode: InodeT, ctx: RequestContext | None = None
    ) -> pyfuse3.EntryAttributes:
        return self._entry(await self._ask(self.tree.attr, inode))

    @guarded
    async def readlink(self, inode: InodeT, ctx: RequestContext) -> FileNameT:
        return to_bytes(await self._ask(self.tree.readlink, inode))

    async def forget(self, inode_list: Sequence[tuple[InodeT, int]]) -> None:
        """Nothing is kept per inode."""

    # --- folders ---

    @guarded
    async def opendir(self, inode: InodeT, ctx: RequestContext) -> FileHandleT:
        listing = Listing(Ino(inode))
        # An unreadable folder must say so here: programs often overlook an error in the middle of a listing.
        listing.entries = await self._ask(self.tree.scan, inode, 0)
        return self._handle(listing)

    @guarded
    async def readdir(self, fh: FileHandleT, start_id: int, token: ReaddirToken) -> None:
        listing = cast("Listing", self._handles[fh])
        listing.seek(start_id)
        while True:
            if listing.position == len(listing.entries):
                listing.entries = await self._ask(self.tree.scan, listing.ino, listing.cookie)
                listing.position = 0
                if not listing.entries:
                    return
            for cookie, name, attr in listing.entries[listing.position :]:
                if not pyfuse3.readdir_reply(token, to_bytes(name), self._entry(attr), cookie):
                    return
                listing.position += 1
                listing.cookie = cookie

    @guarded
    async def releasedir(self, fh: FileHandleT) -> None:
        del self._handles[fh]

    # --- files ---

    @guarded
    async def open(self, inode: InodeT, flags: int, ctx: RequestContext) -> pyfuse3.FileInfo:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise pyfuse3.FUSEError(errno.EROFS)
        handle = self._handle(await self._ask(self.tree.open, inode))
        volatile = self.tree.is_volatile(Ino(inode))
        return pyfuse3.FileInfo(fh=handle, keep_cache=not volatile, direct_io=volatile)

    @guarded
    async def read(self, fh: FileHandleT, off: int, size: int) -> bytes:
        # pyfuse3 takes any buffer and hands it to the kernel as it is, before the next request is looked at: one
        # buffer does for all reads of bytes that are at hand.
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        blob, target = cast("Blob", self._handles[fh]), self._buffer[:size]
        try:
            with no_wait():
                found = cast("bytes", read_into(blob, off, target))
        except WouldBlock:
            found = cast("bytes", await self._wait_for(blob.read, off, size))
        self.tree.served.bytes_read += len(found)
        return found

    @guarded
    async def release(self, fh: FileHandleT) -> None:
        del self._handles[fh]

    # --- the file system ---

    @guarded
    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        data = pyfuse3.StatvfsData()
        data.f_bsize = data.f_frsize = _BLOCK
        # Full to the last block: nothing can be written. At least one, for `df` hides what has none.
        data.f_blocks = max(-(-self.tree.total_size() // _BLOCK), 1)
        data.f_namemax = 255
        return data

    # After ENOSYS the kernel does not ask again in the mount's life: `ls -l` would otherwise ask for attributes three
    # times a file, and every close would wait for a flush.

    async def flush(self, fh: FileHandleT) -> None:
        raise pyfuse3.FUSEError(errno.ENOSYS)

    async def getxattr(self, inode: InodeT, name: FileNameT, ctx: RequestContext) -> bytes:
        raise pyfuse3.FUSEError(errno.ENOSYS)

    async def listxattr(self, inode: InodeT, ctx: RequestContext) -> Sequence[FileNameT]:
        raise pyfuse3.FUSEError(errno.ENOSYS)

    # --- helpers ---

    async def _ask(self, call: Callable[..., T], *args: Any) -> T:
        """The answer of *call*: here and now if it costs no waiting, else from a thread."""
        try:
            with no_wait():
                return call(*args)
        except WouldBlock:
            return await self._wait_for(call, *args)

    async def _wait_for(self, call: Callable[..., T], *args: Any) -> T:
        """The answer of *call* from a thread."""
        self._loop.waiting += 1
        try:
            return await trio.to_thread.run_sync(
                functools.partial(call, *args), limiter=self._limiter, abandon_on_cancel=True
            )
        finally:
            self._loop.waiting -= 1

    def _handle(self, what: Blob | Listing) -> FileHandleT:
        self._next += 1
        self._handles[self._next] = what
        return self._next

    def _entry(self, attr: Attr) -> pyfuse3.EntryAttributes:
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = attr.ino
        entry.st_mode = self._modes[attr.type]
        entry.st_nlink = 2 if attr.type is Type.FOLDER else 1
        entry.st_uid, entry.st_gid = self._uid, self._gid
        entry.st_size = attr.size
        entry.st_blocks = -(-attr.size // _BLOCK)
        entry.st_mtime_ns = entry.st_ctime_ns = entry.st_atime_ns = attr.mtime_ns
        entry.entry_timeout = self._settings.metadata_ttl
        entry.attr_timeout = _VOLATILE_TTL if attr.volatile else self._settings.metadata_ttl
        return entry

    def _absent(self) -> pyfuse3.EntryAttributes:
        """An answer that the kernel may remember, unlike ENOENT."""
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = 0
        entry.entry_timeout = self._settings.metadata_ttl
        return entry
