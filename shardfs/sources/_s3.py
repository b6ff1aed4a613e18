"""Objects of S3 in the version that was seen: what the driver's own reads can't be told, S3 itself can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardfs.errors import Unreadable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# How versions begin that are ETags, as drivers name these.
_TAG = "ETag:"


def tag_of(fs: AbstractFileSystem, version: str) -> str:
    """The ETag by which a version can be asked for; "" where the driver is another, or the version something else."""
    is_s3 = type(fs).__module__.partition(".")[0] == "s3fs"
    return version.removeprefix(_TAG) if is_s3 and version.startswith(_TAG) else ""


async def read_object(fs: Any, path: str, tag: str, start: int, stop: int) -> bytes:
    """The bytes [start, stop) of an object, by one request (GetObject with If-Match).

    Raises:
        Unreadable: the object has another ETag.
        OSError: as the driver's own methods.
    """
    from s3fs.core import _error_wrapper  # what it does around each of its own requests

    bucket, key, version = fs.split_path(path)
    where = {"Bucket": bucket, "Key": key, **({"VersionId": version} if version else {})}
    wanted = {"IfMatch": tag, "Range": f"bytes={start}-{stop - 1}"}

    async def get() -> bytes:
        answer = await fs._call_s3("get_object", **where, **wanted)
        try:
            content = bytes(await answer["Body"].read())
        finally:
            answer["Body"].close()
        if answer.get("ETag") != tag:  # from what takes no notice of the condition
            raise Unreadable("has another ETag")
        return content

    content: bytes = await _error_wrapper(get, retries=fs.retries)
    return content
