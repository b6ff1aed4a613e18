from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import no_wait
from shardfs.errors import (
    AccessDenied,
    NotFound,
    ShardfsError,
    TooLarge,
    Unreadable,
    WouldBlock,
)
from shardfs.options import Options
from shardfs.sources._ranges import Facts, RangeBlob, probe
from shardfs.sources._web import Origin, Web
from tests.web_server import CHANGED, CHANGED_NS, WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = bytes(range(256)) * 8000
FILES = {"file": DATA, "empty": b"", "one": b"1"}


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer(dict(FILES)) as server:
        yield server


@pytest.fixture
def web(hasty: None) -> Iterator[Web]:
    """With little patience."""
    web = Web(Options(retries=2, timeout=0.5))
    yield web
    web.close()


def origin(server: WebServer, name: str = "file", **more: Any) -> Origin:
    return Origin(url=f"{server.url}/{name}", name=f"the {name}", **more)


def blob(web: Web, server: WebServer, name: str = "file", **more: Any) -> RangeBlob:
    validator = server.validators(FILES[name]).get("ETag", "")
    return RangeBlob(web, origin(server, name, **more), len(FILES[name]), validator)


# --- what there is ---


@pytest.mark.parametrize("name", FILES)
def test_one_request_tells_size_version_and_time(web: Web, server: WebServer, name: str) -> None:
    facts = probe(web, origin(server, name))
    assert facts.size == len(FILES[name])
    if name != "empty":
        assert facts == Facts(len(FILES[name]), server.validators(FILES[name])["ETag"], CHANGED_NS)
    assert len(server.requests) == 1
    assert server.sent() <= 1


def test_without_an_etag_the_time_is_the_version(web: Web, server: WebServer) -> None:
    server.validates = "time"
    assert probe(web, origin(server)).validator == CHANGED
    server.validates = "none"
    assert probe(web, origin(server)) == Facts(len(DATA), "", 0)


def test_a_server_without_ranges_is_not_read_to_the_end(web: Web, server: WebServer) -> None:
    server.files = {"file": bytes(32 << 20)}
    server.fail(mode="whole")
    with pytest.raises(Unreadable, match=r"the file: 127.* serves no parts of files"):
        probe(web, origin(server))
    with pytest.raises(Unreadable, match="serves no parts of files"):
        RangeBlob(web, origin(server), 32 << 20).read(0, 10)
    time.sleep(0.05)
    assert server.sent() < 16 << 20
    assert len(server.requests) == 2, "another try would be no better"


def test_a_whole_file_may_come_where_all_of_it_was_asked_for(web: Web, server: WebServer) -> None:
    server.fail(mode="whole")
    assert bytes(blob(web, server).read(0, 1 << 40)) == DATA


# --- reading ---


def test_a_read_is_one_request_for_just_that(web: Web, server: WebServer) -> None:
    assert bytes(blob(web, server).read(1000, 50)) == DATA[1000:1050]
    (request,) = server.requests
    assert request.range == "bytes=1000-1049"
    assert request.headers["Accept-Encoding"] == "identity"
    assert request.headers["If-Range"] == server.validators(DATA)["ETag"]
    assert request.headers["User-Agent"].startswith("shardfs/")
    assert web.counts() == {"requests": 1, "retries": 0, "bytes": 50}


def test_connections_are_used_again(
    web: Web, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = []
    accept = server._listener.get_request

    def count() -> Any:
        accepted.append(1)
        return accept()

    monkeypatch.setattr(server._listener, "get_request", count)
    for at in range(0, len(DATA), 300_000):
        blob(web, server).read(at, 300_000)
        with pytest.raises(NotFound):
            RangeBlob(web, origin(server, "none"), 10).read(0, 10)
    assert len(accepted) == 1


def test_nothing_is_asked_without_waiting(web: Web, server: WebServer) -> None:
    file = blob(web, server)
    with no_wait():
        assert file.size() == len(DATA)
        assert bytes(file.read(5, 0)) == b""
        for use in (lambda: file.read(0, 1), lambda: probe(web, origin(server))):
            with pytest.raises(WouldBlock):
                use()
    assert not server.requests


# --- what passes ---


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 502},
        {"status": 503},
        {"status": 504},
        {"status": 408},
        {"status": 429},
        {"cut_after": -1},
        {"cut_after": 0},
        {"cut_after": 100_000},
        {"mode": "shifted"},
        {"mode": "short"},
        {"mode": "cropped"},
        {"stall_after": 100_000},
        {"stall_after": 0},
    ],
    ids=str,
)
def test_after_a_passing_failure_all_bytes_are_right(
    web: Web, server: WebServer, fault: dict[str, Any]
) -> None:
    file = blob(web, server)
    file.read(0, 1)
    server.fail(times=2, **fault)
    assert bytes(file.read(7, 1 << 20)) == DATA[7 : 7 + (1 << 20)]
    assert web.retries == 2


def test_what_came_before_a_cut_is_not_asked_for_again(web: Web, server: WebServer) -> None:
    server.fail(times=2, cut_after=300_000)
    assert bytes(blob(web, server).read(0, 1 << 20)) == DATA[: 1 << 20]
    assert [r.range for r in server.requests] == [
        f"bytes={at}-{(1 << 20) - 1}" for at in (0, 300_000, 600_000)
    ]


def test_a_server_that_goes_on_is_given_any_number_of_tries(web: Web, server: WebServer) -> None:
    server.files = {"file": bytes(8 << 20)}
    server.fail(cut_after=3 << 19)
    file = RangeBlob(web, origin(server), 8 << 20)
    assert len(file.read(0, 8 << 20)) == 8 << 20
    assert web.retries == 5


# --- what does not ---


@pytest.mark.parametrize(
    ("fault", "kind", "words", "tries"),
    [
        ({"status": 500}, Unreadable, "HTTP 500 (3 tries)", 3),
        ({"status": 429}, Unreadable, "HTTP 429 (3 tries)", 3),
        ({"cut_after": 0}, Unreadable, "the connection was cut (3 tries)", 3),
        ({"mode": "shifted"}, Unreadable, "sent another part than asked for", 3),
        ({"mode": "short"}, Unreadable, "sent another part than asked for", 3),
        ({"mode": "cropped"}, Unreadable, "sent 5 bytes instead of 10", 3),
        ({"mode": "gzip"}, Unreadable, "in another encoding", 1),
        ({"status": 401}, AccessDenied, "access denied: 127.0.0.1", 1),
        ({"status": 403}, AccessDenied, "HTTP 403, set HF_TOKEN", 1),
        ({"status": 404}, NotFound, "not there", 1),
        ({"status": 410}, NotFound, "deleted", 1),
        ({"status": 400}, Unreadable, "HTTP 400", 1),
        ({"status": 501}, Unreadable, "HTTP 501", 1),
        ({"status": 304}, Unreadable, "HTTP 304", 1),
    ],
    ids=str,
)
def test_a_failure_that_stays_is_told(
    web: Web,
    server: WebServer,
    fault: dict[str, Any],
    kind: type[ShardfsError],
    words: str,
    tries: int,
) -> None:
    headers = {"X-Error-Message": "set HF_TOKEN"} if fault.get("status") == 403 else {}
    server.fail(**fault, headers=headers)
    with pytest.raises(kind) as caught:
        blob(web, server).read(0, 10)
    assert str(caught.value).startswith("the file: ")
    assert words in str(caught.value)
    assert len(server.requests) == tries


def test_a_lie_about_the_part_is_not_noticed_but_one_about_the_length_is(
    web: Web, server: WebServer
) -> None:
    """Why there are checksums: bytes that a server takes for the right ones are those that we get."""
    server.fail(mode="lying")
    assert bytes(blob(web, server).read(0, 10)) == DATA[1:11]
    with pytest.raises(Unreadable, match="sent 9 bytes instead of 10"):
        blob(web, server).read(len(DATA) - 10, 10)


@pytest.mark.parametrize("content", [DATA[:-1] + b"?", DATA[:-1], DATA + b"more", b""])
@pytest.mark.parametrize("validates", ["both", "etag", "time", "none"])
def test_another_version_is_never_mixed_in(
    web: Web, server: WebServer, content: bytes, validates: str
) -> None:
    server.validates = validates
    facts = probe(web, origin(server))
    file = RangeBlob(web, origin(server), facts.size, facts.validator)
    file.read(0, 10)
    server.files = {"file": content}
    if validates in ("time", "none") and len(content) == len(DATA):
        return  # there is no telling
    with pytest.raises(Unreadable, match="has changed since it was mounted"):
        file.read(0, 10)


def test_weak_etags_are_compared_but_not_sent(web: Web, server: WebServer) -> None:
    tag = server.validators(DATA)["ETag"]
    file = RangeBlob(web, origin(server), len(DATA), f"W/{tag}")
    assert bytes(file.read(3, 3)) == DATA[3:6]
    assert "If-Range" not in server.requests[0].headers
    with pytest.raises(Unreadable, match="has changed"):
        RangeBlob(web, origin(server), len(DATA), 'W/"other"').read(0, 10)


# --- time ---


def test_a_stalled_server_is_given_up(web: Web, server: WebServer) -> None:
    server.fail(stall_after=0)
    started = time.monotonic()
    with pytest.raises(Unreadable, match=r"no answer in time \(3 tries\)"):
        blob(web, server).read(0, 10)
    assert 1 < time.monotonic() - started < 5


def test_a_trickle_is_given_up(web: Web, server: WebServer) -> None:
    file = blob(web, server)
    server.fail(times=1, trickle=True)
    assert bytes(file.read(0, 1000)) == DATA[:1000]
    server.fail(trickle=True)
    with pytest.raises(Unreadable, match="the answer comes too slowly"):
        file.read(0, 1000)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "1"}),
        (503, {"Retry-After": "1"}),
        (429, {"RateLimit": '"resolvers";r=0;t=1'}),
    ],
    ids=str,
)
def test_the_wait_that_a_server_asks_for_is_kept_by_all(
    web: Web, server: WebServer, status: int, headers: dict[str, str]
) -> None:
    file = blob(web, server)
    server.fail(times=1, status=status, headers=headers)
    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(file.read, 0, 10)
        while not server.requests:
            time.sleep(0.005)
        time.sleep(0.05)
        others = [pool.submit(file.read, 10, 10) for _ in range(3)]
        assert bytes(first.result()) == DATA[:10]
        assert [bytes(other.result()) for other in others] == [DATA[10:20]] * 3
    assert time.monotonic() - started >= 1
    assert len(server.requests) == 5


def test_a_wait_that_is_too_long_is_told_at_once(web: Web, server: WebServer) -> None:
    server.fail(times=1, status=429, headers={"Retry-After": "300"})
    with pytest.raises(Unreadable, match="HTTP 429, to try again in 300 s"):
        blob(web, server).read(0, 10)
    with pytest.raises(Unreadable, match="asks to wait 300 seconds"):
        blob(web, server).read(0, 10)
    assert len(server.requests) == 1


def test_a_used_up_limit_is_kept_before_it_is_enforced(web: Web, server: WebServer) -> None:
    file = blob(web, server)
    server.fail(times=1, status=404, headers={"RateLimit": '"api";r=0;t=1'})
    with pytest.raises(NotFound):
        file.read(0, 10)
    started = time.monotonic()
    file.read(0, 10)
    assert time.monotonic() - started >= 0.9


def test_few_connections_are_made_to_a_host(server: WebServer) -> None:
    web = Web(Options(connections=3))
    server.faults.latency = 0.05
    now = most = 0
    lock = threading.Lock()
    content = server.content

    def counted(path: str) -> bytes | None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return content(path)

    server.content = counted  # type: ignore[method-assign]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: RangeBlob(web, origin(server), len(DATA)).read(n, 5), range(24)))
    assert 1 < most <= 3
    web.close()


def test_closing_ends_what_is_waited_for(server: WebServer) -> None:
    web = Web(Options(timeout=20))
    server.fail(stall_after=5)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(blob(web, server).read, n, 100) for n in range(2)]
        while len(server.requests) < 2:
            time.sleep(0.01)
        time.sleep(0.05)
        started = time.monotonic()
        web.close()
        for each in waiting:
            with pytest.raises(Unreadable):
                each.result()
    assert time.monotonic() - started < 2
    with pytest.raises(Unreadable, match="closed"):
        blob(web, server).read(0, 10)


def test_a_server_that_is_not_there_is_told_at_once(web: Web) -> None:
    with WebServer({}) as gone:
        nowhere = origin(gone)
    started = time.monotonic()
    with pytest.raises(Unreadable, match=r"the file: 127.0.0.1:\d+: no connection"):
        probe(web, nowhere)
    assert time.monotonic() - started < 1


def test_offline_nothing_is_asked(server: WebServer) -> None:
    web = Web(Options(offline=True))
    with pytest.raises(Unreadable, match="the file: offline"):
        probe(web, origin(server))
    assert not server.requests


# --- for listings, and for sources with more to check ---


def test_a_whole_answer_up_to_a_limit(web: Web, server: WebServer) -> None:
    server.fail(times=1, status=503)
    headers, body = web.content(origin(server), len(DATA))
    assert (body, headers["ETag"]) == (DATA, server.validators(DATA)["ETag"])
    assert web.content(origin(server, "empty"), 0)[1] == b""
    with pytest.raises(TooLarge, match="the file: an answer of more than 1000 bytes"):
        web.content(origin(server), 1000)
    server.fail(times=1, cut_after=1000)
    assert web.content(origin(server), len(DATA))[1] == DATA


@pytest.mark.parametrize(
    ("linked", "is_right"), [('"right"', True), ('W/"right"', True), ('"wrong"', False), ("", True)]
)
def test_a_redirect_must_be_to_the_right_content(
    web: Web, server: WebServer, linked: str, is_right: bool
) -> None:
    where = {"Location": "/file", "X-Linked-ETag": linked}
    server.fail(times=1, status=307, headers=where)
    file = RangeBlob(web, origin(server, "link", linked="right"), len(DATA))
    if is_right:
        assert bytes(file.read(5, 5)) == DATA[5:10]
        assert [request.path for request in server.requests] == ["/link", "/file"]
    else:
        with pytest.raises(Unreadable, match="has changed since it was mounted"):
            file.read(5, 5)


def test_what_to_do_about_refused_access_is_told(web: Web, server: WebServer) -> None:
    server.fail(status=401, headers={"X-Error-Message": "gated " + 500 * "x"})
    with pytest.raises(AccessDenied) as caught:
        blob(web, server, hint="set HF_TOKEN").read(0, 1)
    assert str(caught.value).endswith("xxx; set HF_TOKEN")
    assert len(str(caught.value)) < 400
