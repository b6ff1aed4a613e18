from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import characters, lists, text, tuples

from shardfs.errors import UsageError
from shardfs.names import (
    distinct,
    escape,
    expand_braces,
    from_bytes,
    only_folder,
    safe_parts,
    shorten,
    split_extension,
    to_bytes,
    with_extension,
    without_secrets,
    without_suffix,
)

any_text = text(characters(codec=None), max_size=300)  # lone surrogates included


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a/b", "a%2Fb"),
        ("a\0b", "a%00b"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("", "%"),
        ("...", "..."),
        (".hidden", ".hidden"),
        ("naïve /", "naïve %2F"),
        ("tab\tnewline\n", "tab\tnewline\n"),
    ],
)
def test_escape(name: str, escaped: str) -> None:
    assert escape(name) == escaped


@given(stem=any_text, extension=text("abc", max_size=3).map(lambda s: f".{s}" if s else ""))
def test_names_are_always_legal(stem: str, extension: str) -> None:
    name = to_bytes(with_extension(escape(stem), extension))
    assert 1 <= len(name) <= 255
    assert b"/" not in name
    assert b"\0" not in name
    assert name not in (b".", b"..")
    assert to_bytes(from_bytes(name)) == name


@given(lists(tuples(any_text, text("xyz", max_size=2).map(lambda s: f".{s}" if s else ""))))
def test_distinct_names_are_distinct_and_legal(pairs: list[tuple[str, str]]) -> None:
    names = [to_bytes(name) for name in distinct((escape(s), e) for s, e in pairs)]
    assert len(set(names)) == len(names) == len(pairs)
    assert all(1 <= len(name) <= 255 for name in names)


def test_the_later_of_two_equal_names_is_marked_before_its_extension() -> None:
    pairs = [("a", ".txt"), ("a.txt", ""), ("a", ".txt"), ("b", ""), ("b", "")]
    assert list(distinct(pairs)) == ["a.txt", "a~1.txt", "a~2.txt", "b", "b~1"]


def test_what_is_whole_keeps_an_extension_that_stands_twice() -> None:
    wholes = ["a.jpg.jpg", "1.2.840.1.1", "0.0.0", "a.jpg"]
    assert list(distinct(map(split_extension, wholes))) == wholes


@pytest.mark.parametrize(
    ("stem", "extension", "name"),
    [
        ("photo", ".jpg", "photo.jpg"),
        ("photo.jpg", ".jpg", "photo.jpg"),
        ("PHOTO.JPG", ".jpg", "PHOTO.JPG"),
        (".jpg", ".jpg", ".jpg.jpg"),
        ("%", ".txt", "%.txt"),
        ("%2E", ".txt", "%2E.txt"),
        ("photo.jpeg", ".jpg", "photo.jpeg"),
        ("Photo.JPEG", ".jpg", "Photo.JPEG"),
        ("photo.jpg", ".jpeg", "photo.jpg"),
        ("scan.tiff", ".tif", "scan.tiff"),
        ("page.htm", ".html", "page.htm"),
        ("film.mpeg", ".mpg", "film.mpeg"),
        ("setup.yml", ".yaml", "setup.yml"),
        ("sound.aif", ".aiff", "sound.aif"),
        ("head.nii.gz", ".nii.gz", "head.nii.gz"),
        ("photo.png", ".jpg", "photo.png.jpg"),
        ("photojpeg", ".jpg", "photojpeg.jpg"),
        (".jpeg", ".jpg", ".jpeg.jpg"),
    ],
)
def test_extensions_are_not_given_twice(stem: str, extension: str, name: str) -> None:
    assert with_extension(stem, extension) == name


def test_long_names_are_cut_at_a_character_and_stay_distinct() -> None:
    first, second = shorten("é" * 200 + "1", ".txt"), shorten("é" * 200 + "2", ".txt")
    assert first != second
    for name in (first, second):
        data = to_bytes(name)
        assert 253 <= len(data) <= 255
        data.decode()  # no half character
        assert name.endswith(".txt")
        assert name[-13] == "~"


def test_split_extension() -> None:
    assert split_extension("a.tar.gz") == ("a.tar", ".gz")
    assert split_extension(".hidden") == (".hidden", "")
    assert split_extension("none") == ("none", "")


def test_without_suffix_takes_the_longest_and_leaves_something() -> None:
    assert without_suffix("a.zstd.bin", [".bin", ".zstd.bin"]) == "a"
    assert without_suffix("A.BIN", [".bin"]) == "A"
    assert without_suffix(".bin", [".bin"]) == ".bin"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\0b", ".."])
def test_paths_that_lead_outside_have_no_safe_parts(path: str) -> None:
    assert safe_parts(path) is None


def test_safe_parts_drops_what_says_nothing() -> None:
    assert safe_parts("./a//b/./c") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a-{000..002}.tar", ["a-000.tar", "a-001.tar", "a-002.tar"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{0..6..3}", ["0", "3", "6"]),
        ("{a,b}-{0..1}", ["a-0", "a-1", "b-0", "b-1"]),
        ("{x,{1..2}}", ["x", "1", "2"]),
        ("{,.bak}", ["", ".bak"]),
        ("a{b}c", ["a{b}c"]),
        ("a{b", ["a{b"]),
        ("{{0..1}", ["{0", "{1"]),
        ("plain", ["plain"]),
    ],
)
def test_expand_braces(pattern: str, names: list[str]) -> None:
    assert expand_braces(pattern) == names


@pytest.mark.parametrize("pattern", ["{0..99999999}", "{0..9999}" * 3])
def test_braces_do_not_explode(pattern: str) -> None:
    with pytest.raises(UsageError, match="spells more than"):
        expand_braces(pattern)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("https://me:PW@h/x?Signature=1", "https://h/x"),
        ("zenodo:123/a.zip?token=1", "zenodo:123/a.zip"),
        ("10.5281/zenodo.123?token=1", "10.5281/zenodo.123"),
        ("/data/x-?.tar", "/data/x-?.tar"),
        ("x-?.tar", "x-?.tar"),
    ],
)
def test_sources_are_shown_without_what_is_secret(source: str, shown: str) -> None:
    assert without_secrets(source) == shown


def test_files_in_one_folder() -> None:
    assert only_folder({"a"}, "x") == "a"
    with pytest.raises(UsageError, match=r"^sftp://host/\{a,b\}/x: names files in several folders"):
        only_folder({"a", "b"}, "sftp://user:secret@host/{a,b}/x")
