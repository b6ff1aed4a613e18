"""Connections to web servers: pools of a few a host, time limits, proxies, and an end to all of them at once."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import urllib3
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util import make_headers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from urllib3.connection import HTTPConnection

# Seconds to come to a connection: a distant host takes one, and names may have to be looked up again.
_CONNECT = 10.0
# Seconds that requests wait for a connection that others have. Each of those is limited itself.
_QUEUE = 120
# Hosts whose connections are kept open.
_HOSTS = 16


class Connections:
    """Makes requests; at most *most* at a time to each host."""

    def __init__(self, most: int, timeout: float) -> None:
        """Let no answer begin, and none pause, later than *timeout* seconds."""
        self._most, self._timeout = most, urllib3.Timeout(min(_CONNECT, timeout), timeout)
        self._opened: WeakSet[HTTPConnection] = WeakSet()
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def ask(
        self, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> urllib3.BaseHTTPResponse:
        """The answer to a GET, or to a POST of *body*, as it comes, not read yet. Raises urllib3's HTTPError."""
        return self._manager(url).urlopen(
            "GET" if body is None else "POST",
            url,
            body=body,
            headers=headers,
            redirect=False,
            retries=False,
            timeout=self._timeout,
            pool_timeout=_QUEUE,
            preload_content=False,
            decode_content=False,
        )

    def close(self) -> None:
        """End all connections, also those that somebody waits for."""
        with self._lock:
            managers, opened = list(self._managers.values()), list(self._opened)
        for connection in opened:
            link = getattr(connection, "sock", None)
            if link is not None:
                with contextlib.suppress(OSError):
                    # Not the method of an SSL socket, which would pull the rug from under a thread that reads.
                    socket.socket.shutdown(link, socket.SHUT_RDWR)
        for manager in managers:
            manager.clear()

    def _manager(self, url: str) -> urllib3.PoolManager:
        """What manages connections to the host of *url*: directly or by a proxy, as the environment says."""
        parts = urlsplit(url)
        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all", "")
        if proxy and proxy_bypass(parts.netloc.rpartition("@")[2]):
            proxy = ""
        with self._lock:
            if proxy not in self._managers:
                self._managers[proxy] = self._made(proxy)
            return self._managers[proxy]

    def _made(self, proxy: str) -> urllib3.PoolManager:
        limits: dict[str, Any] = {"num_pools": _HOSTS, "maxsize": self._most, "block": True}
        manager: urllib3.PoolManager
        if proxy:
            who = urlsplit(proxy).netloc.rpartition("@")[0]
            headers = make_headers(proxy_basic_auth=who) if who else None
            manager = urllib3.ProxyManager(proxy, proxy_headers=headers, **limits)
        else:
            manager = urllib3.PoolManager(**limits)
        manager.pool_classes_by_scheme = {
            scheme: type(kind.__name__, (_Watched, kind), {"opened": self._opened})
            for scheme, kind in (("http", HTTPConnectionPool), ("https", HTTPSConnectionPool))
        }
        return manager


class _Watched:
    """What makes a pool keep *opened*, its connections, from the moment that they are made."""

    opened: WeakSet[HTTPConnection]

    def _new_conn(self) -> HTTPConnection:
        connection: HTTPConnection = super()._new_conn()  # type: ignore[misc]
        self.opened.add(connection)
        return connection
