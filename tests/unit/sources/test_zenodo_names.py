from __future__ import annotations

import pytest

from shardfs.errors import (
    OutsideSource,
    ShardfsError,
    UsageError,
)
from shardfs.options import Options
from shardfs.registry import source_row
from shardfs.sources import zenodo

SITE, SANDBOX = "https://zenodo.org/records", "https://sandbox.zenodo.org/records"
SOURCES = [
    ("zenodo:123", f"{SITE}/123", []),
    ("ZENODO:123/", f"{SITE}/123", []),
    ("zenodo://123/x.tar", f"{SITE}/123", ["x.tar"]),
    ("zenodo:123/x.tar", f"{SITE}/123", ["x.tar"]),
    ("zenodo:123/a b/c/é.zip", f"{SITE}/123/a b/c", ["é.zip"]),
    ("zenodo:123/a#b%3F%25.zip", f"{SITE}/123", ["a#b?%.zip"]),
    ("zenodo:123/d/x-{0..1}.tar", f"{SITE}/123/d", ["x-0.tar", "x-1.tar"]),
    ("zenodo:123/*.zip", f"{SITE}/123", ["*.zip"]),
    ("zenodo:123?token=SECRET", f"{SITE}/123", []),
    ("https://zenodo.org/records/123", f"{SITE}/123", []),
    ("http://www.zenodo.org/records/123/", f"{SITE}/123", []),
    ("HTTPS://Zenodo.org/record/123#.XYZ", f"{SITE}/123", []),
    ("https://zenodo.org/records/123?preview=1&token=SECRET", f"{SITE}/123", []),
    ("https://zenodo.org/records/123/latest", f"{SITE}/123/latest", []),
    ("https://zenodo.org/records/123/files/x.tar?download=1", f"{SITE}/123", ["x.tar"]),
    ("https://zenodo.org/records/123/files/o/n-v1.zip", f"{SITE}/123/o", ["n-v1.zip"]),
    ("https://zenodo.org/record/123/files/a%20b%2Fc.zip", f"{SITE}/123/a b", ["c.zip"]),
    ("https://zenodo.org/api/records/123", f"{SITE}/123", []),
    ("https://zenodo.org/api/records/123/files/x.tar/content", f"{SITE}/123", ["x.tar"]),
    ("https://zenodo.org/doi/10.5281/zenodo.123", f"{SITE}/123", []),
    ("https://doi.org/10.5281/zenodo.123", f"{SITE}/123", []),
    ("http://dx.doi.org/10.5281/ZENODO.123", f"{SITE}/123", []),
    ("doi:10.5281/zenodo.123", f"{SITE}/123", []),
    ("10.5281/zenodo.123", f"{SITE}/123", []),
    ("10.5072/zenodo.123", f"{SANDBOX}/123", []),
    ("https://doi.org/10.5072/zenodo.123", f"{SANDBOX}/123", []),
    ("https://sandbox.zenodo.org/records/123/files/x.tar", f"{SANDBOX}/123", ["x.tar"]),
]


@pytest.mark.parametrize(("source", "url", "names"), SOURCES)
@pytest.mark.usefixtures("plain_environment")
def test_records_by_all_their_names(source: str, url: str, names: list[str]) -> None:
    assert source_row(source).name == "zenodo"
    store, found = zenodo.open_source(source, Options())
    store.close()
    assert (store.url, found) == (url, names)


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("zenodo:", UsageError, "zenodo:: no record of Zenodo; expected zenodo:RECORD"),
        ("zenodo:abc", UsageError, "no record of Zenodo"),
        ("zenodo:-1", UsageError, "no record of Zenodo"),
        ("zenodo:" + "1" * 19, UsageError, "no record of Zenodo"),
        ("zenodo:abc?token=SECRET", UsageError, "zenodo:abc: no record"),
        ("https://zenodo.org/communities/x", UsageError, "no record of Zenodo"),
        ("https://zenodo.org/records/12x?token=SECRET", UsageError, "records/12x: no record"),
        ("https://zenodo.org", UsageError, "no record of Zenodo"),
        ("10.5281/zenodo.", UsageError, "no record of Zenodo"),
        ("zenodo:1/../2", OutsideSource, "leads outside of the record"),
        ("zenodo:1/%2e%2e/2", OutsideSource, "leads outside of the record"),
        ("zenodo:1//etc/passwd", OutsideSource, "leads outside of the record"),
        ("zenodo:1/{a,b/c}.zip", UsageError, "names files in several folders"),
    ],
)
@pytest.mark.usefixtures("plain_environment")
def test_what_names_no_record(source: str, kind: type[ShardfsError], words: str) -> None:
    assert source_row(source).name == "zenodo"
    with pytest.raises(kind) as caught:
        zenodo.open_source(source, Options())
    assert words in str(caught.value)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "row"),
    [
        ("/data/zenodo:1", "local"),
        ("zenodo.tar", "local"),
        ("10.1234/zenodo.5", "local"),
        ("https://zenodo.org.example.org/records/1", "http"),
        ("https://example.org/zenodo.org/records/1", "http"),
        ("https://user@zenodo.org/records/1", "http"),
        ("https://doi.org/10.1234/5", "http"),
    ],
)
def test_what_only_looks_like_a_record(source: str, row: str) -> None:
    assert source_row(source).name == row


@pytest.mark.parametrize(
    ("name", "value"), [("SHARDFS_ZENODO_URL", "file:///etc"), ("ZENODO_TOKEN", "SECRET\r\nX: y")]
)
@pytest.mark.usefixtures("plain_environment")
def test_nonsense_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=name) as caught:
        zenodo.open_source("zenodo:123", Options())
    assert "SECRET" not in str(caught.value)
