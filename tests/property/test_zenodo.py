from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis.strategies import (
    DrawFn,
    SearchStrategy,
    binary,
    booleans,
    composite,
    dictionaries,
    floats,
    integers,
    just,
    lists,
    none,
    one_of,
    recursive,
    sampled_from,
    text,
)

from shardfs.errors import ShardfsError
from shardfs.names import from_bytes, safe_parts, to_bytes
from shardfs.sources._zenodo_api import (
    md5_of,
    parse_files,
    parse_newest,
    parse_record,
    placed,
)
from tests.contract.formats import damaged
from tests.zenodo_server import SHAPES, ZenodoServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shardfs.sources._zenodo_api import File

# Text of any kind, half surrogate pairs too, as JSON can hold them.
TEXT = one_of(
    text(max_size=5),
    text(sampled_from("\ud800\udc80\0/.~%é\n"), max_size=6),
    sampled_from(["", "..", "md5:" + "a" * 32, "B" * 32, "2024-01-01"]),
    sampled_from(["0001-01-01T00:00+14:00", "9999-12-31T23:59:59-14:00", "1900-01-01"]),
)
LEAVES = one_of(
    none(), booleans(), integers(), floats(), TEXT, sampled_from([1 << 62, -1, 1 << 60])
)
VALUES: SearchStrategy[Any] = recursive(
    LEAVES,
    lambda inner: one_of(lists(inner, max_size=3), dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
KEYS = lists(
    sampled_from(["a", "b", "a.txt", "a~1", "..", ".", "", "é", "\ud800"]), max_size=4
).map("/".join)


@composite
def objects(draw: DrawFn, fields: Mapping[str, SearchStrategy[Any]]) -> dict[str, Any]:
    """Objects with some of *fields*, right or wrong."""
    return {
        name: draw(one_of(right, right, right, VALUES))
        for name, right in fields.items()
        if draw(integers(0, 9))
    }


FILES = objects(
    {
        "key": KEYS,
        "size": integers(0, 1 << 40),
        "checksum": just("md5:" + "0" * 32),
        "links": objects({"self": TEXT, "content": TEXT}),
    }
)
LISTS = one_of(
    lists(FILES, max_size=6),
    objects({"enabled": booleans(), "entries": one_of(lists(FILES), dictionaries(KEYS, FILES))}),
)
RECORDS = objects(
    {
        "id": integers(1, 10**9),
        "revision": integers(0, 9),
        "conceptrecid": integers(1, 3).map(str),
        "parent": objects({"id": just("1")}),
        "modified": TEXT,
        "metadata": objects({"access_right": TEXT, "embargo_date": TEXT}),
        "access": objects({"status": TEXT, "embargo": objects({"until": TEXT})}),
        "links": objects({"files": TEXT}),
        "files": LISTS,
    }
)


def check(files: Iterable[File], folder: str = "") -> dict[str, File]:
    """What holds for the files of a record, whatever it says."""
    found = placed(files, folder)
    above = {path[:at] for path in found for at, c in enumerate(path) if c == "/"}
    assert not above & found.keys()
    for path, file in found.items():
        assert "/".join(safe_parts(path) or ()) == path == from_bytes(to_bytes(path))
        assert 0 <= file.size < 1 << 62
        assert file.version.isascii()
        assert file.version.isprintable()
        assert md5_of(file.version) in file.version
    return found


@given(one_of(RECORDS, VALUES))
def test_whatever_is_answered_there_is_a_record_or_one_of_our_errors(answer: Any) -> None:
    try:
        record = parse_record(json.dumps(answer).encode())
    except ShardfsError:
        return
    assert record.id.isdigit()
    assert record.revision.partition(".")[0] == record.id
    assert 0 <= record.mtime_ns < 1 << 63
    assert record.denied.isprintable()
    check(record.files or ())
    check(record.files or (), "a")


@given(one_of(LISTS, VALUES))
def test_whatever_is_answered_there_are_files_or_one_of_our_errors(answer: Any) -> None:
    try:
        files = parse_files(json.dumps(answer).encode(), "1")
    except ShardfsError:
        return
    check(files)


@given(one_of(VALUES, objects({"hits": objects({"hits": lists(RECORDS)})})))
def test_whatever_is_answered_there_is_an_id_or_none(answer: Any) -> None:
    found = parse_newest(json.dumps(answer).encode(), "2")
    assert not found or found.isdigit()


@given(binary(max_size=50))
def test_bytes_that_are_no_json(body: bytes) -> None:
    for parse in (parse_record, lambda body: parse_files(body, "1")):
        try:
            parse(body)
        except ShardfsError:
            continue


@pytest.fixture(scope="module")
def bodies() -> list[bytes]:
    with ZenodoServer({"a.zip": b"1", "b/c.zip": b"22"}) as server:
        records = []
        for server.shape in SHAPES:
            records.append(json.dumps(server.described()).encode())
        return records


@given(seed=integers(0), which=integers(0, len(SHAPES) - 1))
def test_a_record_with_other_bytes_in_it(bodies: list[bytes], seed: int, which: int) -> None:
    try:
        record = parse_record(damaged(bodies[which], random.Random(seed)))
    except ShardfsError:
        return
    check(record.files or ())


@given(lists(KEYS, unique=True, max_size=8))
def test_all_keys_have_a_path_and_those_that_are_paths_their_own(keys: list[str]) -> None:
    answer = [{"key": key, "size": number} for number, key in enumerate(keys)]
    files = parse_files(json.dumps(answer).encode(), "1")
    found = check(files)
    assert sorted(file.size for file in found.values()) == list(range(len(keys)))
    for path, file in found.items():
        parts = safe_parts(file.key)
        assert bool(file.problem) == (not parts)
        if parts and "~" not in path:
            assert path == from_bytes(to_bytes("/".join(parts)))
    inside = check(files, "a")
    assert {f"a/{path}" for path in inside if "~" not in path} <= found.keys()
