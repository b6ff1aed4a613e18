from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import read_all
from shardfs.errors import (
    NotFound,
    Unreadable,
)
from tests.unit.sources.records import CHANCE, FILES, MEMBERS, TAR, OpenRecord, mounted, paths
from tests.zenodo_server import DEAD_LINKS, LISTED, MODIFIED_NS, SHAPES, ZenodoServer

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


# --- what a record has ---


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_record_shows_the_same(
    record: ZenodoServer, open_record: OpenRecord, shape: str
) -> None:
    record.shape = shape
    store = open_record()
    assert [entry.path for entry in store.list()] == [
        "d.zip",
        "empty",
        "notes.txt",
        "owner",
        "x.tar",
    ]
    top = store.stat("")
    assert (top.is_dir, top.version, top.mtime_ns) == (True, "123.4", MODIFIED_NS)
    assert len(record.requests) == (2 if shape == LISTED else 1)
    for key, content in FILES.items():
        entry = store.stat(key)
        assert (entry.size, entry.mtime_ns) == (len(content), MODIFIED_NS)
        assert re.fullmatch("md5:[0-9a-f]{32}", entry.version)
        assert bytes(read_all(store.open(key))) == content
    assert sorted(entry.path for entry in store.whole() or ()) == sorted(["", *FILES])


def test_odd_keys_come_back_as_they_were(
    record: ZenodoServer, open_record: OpenRecord, tmp_path: Path
) -> None:
    keys = ["100%.txt", "a#b?c&d.txt", "%2F.txt", "é ü/ñ.txt", "new\nline", "a+b c.txt"]
    record.contents = {key: key.encode() for key in keys}
    for record.shape in SHAPES:
        store = open_record()
        for key in keys:
            assert bytes(read_all(store.open(key))) == key.encode()


def test_everything_in_a_key_is_encoded(record: ZenodoServer, open_record: OpenRecord) -> None:
    record.shape = DEAD_LINKS
    record.contents = {"o/a b+%é#?.zip": b"x"}
    store = open_record()
    url = store.open("o/a b+%é#?.zip")._origin.url
    assert url.endswith("/api/records/123/files/o%2Fa%20b%2B%25%C3%A9%23%3F.zip/content")


def test_keys_that_lead_outside_are_shown_and_can_not_be_read(
    record: ZenodoServer, tmp_path: Path
) -> None:
    deep = "/".join(["d"] * 40)
    record.contents = dict.fromkeys(
        ["x.tar", "../up", "/etc/passwd", "a/../../b", "..", "n\0l", "y" * 2000, deep], TAR
    )
    with mounted(tmp_path) as tree:
        names = [node.name for node in tree.root.children()]
        shown = ["%2E%2E", "..%2Fup", "%2Fetc%2Fpasswd", "a%2F..%2F..%2Fb", "n%00l"]
        assert sorted(names) == sorted(["x", *shown, names[-1], deep.replace("/", "%2F")])
        assert names[-1].startswith("yyy")
        for name in names[1:]:
            with pytest.raises(Unreadable, match="its name can't be that of a file"):
                (tree.root / name).read()
        assert bytes((tree.root / "x/a/a.txt").read()) == b"first"


def test_two_of_one_name_have_two(record: ZenodoServer, open_record: OpenRecord) -> None:
    record.contents = {"a.txt/b": b"in", "a.txt": b"file", "./c": b"1", "c": b"2", "c//d": b"3"}
    store = open_record()
    assert [(e.path, e.is_dir) for e in store.list()] == [
        ("a.txt", True),
        ("a~1.txt", False),
        ("c", True),
        ("c~1", False),
        ("c~2", False),
    ]
    assert bytes(read_all(store.open("a~1.txt"))) == b"file"
    assert bytes(read_all(store.open("c~2"))) == b"2"
    assert bytes(read_all(store.open("c/d"))) == b"3"


def test_a_file_without_a_size_is_shown_and_can_not_be_read(
    record: ZenodoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = record.entries()
    for entry, size in zip(entries, (-1, True, "5", 1 << 70, None), strict=True):
        entry["size"] = size
    monkeypatch.setattr(record, "entries", lambda: [*entries, record.entry("good", b"x")])
    record.contents["good"] = b"x"
    with mounted(tmp_path) as tree:
        assert len(list(tree.root.children())) == 6
        assert bytes((tree.root / "good").read()) == b"x"
        with pytest.raises(Unreadable, match=r"notes\.txt: its record does not say how long it is"):
            (tree.root / "notes.txt").read()


def test_a_part_of_a_record(record: ZenodoServer, tmp_path: Path) -> None:
    with mounted(tmp_path, "zenodo:123/x.tar") as tree:
        assert [node.name for node in tree.root.children()] == ["x"]
    for source in ("zenodo:123/owner/name-v1.zip", "zenodo:123/owner/*.zip"):
        with mounted(tmp_path, source) as tree:
            assert bytes((tree.root / "a.txt").read()) == b"first"
    with mounted(tmp_path, "zenodo:123/owner") as tree:
        assert [node.name for node in tree.root.children()] == ["name-v1"]
    for source in ("zenodo:123/none.zip", "zenodo:123/none/x.zip"):
        with pytest.raises(NotFound, match=r"records/123/none.*there is no such f"):
            mounted(tmp_path, source)


# --- what it costs ---


def test_a_mount_and_a_long_listing_are_one_request(record: ZenodoServer, tmp_path: Path) -> None:
    for _ in range(2):
        record.forget()
        with mounted(tmp_path) as tree:
            shown = {node.name: node.attr.size for node in tree.root.children()}
            assert set(shown) == {"d", "empty", "notes.txt", "owner", "x"}
            assert shown["notes.txt"] == 8
            assert {node.mtime_ns for node in tree.root.children()} == {MODIFIED_NS}
            list((tree.root / "owner").children())
        assert paths(record) == ["/123"]


def test_a_member_of_a_zip_is_two_requests_and_nothing_again(
    record: ZenodoServer, tmp_path: Path
) -> None:
    for mount in range(2):
        with mounted(tmp_path) as tree:
            record.forget()
            assert len(list((tree.root / "d/d").children())) == len(MEMBERS)
            assert len(record.requests) == (0 if mount else 1)
            for name in ("d/007.bin", "d/008.bin"):
                assert bytes((tree.root / "d" / name).read()) == MEMBERS[name]
            record.settle()
            assert len(record.requests) == (0 if mount else 2)


def test_reading_on_and_on_takes_few_requests(record: ZenodoServer, tmp_path: Path) -> None:
    content = CHANCE.randbytes(48 * MIB)
    record.contents = {"big.bin": content, "x.tar": TAR}
    with mounted(tmp_path) as tree:
        file = tree.root / "big.bin"
        for at in range(0, len(content), MIB):
            assert bytes(file.read(at, MIB)) == content[at : at + MIB]
        record.settle()
    assert record.sent() < len(content) + MIB
    assert len(record.requests) <= 1 + 12


def test_it_never_asks_for_what_is_not_a_record_or_a_part_of_a_file(
    record: ZenodoServer, tmp_path: Path
) -> None:
    with mounted(tmp_path) as tree:
        for path in ("x/a/a.txt", "d/d/003.bin", "notes.txt"):
            (tree.root / path).read()
    kinds = {(path.partition("/files")[0], bool(r.range)) for path, r in _pairs(record)}
    assert kinds == {("/123", False), ("/123", True)}
    assert [path for path, r in _pairs(record) if not r.range] == ["/123"]
    assert all(str(r.headers["User-Agent"]).startswith("shardfs/") for r in record.requests)


def _pairs(record: ZenodoServer) -> list[tuple[str, Any]]:
    return list(zip(paths(record), record.requests, strict=True))


# --- versions ---


def test_a_redirect_to_the_newest_version_is_followed_once(
    record: ZenodoServer, open_record: OpenRecord
) -> None:
    record.answers["/api/records/122"] = (301, {"Location": "/api/records/123"})
    store = open_record("zenodo:122")
    assert (store.url, store.stat("").version) == (f"{record.url}/records/122", "123.4")
    assert bytes(read_all(store.open("x.tar"))) == TAR
    assert paths(record) == ["/122", "/123", "/123/files/x.tar/content"]


def test_an_id_of_all_versions_that_is_not_there_is_searched_for(
    record: ZenodoServer, open_record: OpenRecord
) -> None:
    assert open_record("10.5281/zenodo.122").stat("").version == "123.4"
    assert paths(record) == ["/122", "", "/123"]
    assert record.requests[1].query == "q=conceptrecid:122"
    record.has_search = False
    record.forget()
    with pytest.raises(NotFound, match=r"records/122: not there: .* HTTP 404"):
        open_record("zenodo:122").list()
    assert paths(record) == ["/122", ""]


@pytest.mark.parametrize(
    ("is_asked", "wanted"),
    [
        (True, ["/123/versions/latest"]),
        (False, ["/123/versions/latest", "/123", "", "/123"]),
    ],
)
def test_the_latest_version(
    record: ZenodoServer, open_record: OpenRecord, is_asked: bool, wanted: list[str]
) -> None:
    if not is_asked:
        record.answers["/api/records/123/versions/latest"] = (404, {})
    store = open_record("https://zenodo.org/records/123/latest")
    assert store.stat("").version == "123.4"
    assert paths(record) == wanted


def test_a_mount_stays_with_the_version_that_it_has_seen(
    record: ZenodoServer, open_record: OpenRecord
) -> None:
    record.answers["/api/records/122"] = (301, {"Location": "/api/records/123"})
    store = open_record("zenodo:122")
    assert store.list()
    record.answers["/api/records/122"] = (301, {"Location": "/api/records/124"})
    assert bytes(read_all(store.open("x.tar"))) == TAR
    assert store.stat("").version == "123.4"
    assert paths(record)[-1] == "/123/files/x.tar/content"


def test_files_that_were_mended_are_new_in_the_next_mount(
    record: ZenodoServer, tmp_path: Path
) -> None:
    for content in (b"first", b"other"):
        record.contents = {"a.txt": content, "x.tar": TAR}
        with mounted(tmp_path) as tree:
            assert bytes((tree.root / "a.txt").read()) == content
        record.revision += 1


def test_other_content_than_the_record_tells_is_an_error(
    record: ZenodoServer, open_record: OpenRecord
) -> None:
    store = open_record()
    blob = store.open("x.tar")
    for other in (TAR[:-1], bytes(len(TAR))):
        record.contents["x.tar"] = other
        with pytest.raises(Unreadable, match=r"x\.tar: has changed since it was mounted"):
            blob.read(0, 100)


@pytest.mark.parametrize(
    ("tag", "is_good"),
    [
        ("", True),
        ('"another kind of tag"', True),
        ('"0123456789abcdef0123456789abcdef-5"', True),
        ('"md5:{digest}"', True),
        ("{digest}", True),
        ('W/"{DIGEST}"', True),
        ('"md5:0123456789abcdef0123456789abcdef"', False),
        ('"0123456789ABCDEF0123456789ABCDEF"', False),
    ],
)
def test_a_tag_that_is_a_checksum_must_be_the_right_one(
    record: ZenodoServer,
    open_record: OpenRecord,
    monkeypatch: pytest.MonkeyPatch,
    tag: str,
    is_good: bool,
) -> None:
    digest = record.entry("x.tar", TAR)["checksum"].removeprefix("md5:")
    tag = tag.replace("{digest}", digest).replace("{DIGEST}", digest.upper())
    monkeypatch.setattr(record, "validators", lambda _: {"ETag": tag} if tag else {})
    blob = open_record().open("x.tar")
    if is_good:
        assert bytes(blob.read(5, 100)) == TAR[5:105]
    else:
        with pytest.raises(Unreadable, match="has changed since it was mounted"):
            blob.read(5, 100)
    assert "If-Range" not in record.requests[-1].headers


def test_files_of_the_same_content_without_a_known_checksum_are_kept_by_their_record(
    record: ZenodoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = record.entries()
    for entry, checksum in zip(entries, ("sha256:abc", None, 5, "\ud800", "md5:xyz"), strict=True):
        entry["checksum"] = checksum
    monkeypatch.setattr(record, "entries", lambda: entries)
    for mount in range(2):
        record.forget()
        with mounted(tmp_path) as tree:
            assert bytes((tree.root / "notes.txt").read()) == b"no shard"
        assert len(record.requests) == (1 if mount else 2)


def test_offline_shows_what_was_read(record: ZenodoServer, tmp_path: Path) -> None:
    with mounted(tmp_path) as tree:
        (tree.root / "x/a/a.txt").read()
    record.forget()
    with mounted(tmp_path, offline=True) as tree:
        assert len(list(tree.root.children())) == 5
        assert bytes((tree.root / "x/b/b.txt").read()) == b"second"
        with pytest.raises(Unreadable, match="offline"):
            (tree.root / "d/d/000.bin").read()
    with pytest.raises(Unreadable, match="offline, and never seen before"):
        mounted(tmp_path, "zenodo:124", offline=True)
    assert not record.requests
