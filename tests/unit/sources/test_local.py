from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import NotFound, OutsideSource, Unreadable, UsageError
from shardfs.names import from_bytes
from shardfs.options import Options
from shardfs.sources.local import LocalStore, open_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_bytes(b"inside")
    (folder / "sub" / "file").write_bytes(b"in sub")
    (tmp_path / "outside").write_bytes(b"secret")
    return folder


def problems(store: LocalStore) -> dict[str, str]:
    return {entry.path: entry.problem for entry in store.list()}


# --- links ---


def test_links_that_stay_inside_are_what_they_lead_to(source: Path) -> None:
    (source / "to-file").symlink_to("sub/file")
    (source / "to-folder").symlink_to(source / "sub")
    (source / "sub" / "up").symlink_to("..")
    store = LocalStore(str(source))
    entries = {entry.path: entry for entry in store.list()}
    assert (entries["to-file"].size, entries["to-file"].problem) == (6, "")
    assert entries["to-folder"].is_dir
    assert bytes(store.open("to-file").read(0, 9)) == b"in sub"
    assert bytes(store.open("to-folder/file").read(0, 9)) == b"in sub"
    assert bytes(store.open("sub/up/file").read(0, 9)) == b"inside"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../outside", "leads outside"),
        ("/etc/passwd", "leads outside"),
        ("none", "No such file"),
        ("loop", "Too many levels|No such file|Symbolic link loop"),
        ("../source-2/file", "leads outside"),
    ],
)
def test_other_links_are_listed_with_what_is_wrong(source: Path, target: str, words: str) -> None:
    neighbour = source.parent / "source-2"  # begins with the same letters
    neighbour.mkdir()
    (neighbour / "file").write_bytes(b"secret")
    (source / "loop").symlink_to(target)
    store = LocalStore(str(source))
    assert set(problems(store)) == {"file", "loop", "sub"}
    assert problems(store)["file"] == ""
    with pytest.raises((OutsideSource, NotFound, Unreadable), match=words):
        store.open("loop")


def test_links_that_lead_outside_are_followed_on_demand(source: Path) -> None:
    (source / "link").symlink_to("../outside")
    store = LocalStore(str(source), follow_links=True)
    assert problems(store)["link"] == ""
    assert bytes(store.open("link").read(0, 9)) == b"secret"
    with pytest.raises(OutsideSource):
        store.open("../outside")


def test_links_may_lead_as_far_as_the_boundary(source: Path) -> None:
    (source / "sub" / "link").symlink_to("../file")
    closed = LocalStore(str(source / "sub"))
    assert "leads outside" in problems(closed)["link"]
    wide = LocalStore(str(source / "sub"), boundary=str(source))
    assert bytes(wide.open("link").read(0, 9)) == b"inside"


def test_a_source_that_is_a_link_itself_is_the_folder_behind_it(source: Path) -> None:
    (source.parent / "link").symlink_to(source)
    store = LocalStore(str(source.parent / "link"))
    assert store.url == f"file://{source}"
    assert bytes(store.open("file").read(0, 9)) == b"inside"


# --- other kinds ---


def test_what_can_not_be_read_like_a_file_is_left_out(source: Path) -> None:
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
        store = LocalStore(str(source))
        assert set(problems(store)) == {"file", "sub"}
        with pytest.raises(Unreadable, match="neither a file nor a folder"):
            store.stat("pipe")


def test_any_bytes_are_a_name(source: Path) -> None:
    names = [from_bytes(b"\xff"), "é", "z"]
    for name in names:
        (source / name).write_bytes(name.encode("utf-8", "surrogateescape"))
    store = LocalStore(str(source))
    assert [entry.path for entry in store.list()] == ["file", "sub", "z", "é", from_bytes(b"\xff")]
    assert bytes(store.open(names[0]).read(0, 9)) == b"\xff"


def test_a_version_changes_with_the_file(source: Path) -> None:
    store = LocalStore(str(source))
    versions = {store.stat("file").version}
    (source / "file").write_bytes(b"longer than it was")
    versions.add(store.stat("file").version)
    os.utime(source / "file", ns=(1, 1))
    versions.add(store.stat("file").version)
    assert len(versions) == 3


# --- what a user may name ---


def named(source: Path, pattern: str) -> tuple[str, Sequence[str]]:
    store, names = open_source(str(source / pattern), Options())
    return store.url, names


def test_a_folder_is_all_of_it(source: Path) -> None:
    assert named(source, "") == (f"file://{source}", [])
    assert open_source(f"file://{source}", Options())[0].url == f"file://{source}"


def test_a_file_is_itself(source: Path) -> None:
    assert named(source, "sub/file") == (f"file://{source}/sub", ["file"])


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("s-{000..002}.tar", ["s-000.tar", "s-001.tar", "s-002.tar"]),
        ("{s-*,t-*}.tar", ["s-000.tar", "s-001.tar", "t-*.tar"]),
        ("s-{001,000}.tar", ["s-001.tar", "s-000.tar"]),
        ("s-*.tar", ["s-000.tar", "s-001.tar"]),
        ("s-00[1-9].tar", ["s-001.tar"]),
        ("{s-000,s-*}.tar", ["s-000.tar", "s-001.tar"]),
        ("odd[1].tar", ["odd[1].tar"]),
    ],
)
def test_patterns_name_files(source: Path, pattern: str, names: list[str]) -> None:
    for name in ("s-000.tar", "s-001.tar", "odd[1].tar", "odd1.tar"):
        (source / name).write_bytes(b"")
    assert named(source, pattern)[1] == names


def test_patterns_name_no_folders(source: Path) -> None:
    assert named(source, "*")[1] == ["file"]


@pytest.mark.parametrize("pattern", ["none", "none-{0..3}", "none*", "file/below"])
def test_what_is_not_there_is_refused(source: Path, pattern: str) -> None:
    with pytest.raises(NotFound, match="no such file or folder"):
        named(source, pattern)


def test_files_in_several_folders_are_no_source(source: Path) -> None:
    with pytest.raises(UsageError, match="several folders"):
        named(source, "{file,sub/file}")


def test_a_file_that_the_user_names_is_followed_wherever_it_leads(source: Path) -> None:
    (source / "link").symlink_to("../outside")
    store, names = open_source(str(source / "link"), Options())
    assert bytes(store.open(names[0]).read(0, 9)) == b"secret"


# --- links in circles ---


def walk(store: LocalStore, most: int = 50) -> dict[str, str]:
    """All paths, with what is wrong with each. Fails where there are too many."""
    found: dict[str, str] = {}
    folders = [""]
    while folders:
        for entry in store.list(folders.pop()):
            found[entry.path] = entry.problem
            assert len(found) <= most, "an endless tree"
            if entry.is_dir:
                folders.append(entry.path)
    return found


LOOP = "leads back to a folder above itself (a loop)"


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("links", "loops"),
    [
        ({"self": "."}, {"self"}),
        ({"sub/up": ".."}, {"sub/up"}),
        ({"sub/up": "../sub"}, {"sub/up"}),
        ({"sub/deep/up": "../.."}, {"sub/deep/up"}),
        ({"a/to-b": "../b", "b/to-a": "../a"}, {"a/to-b/to-a", "b/to-a/to-b"}),
        ({"a/to-b": "../b", "b/top": ".."}, {"a/to-b/top", "b/top"}),
    ],
)
def test_a_link_back_to_a_folder_above_is_a_loop(
    source: Path, links: dict[str, str], loops: set[str], follow: bool
) -> None:
    for link, target in links.items():
        (source / link).parent.mkdir(parents=True, exist_ok=True)
        (source / link).symlink_to(target)
    found = walk(LocalStore(str(source), follow_links=follow))
    assert {path for path, problem in found.items() if problem == LOOP} == loops
    assert {problem for problem in found.values()} == {"", LOOP}
    assert "file" in found
    assert not any(path.startswith(f"{loop}/") for path in found for loop in loops)


def test_a_link_to_above_the_source_ends_when_it_comes_back_to_it(source: Path) -> None:
    (source / "out").symlink_to("..")
    found = walk(LocalStore(str(source), follow_links=True))
    assert found["out/source"] == LOOP
    assert found["out/outside"] == ""
    assert walk(LocalStore(str(source)))["out"] != ""


def test_two_links_to_one_folder_are_no_loop(source: Path) -> None:
    for name in ("one", "two"):
        (source / name).symlink_to("sub")
    found = walk(LocalStore(str(source)))
    assert set(found.values()) == {""}
    assert {"one/file", "two/file", "sub/file"} <= set(found)


def test_links_that_lead_in_a_circle_or_nowhere_say_so(source: Path) -> None:
    for name, target in (("a", "b"), ("b", "a"), ("none", "gone"), ("under", "file/x")):
        (source / name).symlink_to(target)
    said = problems(LocalStore(str(source)))
    assert "loop" in said["a"]
    assert "loop" in said["b"]
    assert said["none"] == said["under"] == "is a link that leads nowhere"
