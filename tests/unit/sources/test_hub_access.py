from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import constants

from shardfs.errors import (
    AccessDenied,
    NotFound,
    UsageError,
)
from shardfs.options import Options
from tests.hub_repos import (
    NAME,
    TOKEN,
    Repository,
    asked,
    content,
    info,
    mounted,
    names,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_hub import FakeHub


@pytest.fixture
def private(repository: Repository) -> Repository:
    repository.write({"index.txt": b"words"})
    rules = json.dumps({"private": True, "tokens": [TOKEN]})
    (repository.folder / ".fakehub.json").write_text(rules)
    return repository


@pytest.fixture
def gated(repository: Repository) -> Repository:
    rules = json.dumps({"gated": "auto", "tokens": [TOKEN]})
    (repository.folder / ".fakehub.json").write_text(rules)
    return repository


def token_by(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> str | None:
    """The token as an option, or None where it comes another *way*."""
    if way == "environment":
        monkeypatch.setenv("HF_TOKEN", token)
    elif way == "file":
        (tmp_path / "token").write_text(f"{token}\n")
    return token if way == "option" else None


@pytest.mark.parametrize("way", ["environment", "file", "option"])
def test_a_private_repository_with_a_token(
    hub: FakeHub,
    private: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
) -> None:
    caplog.set_level("DEBUG")
    token = token_by(way, tmp_path, monkeypatch, TOKEN)
    with mounted(tmp_path, token=token) as tree:
        assert content(tree, "data/x/a/a.txt") == b"first"
        assert content(tree, "notes") == b"notes"
        with pytest.raises(NotFound):
            content(tree, "none")
        said = [info(tree, file) for file in ("info.json", "stats.json", "errors.jsonl")]
    assert {entry["auth"] for entry in hub.log if entry["role"] == "hub"} == {True}
    assert {entry["auth"] for entry in hub.log if entry["role"] == "cdn"} == {False}
    kept = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(kept) > 2
    assert not any(TOKEN.encode() in file for file in kept)
    assert TOKEN not in "".join([*said, caplog.text, repr(Options(token=TOKEN))])


@pytest.mark.parametrize("way", ["environment", "file", "option", "none"])
def test_a_private_repository_without_the_right_token(
    private: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """With a wrong one, the Hub says that there is no such repository."""
    token = token_by(way, tmp_path, monkeypatch, "hf_wrong")
    with pytest.raises((AccessDenied, NotFound)) as caught, mounted(tmp_path, token=token):
        pass
    message = str(caught.value)
    assert caught.type is (AccessDenied if way == "none" else NotFound)
    assert f"/datasets/{NAME} is private or gated, the token" in message
    assert "HF_TOKEN" in message
    assert "hf_wrong" not in message


@pytest.mark.parametrize("token", [None, "hf_wrong", TOKEN])
def test_a_gated_repository_is_listed_and_not_read_without_the_right_token(
    gated: Repository, tmp_path: Path, token: str | None
) -> None:
    with mounted(tmp_path, token=token) as tree:
        assert names(tree, "data") == ["x", "y"]
        if token == TOKEN:
            assert content(tree, "notes") == b"notes"
            return
        with pytest.raises(AccessDenied, match=f"/datasets/{NAME} is private or gated.*HF_TOKEN"):
            content(tree, "notes")
        with pytest.raises(AccessDenied, match="Access to dataset org/set is restricted"):
            names(tree, "data/x")
        assert "hf_wrong" not in info(tree, "errors.jsonl")


@pytest.mark.parametrize("token", ["hf_\u201cx\u201d", "hf_x y", "hf_x\n\n", "\u00e9", "hf_x\x01"])
def test_a_token_that_can_be_none_is_not_sent(
    hub: FakeHub, repository: Repository, tmp_path: Path, token: str
) -> None:
    with pytest.raises(UsageError, match="token") as caught, mounted(tmp_path, token=token):
        pass
    assert "hf_x" not in str(caught.value)
    assert not hub.log


def test_a_token_that_nobody_wants_to_be_sent(
    hub: FakeHub, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    with mounted(tmp_path):
        assert not any(entry["auth"] for entry in hub.log)


def test_the_next_page_is_asked_for_with_the_token_on_the_hub_only(
    hub: FakeHub, private: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a proxy stands before it, whose address the Hub doesn't know."""
    hub.page_size = 2
    proxied = hub.url.replace("127.0.0.1", "localhost")
    monkeypatch.setattr(constants, "ENDPOINT", proxied)
    with mounted(tmp_path, token=TOKEN) as tree:
        assert content(tree, "data/x/a/a.txt") == b"first"
    assert len(asked(hub, "/tree/")) == 3
    assert all(entry["auth"] for entry in hub.log if entry["role"] == "hub")
