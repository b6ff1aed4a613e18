"""Bytes held in memory for reuse, all under one budget: the least recently used go first.

What somebody works on stays, so all that is worked on at a time must fit, too: what does not is held by a file of the
disk cache (files.py), or waits.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardfs.blob import Blob, Bytes, may_wait
from shardfs.cache.disk import NoRoom
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shardfs.cache.files import Files

# Parts of the budget, of 8, that one value may take: the usual chunk of 64 MB fits in the usual limit, and the others
# need some, too.
_SHARE = 5
# The part of the budget from which on it is asked whether what is needed for a while is there.
_MUCH = 64
# Seconds to wait for that.
_PATIENCE = 10.0


@dataclass(slots=True)
class _Held:
    """A value, its size, how many work on it, and a reference that lets go when its owner dies.

    The *anchor*, if there is one, lives as long as anybody has a view of the bytes.
    """

    value: Any
    size: int
    users: int
    grip: weakref.ref[Any]
    anchor: weakref.ref[Any] | None = None


class _Grips(threading.local):
    count = 0


class Memory:
    """A byte budget. What an *owner* (any object with a weak reference) holds is found by the owner itself.

    One value may be larger than the budget where there are no *files* for it, since it must be somewhere.
    """

    def __init__(
        self,
        limit: int,
        files: Files | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """*tell* the user what became slow because of the limit."""
        self._limit, self.files, self.tell = limit, files, tell
        # By identity of the owner.
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._total = 0
        # What went while somebody had a view of it: (reference to the anchor, size) by identity of that.
        self._lent: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._lent_total = 0
        # Reentrant: a collection inside the lock may run the finalizer of another owner, which needs it too.
        self._lock = threading.RLock()
        self._freed = threading.Condition(self._lock)
        # How many values the current thread works on: who has some already must not wait for those of others.
        self._grips = _Grips()
        self.hits = self.misses = 0

    @property
    def total(self) -> int:
        """Bytes held now, also by those who look at what has gone."""
        return self._total + self._lent_total

    @property
    def largest(self) -> int:
        """The most bytes that a value should have; larger ones belong into files."""
        return self._limit * _SHARE // 8

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
            return found.value

    def put(self, owner: object, value: Any, size: int) -> None:
        """Let *owner* hold *value*, which takes *size* bytes, until it dies or the budget wants them back."""
        with self._lock:
            self._put(owner, value, size, 0)
            self._evict(self._limit)

    def resize(self, owner: object, size: int) -> None:
        """What *owner* holds takes *size* bytes now."""
        with self._lock:
            held = self._held.get(id(owner))
            if held is not None:
                self._total += size - held.size
                held.size = size
                self._evict(self._limit)

    def drop(self, owner: object) -> None:
        """Let *owner* hold nothing."""
        self._drop(id(owner))

    def enter(
        self, owner: object, make: Callable[[], Any], size: int, patience: float = 0
    ) -> Any | None:
        """What *make* gives, held by *owner* and in use from now on; None where *size* bytes don't fit.

        Its ``anchor`` lives as long as its bytes do. Waits so many seconds at most until others are done.
        """
        deadline = time.monotonic() + (0 if self._grips.count else patience)
        with self._lock:
            while not self._make_room(size):
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._freed.wait(left)
            value = make()
            self._put(owner, value, size, 1)
            self._held[id(owner)].anchor = weakref.ref(value.anchor)
        self._grips.count += 1
        return value

    def use(self, owner: object, size: int) -> bool:
        """Whether *owner* holds a value, which stays until it is left; it may grow to *size* bytes meanwhile."""
        with self._lock:
            held = self._held.get(id(owner))
            if held is None:
                return False
            held.users += 1
            if size > held.size:
                if not self._make_room(size - held.size):
                    held.users -= 1
                    return False
                self._total += size - held.size
                held.size = size
        self._grips.count += 1
        return True

    def leave(self, owner: object, value: Any, size: int) -> None:
        """The *value* of *owner* is used no more by who calls; it takes *size* bytes if nobody else does."""
        self._grips.count -= 1
        with self._lock:
            held = self._held.get(id(owner))
            if held is not None and held.value is value:
                held.users -= 1
                if not held.users:
                    self.resize(owner, size)
            self._freed.notify_all()

    @contextmanager
    def lent(self, size: int) -> Iterator[None]:
        """While about *size* bytes are needed for a while: all of the budget, if that is more.

        Waits until others are done, but not forever, since they might wait for who calls.
        """
        passing = _Passing()
        is_much = size > self._limit // _MUCH
        got = is_much and self.enter(passing, lambda: passing, min(size, self._limit), _PATIENCE)
        try:
            yield
        finally:
            if got:
                self.leave(passing, passing, 0)
                self.drop(passing)

    def keep(self, owner: object, content: bytes) -> Blob:
        """Let *owner* hold *content*, in a file if that is large."""
        if len(content) > self.largest and self.files is not None:
            try:
                return self.files.keep(owner, content)
            except NoRoom:
                pass  # so it takes what it takes
        blob = Bytes(content)
        self.put(owner, blob, len(content))
        return blob

    def kept(self, owner: object) -> Blob | None:
        """What *owner* was let hold by ``keep``, None where it is gone."""
        found: Blob | None = self.get(owner)
        if found is None and self.files is not None:
            found = self.files.held.get(owner)
        return found

    def _put(self, owner: object, value: Any, size: int, users: int) -> None:
        key = id(owner)
        held = self._held.get(key)
        self._total += size - (held.size if held else 0)
        grip = held.grip if held else weakref.ref(owner, lambda _: self._drop(key))
        self._held[key] = _Held(value, size, users, grip)
        self._held.move_to_end(key)

    def _drop(self, key: int) -> None:
        with self._lock:
            if key in self._held:
                self._remove(key)
            self._freed.notify_all()

    def _remove(self, key: int) -> None:
        held = self._held.pop(key)
        self._total -= held.size
        size, find_anchor = held.size, held.anchor
        del held  # and with it the value, unless somebody has it
        anchor = None if find_anchor is None else find_anchor()
        if anchor is not None:
            lent = id(anchor)
            self._lent[lent] = weakref.ref(anchor, lambda _: self._take_back(lent)), size
            self._lent_total += size

    def _take_back(self, lent: int) -> None:
        with self._lock:
            self._lent_total -= self._lent.pop(lent)[1]
            self._freed.notify_all()

    def _make_room(self, size: int) -> bool:
        """Whether *size* more bytes fit, others having gone for them."""
        limit = self._limit - size
        if self.total > limit:
            busy = sum(held.size for held in self._held.values() if held.users)
            if busy + self._lent_total <= limit:  # else it would be in vain
                self._evict(limit, all_of_them=True)
        return self.total <= limit

    def _evict(self, limit: int, *, all_of_them: bool = False) -> None:
        if self.total <= limit:
            return
        if not all_of_them:
            # Beside a value that is over the budget by itself there is some room, lest small ones drive it out.
            largest = max((held.size for held in self._held.values()), default=0)
            limit = max(limit, largest + limit // 8)
        for key in list(self._held):
            if self.total <= limit or (len(self._held) == 1 and not all_of_them):
                return
            if not self._held[key].users:
                self._remove(key)


class _Passing:
    """Memory that is needed for a while: an owner, a value and its anchor in one."""

    @property
    def anchor(self) -> _Passing:
        return self


class Derived:
    """Bytes that a function computes at the first use, once however many threads ask, and again after an eviction."""

    __slots__ = ("__weakref__", "_build", "_lock", "_memory", "_needs")

    def __init__(self, build: Callable[[], bytes], memory: Memory, needs: int = 0) -> None:
        """Computing takes about *needs* bytes of memory, so that it waits for others who need much."""
        self._build, self._memory, self._needs = build, memory, needs
        self._lock = threading.Lock()

    def size(self) -> int:
        return self._content().size()

    def read(self, offset: int, length: int, /) -> memoryview:
        return self._content().read(offset, length)

    def _content(self) -> Blob:
        content = self._memory.kept(self)
        if content is not None:
            return content
        if not may_wait():
            raise WouldBlock
        with self._lock:
            content = self._memory.kept(self)
            if content is None:
                with self._memory.lent(self._needs):
                    made = self._build()
                content = self._memory.keep(self, made)
            return content
