"""Files that are shorter than their index says: cut short by a full disk or a download that broke off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.errors import ShardfsError
    from shardfs.model import Shard


def whole_or_told(
    opened: Callable[[], Shard],
    blob: Blob,
    size: int | None,
    file: str,
    report: Callable[[ShardfsError], None],
) -> Shard:
    """The shard in *blob*; where that has less than *size* bytes, this is reported or, if it can't be opened, raised.

    Raises:
        ShardfsError: it can't be opened.
    """
    there = blob.size()
    if size is None or there >= size:
        return opened()
    short = f"is {there:,} of {size:,} bytes"
    try:
        shard = opened()
    except Corrupt as error:
        raise Corrupt(short) from error
    report(Corrupt(f"{short}: what lay behind is lost").at(file))
    return shard
