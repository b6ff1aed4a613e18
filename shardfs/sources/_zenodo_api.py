"""What answers of Zenodo's API say. Nothing in one is believed unseen.

The API: https://developers.zenodo.org (records as Zenodo has always described them), and
https://inveniordm.docs.cern.ch/reference/rest_api_index/ (what it has run on since October 2023). Both shapes are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from shardfs.errors import Unreadable
from shardfs.names import escape, from_bytes, safe_parts, split_extension, to_bytes
from shardfs.sources._values import size_of, time_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# An id as numbers and as text; what says who may read the files, and from when on.
_ID = re.compile(r"[0-9]{1,18}")
_WORD = re.compile(r"[a-z-]{1,30}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# `md5:` and the digest; the digest alone in some old records; other algorithms have other names.
_MD5 = re.compile(r"(?:md5:)?([0-9a-f]{32})", re.IGNORECASE)
_CHECKSUM = re.compile(r"[!-~]{1,200}")
# What the API calls files that everybody may read, or a record that is not about files.
_OPEN = ("", "open", "public", "metadata-only")
# Bytes of a key and folders in it that are no mistake: Zenodo itself takes keys of 255 characters.
_LONGEST, _DEEPEST = 1024, 32
# Sizes that are a mistake.
_LARGEST = 1 << 60


class File(NamedTuple):
    """A file of a record.

    Attributes:
        key: what the record calls it; a ``/`` in it makes folders.
        size: bytes.
        version: changes whenever the content does; its checksum, as `md5:` and hex digits.
        link: where the answer says that the content is; "" where it does not.
        problem: why it can't be read, "" where it can.
    """

    key: str
    size: int
    version: str
    link: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One version of a record.

    Attributes:
        id: of this version.
        revision: the id with a count of the changes to it, `123.4`, where the answer has one; else the id.
        concept: the id that stands for all versions, "" where the answer does not say.
        mtime_ns: when it was changed, in nanoseconds since 1970; 0 where the answer does not say.
        denied: why not everybody may read the files, `embargoed until 2030-01-01`; "" where everybody may.
        files: the files, None where another answer lists them.
    """

    id: str
    revision: str
    concept: str
    mtime_ns: int
    denied: str
    files: Sequence[File] | None


def parse_record(body: bytes) -> Record:
    """The record in an answer. Raises Unreadable where there is none."""
    answer = _object(_json(body))
    number = _id(answer.get("id"))
    if not number:
        raise Unreadable("what was answered is no record of Zenodo")
    revision = ".".join(filter(None, (number, _id(answer.get("revision")))))
    links, listed = _object(answer.get("links")), answer.get("files")
    files = _files(listed, revision)
    if files is None and not (isinstance(listed, dict) or isinstance(links.get("files"), str)):
        files = []
    moments = map(time_ns, (answer.get("modified"), answer.get("updated"), answer.get("created")))
    return Record(
        id=number,
        revision=revision,
        concept=_concept(answer),
        mtime_ns=next(filter(None, moments), 0),
        denied=_denied(answer),
        files=files,
    )


def parse_files(body: bytes, revision: str) -> Sequence[File]:
    """The files in an answer that lists those of a record. Raises Unreadable."""
    return _files(_json(body), revision) or []


def parse_newest(body: bytes, concept: str) -> str:
    """The id of the newest version of *concept* that a search has found, "" where it found none. Raises Unreadable."""
    hits = _object(_object(_json(body)).get("hits")).get("hits")
    found = map(_object, hits if isinstance(hits, list) else ())
    ids = [_id(hit.get("id")) for hit in found if _concept(hit) == concept]
    return max(filter(None, ids), key=int, default="")


def placed(files: Iterable[File], folder: str) -> dict[str, File]:
    """The files that lie in *folder* ("": all) by their paths there.

    Of several that have one key the last counts. Where two want one path, or a file the path of a folder, the later, or
    the file, is `name~1.ext`. A key that can't be a path stands for itself at the top.
    """
    lead = f"{folder}/" if folder else ""
    distinct = {file.key: file for file in files}.values()
    wanted = [(path, file) for path, file in map(_named, distinct) if path.startswith(lead)]
    wanted = [(path[len(lead) :], file) for path, file in wanted]
    taken: dict[str, File | None] = dict.fromkeys(
        path[: found.start()] for path, _ in wanted for found in re.finditer("/", path)
    )
    numbers: Counter[str] = Counter()
    for path, file in wanted:
        above, slash, name = path.rpartition("/")
        stem, extension = split_extension(name)
        place = path
        while place in taken:
            numbers[path] += 1
            place = f"{above}{slash}{stem}~{numbers[path]}{extension}"
        taken[place] = file
    return {path: file for path, file in taken.items() if file is not None}


def md5_of(version: str) -> str:
    """The MD5 in hex of a file of that version, "" where the record tells another checksum or none."""
    found = _MD5.fullmatch(version)
    return found[1].lower() if found else ""


def _named(file: File) -> tuple[str, File]:
    """(path, file) by the key of *file*; where that can't be a path, a name for it, and why it can't be read."""
    parts = safe_parts(file.key) if len(to_bytes(file.key)) <= _LONGEST else None
    if parts and len(parts) <= _DEEPEST:
        return from_bytes(to_bytes("/".join(parts))), file
    return escape(file.key)[:_LONGEST], file._replace(problem="its name can't be that of a file")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable("what was answered is no JSON") from None


def _object(value: object) -> Mapping[str, Any]:
    """*value*, or an empty object where it is none."""
    return value if isinstance(value, dict) else {}


def _id(value: object) -> str:
    """An id, which is a number or the digits of one; "" where it is not."""
    is_id = isinstance(value, (int, str)) and not isinstance(value, bool)
    return str(value) if is_id and _ID.fullmatch(str(value)) else ""


def _concept(answer: Mapping[str, Any]) -> str:
    return _id(answer.get("conceptrecid")) or _id(_object(answer.get("parent")).get("id"))


def _denied(answer: Mapping[str, Any]) -> str:
    about, access = _object(answer.get("metadata")), _object(answer.get("access"))
    said = about.get("access_right") or access.get("status") or access.get("files")
    word = said if isinstance(said, str) and _WORD.fullmatch(said) else ""
    day = about.get("embargo_date") or _object(access.get("embargo")).get("until")
    until = f" until {day}" if isinstance(day, str) and _DAY.fullmatch(day) else ""
    return "" if word in _OPEN else word + until * (word == "embargoed")


def _files(listed: object, revision: str) -> list[File] | None:
    """The files in a list, or in an object that has the list or an object of them by their keys; None without one."""
    if isinstance(listed, dict):
        listed = listed.get("entries", [] if listed.get("enabled") is False else None)
    if isinstance(listed, dict):
        listed = [{"key": key, **_object(item)} for key, item in listed.items()]
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise Unreadable("what was answered has no list of files")
    return [_file(_object(item), revision) for item in listed]


def _file(item: Mapping[str, Any], revision: str) -> File:
    key, size, said = item.get("key"), size_of(item.get("size"), _LARGEST), item.get("checksum")
    links = _object(item.get("links"))
    link = links.get("content") or links.get("self")
    checksum = said if isinstance(said, str) and _CHECKSUM.fullmatch(said) else ""
    md5 = md5_of(checksum)
    return File(
        key=key if isinstance(key, str) else "",
        size=size or 0,
        version=f"md5:{md5}" if md5 else checksum or f"record:{revision}",
        link=link if isinstance(link, str) else "",
        problem="its record does not say how long it is" if size is None else "",
    )
