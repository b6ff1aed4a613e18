"""What stands between us and a server: TLS and proxies."""

from __future__ import annotations

import ipaddress
import select
import socket
import ssl
import threading
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shardfs.errors import Unreadable
from shardfs.options import Options
from shardfs.sources._web import Origin, Web
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {"x": b"content"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "here")])
    now = datetime.now(timezone.utc)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    secret = key.private_bytes(*kinds, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.fixture
def secure(certificate: Path) -> Iterator[WebServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = WebServer(dict(FILES))
    server.encrypt(context)
    with server:
        yield server


@pytest.fixture
def plain() -> Iterator[WebServer]:
    with WebServer(dict(FILES)) as server:
        yield server


@pytest.fixture
def web(hasty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    web = Web(Options(timeout=5))
    yield web
    web.close()


def read(web: Web, url: str) -> bytes:
    return web.content(Origin(url=url, name="the file"), 100)[1]


class Tunnels:
    """A proxy that lets through whatever it is asked to, and remembers where to and for whom."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[str] = []

    def __enter__(self) -> Tunnels:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.asked.append(head.decode())
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                ways = {client: server, server: client}
                while True:
                    for ready in select.select([client, server], [], [])[0]:
                        data = ready.recv(65536)
                        if not data:
                            return
                        ways[ready].sendall(data)


def test_a_server_whose_certificate_is_known(
    secure: WebServer, web: Web, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert read(web, f"{secure.url}/x") == FILES["x"]


def test_a_server_that_could_be_anybody_is_told_nothing(secure: WebServer, web: Web) -> None:
    with pytest.raises(Unreadable, match=r"the file: 127\.0\.0\.1:\d+: no secure connection"):
        read(web, f"{secure.url}/x")
    assert not secure.requests
    assert web.retries == 0


def test_closing_ends_a_secure_request_that_stalls(
    secure: WebServer, web: Web, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    secure.fail(stall_after=3)
    errors: list[Exception] = []

    def run() -> None:
        try:
            read(web, f"{secure.url}/x")
        except Unreadable as error:
            errors.append(error)

    reader = threading.Thread(target=run)
    reader.start()
    while not secure.requests:
        reader.join(0.01)
    web.close()
    reader.join(2)
    secure.closing.set()
    assert not reader.is_alive()
    assert errors


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_proxy_of_the_environment_is_asked(
    plain: WebServer, web: Web, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"http://user:secret@{plain.host}")
    assert read(web, "http://elsewhere.invalid/x") == FILES["x"]
    (request,) = plain.requests
    assert request.headers["Host"] == "elsewhere.invalid"
    assert request.headers["Proxy-Authorization"] == "Basic dXNlcjpzZWNyZXQ="


def test_no_proxy_for_hosts_that_need_none(
    plain: WebServer, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert read(web, f"{plain.url}/x") == FILES["x"]


def test_a_proxy_that_is_not_there(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    with pytest.raises(Unreadable, match="no connection by way of the proxy") as caught:
        read(web, "http://elsewhere.invalid/x")
    assert "secret" not in str(caught.value)


def test_a_secure_connection_through_a_proxy(
    secure: WebServer, web: Web, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Tunnels() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@{proxy.place}")
        assert read(web, f"{secure.url}/x") == FILES["x"]
    (asked,) = proxy.asked
    assert asked.startswith(f"CONNECT {secure.host} ")
    assert "proxy-authorization: basic dxnlcjpzzwnyzxq=" in asked.lower()
    assert "Proxy-Authorization" not in secure.requests[0].headers
