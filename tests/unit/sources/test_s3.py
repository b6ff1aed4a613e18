"""Against a server that speaks as S3 does."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.errors import AccessDenied, NotFound, Unreadable
from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("s3fs")
pytest.importorskip("moto")

SMALL, LARGE = b"small", bytes(range(256)) * 20_000
TAR = archive(member("a.txt", SMALL), member("b.bin", LARGE), member("c.txt", b"last"))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    import boto3

    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "name"),
        ("AWS_SECRET_ACCESS_KEY", "SECRET"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("NO_PROXY", "127.0.0.1"),
    ):
        monkeypatch.setenv(name, value)
    s3 = boto3.resource("s3")
    bucket = s3.Bucket("box")
    bucket.create()
    bucket.objects.delete()
    for path in ("set/x-0.tar", "set/x-1.tar", "set/deep/y.tar"):
        bucket.put_object(Key=path, Body=TAR)
    bucket.put_object(Key="set/README.md", Body=b"read me")
    return bucket


def mounted(source: str, cache: Path, **options: Any) -> Any:
    return closing(open_tree(source, Options(cache_dir=cache, retries=1, **options)))


@pytest.mark.parametrize("source", ["s3://box/set", "s3://box/set/x-*.tar", "s3://box/set/x-0.tar"])
def test_it_is_read_and_kept(bucket: Any, tmp_path: Path, source: str) -> None:
    for offline in (False, True):
        if offline and "*" in source:
            break
        with mounted(source, tmp_path, offline=offline) as tree:
            assert tree.info()["source"] == "s3://box/set"
            assert bytes((tree.root / "x-0/b/b.bin").read()) == LARGE
            assert bytes((tree.root / "x-0/c/c.txt").read()) == b"last"
            assert next(tree.root.children()).mtime_ns > 0


def test_folders_and_files_beside_them(bucket: Any, tmp_path: Path) -> None:
    with mounted("s3://box/set", tmp_path) as tree:
        names = [node.name for node in tree.root.children()]
        assert names == ["x-0", "x-1", "deep", "README.md"]
        assert bytes((tree.root / "README.md").read()) == b"read me"
        assert bytes((tree.root / "deep/y/a/a.txt").read()) == SMALL


def test_a_changed_object_is_an_error(bucket: Any, tmp_path: Path) -> None:
    with mounted("s3://box/set", tmp_path) as tree:
        node = tree.root / "x-1/b/b.bin"
        changed = bytearray(TAR)
        changed[3_000_000] ^= 1
        bucket.put_object(Key="set/x-1.tar", Body=bytes(changed))
        with pytest.raises(Unreadable, match="has changed since it was mounted"):
            node.read(2_900_000, 200_000)


def test_a_read_is_one_request(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    calls: list[str] = []
    call_s3 = s3fs.S3FileSystem._call_s3

    async def count(self: Any, method: str, *args: Any, **named: Any) -> Any:
        calls.append(method)
        return await call_s3(self, method, *args, **named)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", count)
    with mounted("s3://box/set", tmp_path) as tree:
        node = tree.root / "x-1/b/b.bin"
        calls.clear()
        assert bytes(node.read()) == LARGE
        # It is read in pieces of a megabyte or so.
        assert set(calls) == {"get_object"}
        assert len(calls) < 8


@pytest.mark.parametrize("fault", ["no condition", "no range", "cut"])
def test_a_server_that_does_otherwise(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    import s3fs

    call_s3, left = s3fs.S3FileSystem._call_s3, 0

    class Cut:
        """A body of which the first read fails."""

        async def read(self) -> bytes:
            raise TimeoutError("the connection was cut")

        def close(self) -> None:
            """Do nothing."""

    async def differ(self: Any, method: str, *args: Any, **named: Any) -> Any:
        nonlocal left
        if method != "get_object" or not left:
            return await call_s3(self, method, *args, **named)
        left -= 1
        named.pop({"no condition": "IfMatch", "no range": "Range"}.get(fault, ""), None)
        answer = await call_s3(self, method, *args, **named)
        return {**answer, "Body": Cut()} if fault == "cut" else answer

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", differ)
    with mounted("s3://box/set", tmp_path) as tree:
        node = tree.root / "x-1/b/b.bin"
        left = 1 if fault == "cut" else 100
        if fault == "cut":
            assert bytes(node.read()) == LARGE
            return
        changed = bytearray(TAR)
        changed[3_000_000] ^= 1
        bucket.put_object(Key="set/x-1.tar", Body=bytes(changed))
        with pytest.raises(Unreadable, match="has changed since it was mounted"):
            node.read(2_900_000, 200_000)


def test_what_is_not_there(bucket: Any, tmp_path: Path) -> None:
    for source in ("s3://box/none", "s3://nobox/x.tar"):
        with pytest.raises(NotFound, match=source.replace("nobox/x.tar", "nobox/x.tar")):
            mounted(source, tmp_path)


def test_what_is_not_allowed(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    async def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Forbidden")

    monkeypatch.setattr(s3fs.S3FileSystem, "_info", refuse)
    with pytest.raises(AccessDenied, match="s3://box/set: access denied: Forbidden"):
        mounted("s3://box/set", tmp_path)
