"""Whatever fsspec opens: object stores, SFTP and the like, each by a driver of its own.

The drivers retry on their own. They can't be told which version of a file to read, so that each read is followed by a
look whether the file is still the one that was seen; but for S3, of which we ask for just that version.
"""

from __future__ import annotations

import glob
import posixpath
import re
import threading
from contextlib import contextmanager
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec.asyn import sync

from shardfs.blob import Stored, clip, may_wait
from shardfs.errors import (
    AccessDenied,
    IsAFolder,
    MissingPackage,
    NotAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    Unreadable,
    UsageError,
    WouldBlock,
)
from shardfs.names import expand_braces, only_folder, safe_parts, to_bytes, without_secrets
from shardfs.registry import ARCHIVES, FORMATS
from shardfs.sources._s3 import read_object, tag_of
from shardfs.stores import Entry, RemoteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence

    from fsspec import AbstractFileSystem

    from shardfs.options import Options

# The extra that installs the driver of a scheme.
_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "az"),
    **dict.fromkeys(("sftp", "ssh"), "sftp"),
}
# Where drivers say what changes with the content, best first, and when that was.
_TAGS = ("ETag", "etag", "generation", "md5Hash", "content_md5", "checksum", "versionId")
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created", "time")
# Bytes per second below which a read is given up, as for web servers.
_SLOWEST = 16 << 10
# Bytes that are read by one call at most, since all of them are held.
_PIECE = 8 << 20
_SECOND = 10**9
_LONGEST_WORD = 200


def open_source(source: str, options: Options) -> tuple[FsspecStore, Sequence[str]]:
    """The folder *source*; or the folder of a file, or of files by a glob or brace pattern, and their names."""
    spelled = expand_braces(source)
    fs, first = _file_system(spelled[0], options)
    # With the place of a bucket the driver may have put itself into the path: what it makes of each counts.
    paths = [first, *(str(fs._strip_protocol(other)) for other in spelled[1:])]
    is_pattern = len(paths) > 1 or glob.has_magic(paths[0])
    if not is_pattern and not _is_file(fs, first, options):
        return FsspecStore(fs, first, options), []
    folders = {posixpath.dirname(path) for path in paths}
    store = FsspecStore(fs, only_folder(folders, source), options)
    names = [posixpath.basename(path) for path in paths]
    if any(map(glob.has_magic, names)):
        if options.offline:
            raise Unreadable(f"{store.url}: offline; name the files by braces, or their folder")
        there = [entry.path for entry in store.list() if not entry.is_dir]
        found = [name for name in there if any(fnmatchcase(name, pattern) for pattern in names)]
        if not found:
            raise NotFound(f"{without_secrets(source)}: no such file or folder")
        names = found + [n for n in names if not any(fnmatchcase(name, n) for name in found)]
    return store, names


def _file_system(url: str, options: Options) -> tuple[AbstractFileSystem, str]:
    scheme = url.partition("://")[0]
    limits: dict[str, Any] = {}
    if _EXTRAS.get(scheme) == "s3":
        limits["config_kwargs"] = {
            "connect_timeout": min(options.timeout, 10),
            "read_timeout": options.timeout,
            "retries": {"max_attempts": 1 + options.retries},
        }
    try:
        # One of our own, which keeps no listings: these are kept around it.
        fs, path = fsspec.url_to_fs(
            url, skip_instance_cache=True, use_listings_cache=False, **limits
        )
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        package = (
            f"'shardfs[{extra}]'" if extra else error.name or f"what fsspec needs for {scheme}"
        )
        cure = f"pip install {package}"
        raise MissingPackage(f"{scheme}:// needs a driver: {cure}") from error
    except ValueError:
        raise UsageError(f"{without_secrets(url)}: shardfs reads no {scheme}:// sources") from None
    return fs, str(path).rstrip("/")


def _is_file(fs: AbstractFileSystem, path: str, options: Options) -> bool:
    if options.offline:  # there is nobody to ask
        suffixes = tuple(suffix for row in (*FORMATS, *ARCHIVES) for suffix in row.suffixes)
        return path.lower().endswith(suffixes)
    return bool(FsspecStore(fs, path, options).info("")["type"] == "file")


class FsspecStore(RemoteStore):
    """A folder of a file system of fsspec."""

    # Bytes: as for web servers.
    least = 256 << 10
    complete = True

    def __init__(self, fs: AbstractFileSystem, root: str, options: Options) -> None:
        self._fs, self._root, self._timeout = fs, root, options.timeout
        self.url = without_secrets(str(fs.unstrip_protocol(root))).rstrip("/")
        self._seen: dict[str, str] = {}
        self._closed = threading.Event()
        self.requests = self.bytes = 0

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        place = self._place(prefix)
        found = self._call(prefix, "ls", place, detail=True)
        names = {str(item["name"]).strip("/"): item for item in found}
        itself = names.pop(place.strip("/"), None)
        if itself is not None and itself["type"] == "file" and not names:
            raise NotAFolder(f"{self.url}/{prefix}")
        cut = len(self._root.strip("/")) + 1 if self._root.strip("/") else 0
        entries = [_entry(name[cut:], item) for name, item in names.items()]
        return sorted(entries, key=lambda entry: to_bytes(entry.path))

    def stat(self, path: str, /) -> Entry:
        return _entry(path, self.info(path))

    def open(self, path: str, /) -> FsspecBlob:
        entry = self.stat(path)
        if entry.is_dir:
            raise IsAFolder(path)
        return self.blob(entry)

    def blob(self, entry: Entry, /) -> FsspecBlob:
        """The file *entry*, in the version that was seen."""
        return FsspecBlob(self, entry)

    def counts(self) -> Mapping[str, int]:
        return {"requests": self.requests, "bytes": self.bytes}

    def close(self) -> None:
        self._closed.set()

    # --- for blobs ---

    def info(self, path: str) -> Mapping[str, Any]:
        """What the driver says of a file or folder."""
        info: Mapping[str, Any] = self._call(path, "info", self._place(path))
        return info

    def fetch(self, entry: Entry, start: int, stop: int) -> bytes:
        """A part of a file. Raises Unreadable where that is not the version of *entry*."""
        place, tag = self._place(entry.path), tag_of(self._fs, entry.version)
        length = stop - start
        if tag:
            try:
                data = self._call(
                    entry.path, read_object, self._fs, place, tag, start, stop, length=length
                )
            except Unreadable:
                self._check(entry)  # which may be why
                raise
        else:
            data = self._call(entry.path, "cat_file", place, start=start, end=stop, length=length)
            self._check(entry)
        if len(data) != length:
            raise Unreadable(self._changed(entry))
        self.bytes += length
        return bytes(data)

    def _check(self, entry: Entry) -> None:
        """Raise Unreadable where a file is not in the version of *entry* any more."""
        info = self.info(entry.path)
        version = _version(info)
        # Not every driver says the same of a file by itself as in a listing.
        pinned = self._seen.setdefault(entry.path, version)
        kinds = {entry.version.partition(":")[0], version.partition(":")[0]}
        is_other = version != pinned or (len(kinds) == 1 and version != entry.version)
        if is_other or info.get("size") != entry.size:
            raise Unreadable(self._changed(entry))

    def _changed(self, entry: Entry) -> str:
        return f"{self.url}/{entry.path}: has changed since it was mounted"

    # --- calls ---

    def _place(self, path: str) -> str:
        if safe_parts(path) is None:
            raise OutsideSource(f"{path!r} leads outside of the source")
        return f"{self._root}/{path}".rstrip("/")

    def _call(
        self,
        path: str,
        method: str | Callable[..., Awaitable[Any]],
        *args: Any,
        length: int = 0,
        **named: Any,
    ) -> Any:
        """What the driver answers to a call of its or ours, within limits of time where it can be limited."""
        if not may_wait():
            raise WouldBlock
        if self._closed.is_set():
            raise Unreadable(f"{self.url}/{path}: the source was closed")
        self.requests += 1
        fs = self._fs
        with _named(f"{self.url}/{path}".rstrip("/")):
            if isinstance(method, str):
                if not fs.async_impl:
                    return getattr(fs, method)(*args, **named)
                method = getattr(fs, f"_{method}")
            limit = self._timeout + length / _SLOWEST
            return sync(fs.loop, method, *args, timeout=limit, **named)


class FsspecBlob(Stored):
    """A file of a file system of fsspec."""

    __slots__ = ("_entry", "_store")

    def __init__(self, store: FsspecStore, entry: Entry) -> None:
        self._store, self._entry = store, entry

    def size(self) -> int:
        return self._entry.size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._entry.size)
        if start == stop:
            return memoryview(b"")
        return memoryview(b"".join(self.stream(start, stop - start)))

    def stream(self, offset: int, length: int, /) -> Generator[bytes, None, None]:
        """The bytes of a range, in a few pieces."""
        for start in range(offset, offset + length, _PIECE):
            yield self._store.fetch(self._entry, start, min(start + _PIECE, offset + length))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Failures of drivers as ours."""
    try:
        yield
    except ShardfsError:
        raise
    except FileNotFoundError:
        raise NotFound(f"{name}: no such file or folder") from None
    except NotADirectoryError:
        raise NotAFolder(name) from None
    except IsADirectoryError:
        raise IsAFolder(name) from None
    except PermissionError as error:
        raise AccessDenied(f"{name}: access denied: {_words(error)}") from None
    except Exception as error:  # noqa: BLE001 - each driver has failures of its own
        raise Unreadable(f"{name}: {_words(error)}") from None


# Failures of a driver that were not meant for anybody.
_SLIPS = (TypeError, AttributeError, LookupError, AssertionError, NotImplementedError)


def _words(error: Exception) -> str:
    """What an error says, without what may sign a URL."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    kind = type(error)
    if isinstance(error, _SLIPS):
        return f"its driver failed ({kind.__name__})"
    text = re.sub(r"\?\S*", "", re.sub(r"//[^/\s]*@", "//", " ".join(str(error).split())))
    return text[:_LONGEST_WORD] or f"its driver failed ({kind.__name__})"


def _entry(path: str, info: Mapping[str, Any]) -> Entry:
    if info["type"] == "directory":
        return Entry(path, 0, 0, "", is_dir=True)
    mtime_ns = _time_ns(info) // _SECOND * _SECOND  # object stores tell less of a file by itself
    return Entry(path, int(info.get("size") or 0), mtime_ns, _version(info))


def _version(info: Mapping[str, Any]) -> str:
    """What changes when the content does, and what that is; "" where the driver tells nothing of the kind."""
    for key in _TAGS:
        if info.get(key):
            return f"{key}:{info[key]}"
    when = _time_ns(info)
    return f"mtime:{when:x}-{info.get('size', 0):x}" if when else ""


def _time_ns(info: Mapping[str, Any]) -> int:
    """When a file was changed, in nanoseconds since 1970; 0 where the driver does not tell."""
    value = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return 0
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        value = aware.timestamp()
    # To the microsecond: the same drivers tell it as a number here and as a date there.
    return round(value * 10**6) * 1000 if isinstance(value, (int, float)) else 0
