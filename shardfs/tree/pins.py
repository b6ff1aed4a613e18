"""The versions that the files of shards had when they were seen first: later ones are no part of the mount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.errors import Changed, NotFound, ShardfsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.model import ShardRef
    from shardfs.stores import Store, Watch


class Pins:
    """Versions by the numbers of shards; none is kept that an index or listing tells."""

    def __init__(self) -> None:
        self._seen: dict[int, Sequence[str]] = {}

    def pin(self, number: int, ref: ShardRef, store: Store) -> tuple[str, Sequence[Watch]]:
        """The version of a shard's file, "" where it has none; and what tells that its files change.

        Raises:
            Changed: one of them has another version than before.
        """
        first = _version(store, ref.file, ref.version)
        others = [_version(store, path, "") for path in ref.others]
        versions = [first, *others]
        is_told = ref.version and not others
        if not is_told and self._seen.setdefault(number, versions) != versions:
            raise Changed
        files = zip((ref.file, *ref.others), versions, strict=True)
        found = [store.watch(path, version) for path, version in files if version]
        watches = [look for look in found if look is not None]
        for look in watches:  # later looks are short
            look()
        return first, watches


def _version(store: Store, path: str, before: str) -> str:
    """The version of a file, "" where it has none. Raises Changed where it is not that of *before*."""
    if not path:
        return ""
    try:
        version = store.stat(path).version
    except ShardfsError as error:
        if not before:
            return ""  # the dataset knows better what to say
        if isinstance(error, NotFound):
            raise Changed("the file is gone: mount again") from error
        raise
    if before and version != before:
        raise Changed
    return version
