"""Bytes held in memory for reuse, all under one budget: the least recently used go first.

A reader that still holds a view of bytes that went keeps them alive, so eviction never harms it.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from shardfs.blob import Bytes, may_wait
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable


class Memory:
    """A byte budget. What an *owner* (any object with a weak reference) holds is found by the owner itself.

    One value may be larger than the budget, since a chunk that is read must be somewhere.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By identity of the owner: value, size, and a reference that lets go when the owner dies.
        self._held: OrderedDict[int, tuple[Any, int, weakref.ref[Any]]] = OrderedDict()
        self._total = 0
        # Reentrant: a collection inside the lock may run the finalizer of another owner, which needs it too.
        self._lock = threading.RLock()
        self.hits = self.misses = 0

    @property
    def total(self) -> int:
        """Bytes held now."""
        return self._total

    def get(self, owner: object) -> Any | None:
        """What *owner* holds, None where it holds nothing (any more)."""
        key = id(owner)
        with self._lock:
            found = self._held.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._held.move_to_end(key)
            return found[0]

    def put(self, owner: object, value: Any, size: int) -> None:
        """Let *owner* hold *value*, which takes *size* bytes, until it dies or the budget wants them back."""
        key = id(owner)
        with self._lock:
            held = self._held.get(key)
            self._total += size - (held[1] if held else 0)
            grip = held[2] if held else weakref.ref(owner, lambda _: self._drop(key))
            self._held[key] = value, size, grip
            self._held.move_to_end(key)
            self._evict()

    def resize(self, owner: object, size: int) -> None:
        """What *owner* holds takes *size* bytes now."""
        key = id(owner)
        with self._lock:
            if key in self._held:
                value, before, grip = self._held[key]
                self._held[key] = value, size, grip
                self._total += size - before
                self._evict()

    def drop(self, owner: object) -> None:
        """Let *owner* hold nothing."""
        self._drop(id(owner))

    def _drop(self, key: int) -> None:
        with self._lock:
            held = self._held.pop(key, None)
            self._total -= held[1] if held else 0

    def _evict(self) -> None:
        limit = self._limit
        if self._total > limit:
            # Beside a value that is over the budget by itself there is some room, lest small ones drive it out.
            largest = max(held[1] for held in self._held.values())
            limit = max(limit, largest + limit // 8)
        while self._total > limit and len(self._held) > 1:
            _, held = self._held.popitem(last=False)
            self._total -= held[1]


class Derived:
    """Bytes that a function computes at the first use, once however many threads ask, and again after an eviction."""

    __slots__ = ("__weakref__", "_build", "_lock", "_memory")

    def __init__(self, build: Callable[[], bytes], memory: Memory) -> None:
        self._build, self._memory, self._lock = build, memory, threading.Lock()

    def size(self) -> int:
        return self._content().size()

    def read(self, offset: int, length: int, /) -> memoryview:
        return self._content().read(offset, length)

    def _content(self) -> Bytes:
        content: Bytes | None = self._memory.get(self)
        if content is not None:
            return content
        if not may_wait():
            raise WouldBlock
        with self._lock:
            content = self._memory.get(self)
            if content is None:
                content = Bytes(self._build())
                self._memory.put(self, content, content.size())
            return content
