"""Repositories for the Hub in fake_hub.py, that Hub as the one that this process knows, and trees of them."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from huggingface_hub import constants

from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.fake_hub import Faults, Repo
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from shardfs.tree.tree import Tree
    from tests.fake_hub import FakeHub

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz"
NAME = "org/set"
SOURCE = f"hf://datasets/{NAME}"

TAR = archive(member("a.txt", b"first"), member("b.txt", b"second"))
OTHER = archive(member("a.txt", b"FIRST"), member("b.txt", b"SECOND"))

LFS = 10 << 20
"""Bytes from which on any file lies on the CDN."""


class Repository:
    """The repository NAME of the Hub whose folder is *root*."""

    def __init__(self, root: Path, files: Mapping[str, bytes], **rules: Any) -> None:
        """Give it *files* in its main branch; *rules* are those of ``.fakehub.json``."""
        self.folder = root / NAME
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write(files)
        (self.folder / ".fakehub.json").write_text(json.dumps(rules))

    def write(self, files: Mapping[str, bytes], revision: str = "") -> None:
        """Add or replace files of a revision."""
        for path, content in files.items():
            place = self.place(path, revision)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def place(self, path: str, revision: str = "") -> Path:
        """Where a file of a revision lies."""
        top = self.folder / ".revisions" / revision.replace("/", "%2F")
        return (top if revision else self.folder) / path

    @property
    def commit(self) -> str:
        """The commit of the main branch."""
        found = Repo(NAME, str(self.folder), LFS).find("main")
        assert found is not None
        return str(found[1])

    def keep(self) -> str:
        """Let the commit be known when the main branch moves on."""
        commit = self.commit
        files = [p for p in self.folder.rglob("*") if p.is_file() and ".revisions" not in p.parts]
        for file in files:
            if file.name != ".fakehub.json":
                place = self.place(file.relative_to(self.folder).as_posix(), commit)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
        return commit


def fresh(hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """*hub* with what lies in *folder*/hub and no faults, as this process's Hub, with no token and no downloads."""
    hub.root, hub.faults, hub.page_size, hub.url_ttl = str(folder / "hub"), Faults(), 1000, 3600.0
    hub.signed.clear()
    hub.reset()
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "downloads"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return hub


def asked(hub: FakeHub, part: str = "") -> list[str]:
    """What the Hub was asked for, data on the CDN left out."""
    return [entry["path"] for entry in hub.requests(part) if entry["role"] == "hub"]


def data(hub: FakeHub) -> list[dict[str, Any]]:
    """The requests for content on the CDN."""
    return [entry for entry in hub.requests("/cdn/") if entry["status"] in (200, 206)]


def settle(hub: FakeHub) -> None:
    """Wait until nothing has come for a moment: some is fetched that nobody waits for."""
    before, quiet, deadline = (0, 0), 0, time.monotonic() + 10
    while quiet < 5 and time.monotonic() < deadline:
        time.sleep(0.004)
        now = (len(hub.log), hub.bytes_served())
        quiet = quiet + 1 if now == before and all(entry["status"] for entry in hub.log) else 0
        before = now


def mounted(folder: Path, source: str = SOURCE, **options: Any) -> closing[Tree]:
    """The tree of *source* in its own folders, with a cache in *folder*."""
    options = {"cache_dir": folder / "cache", "splits": False, **options}
    return closing(open_tree(source, Options(**options)))


def names(tree: Tree, path: str = "") -> list[str]:
    """What a folder shows."""
    return [node.name for node in (tree.root / path).children()]


def content(tree: Tree, path: str) -> bytes:
    """What a file holds."""
    return bytes((tree.root / path).read())


def info(tree: Tree, file: str = "info.json") -> str:
    """What is known of the mount."""
    return content(tree, f".shardfs/{file}").decode()
