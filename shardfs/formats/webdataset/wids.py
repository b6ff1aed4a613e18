"""The index of a WIDS dataset, `shardindex.json`: tar archives in order, as wids 0.1.11 reads it.

    {"__kind__": "wids-shard-index-v1", "shardlist": [{"url", "nsamples", ...}, ...], "datasets": [{"shardlist"}, ...]}

Its counts are of records whose members stand side by side, so they may differ from ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardfs.formats.shared.jsontext import checked, member, optional, parse_object
from shardfs.names import safe_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INDEX = "shardindex.json"


def listed_paths(text: bytes) -> list[str]:
    """The archives that an index lists, in its order: paths from its folder. Raises Corrupt.

    Of an address elsewhere the last part counts, since archives are copied together with their index.
    """
    index = parse_object(text)
    lists = [
        index,
        *(checked(part, dict, "a dataset") for part in optional(index, "datasets", list) or ()),
    ]
    return list(dict.fromkeys(path for part in lists for path in _paths(part)))


def _paths(part: Mapping[str, Any]) -> Iterator[str]:
    for item in optional(part, "shardlist", list) or ():
        url = member(checked(item, dict, "a shard"), "url", str)
        parts = None if "://" in url else safe_parts(url)
        yield "/".join(parts or [url.rpartition("/")[2]])
