from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from shardfs.blob import no_wait
from shardfs.cache.memory import Derived, Memory
from shardfs.errors import Unreadable, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Sequence


class Owner:
    """Anything that can be referred to weakly."""


steps = lists(
    tuples(sampled_from(["put", "get", "resize", "drop", "die"]), integers(0, 4), integers(0, 120))
)


@given(steps)
def test_memory_is_a_dictionary_that_forgets_the_least_recently_used(
    sequence: Sequence[tuple[str, int, int]],
) -> None:
    """Against a plain list of [owner, value, size], the least recently used first."""
    limit, owners = 100, [Owner() for _ in range(5)]
    memory = Memory(limit)
    model: list[tuple[int, int, int]] = []
    for stamp, (step, who, size) in enumerate(sequence):
        held = next((row for row in model if row[0] == who), None)
        if step == "get":
            assert memory.get(owners[who]) == (held and held[1])
            if held:
                model.remove(held)
                model.append(held)
        elif step == "put":
            memory.put(owners[who], stamp, size)
            model = [row for row in model if row[0] != who] + [(who, stamp, size)]
        elif step == "resize":
            memory.resize(owners[who], size)
            model = [(*row[:2], size) if row[0] == who else row for row in model]
        else:
            if step == "drop":
                memory.drop(owners[who])
            else:
                owners[who] = Owner()
            model = [row for row in model if row[0] != who]
        allowed = max(limit, max((row[2] for row in model), default=0) + limit // 8)
        if sum(row[2] for row in model) > limit:
            while len(model) > 1 and sum(row[2] for row in model) > allowed:
                del model[0]
        assert memory.total == sum(row[2] for row in model)
    assert [memory.get(owner) is not None for owner in owners] == [
        any(row[0] == who for row in model) for who in range(5)
    ]


def test_small_values_do_not_drive_out_one_that_is_over_the_budget() -> None:
    memory, large, small = Memory(80), Owner(), [Owner() for _ in range(9)]
    memory.put(large, "large", 1000)
    for owner in small:
        memory.put(owner, "small", 1)
    assert memory.get(large) == "large"
    assert memory.get(small[-1]) == "small"


def test_one_value_is_kept_however_large() -> None:
    memory, first, second = Memory(10), Owner(), Owner()
    memory.put(first, "large", 1000)
    assert memory.get(first) == "large"
    memory.put(second, "large, too", 1000)
    assert memory.get(first) is None
    assert memory.get(second) == "large, too"
    assert memory.total == 1000


def test_what_dies_gives_its_bytes_back() -> None:
    memory, owner = Memory(100), Owner()
    memory.put(owner, "value", 60)
    del owner
    gc.collect()
    assert memory.total == 0


def test_an_owner_in_a_circle_dies_all_the_same() -> None:
    memory, owner = Memory(100), Owner()
    owner.me = owner  # type: ignore[attr-defined]
    memory.put(owner, "value", 60)
    del owner
    gc.collect()
    assert memory.total == 0


def test_nothing_piles_up_on_an_owner_that_is_put_and_evicted() -> None:
    memory, owner, other = Memory(10), Owner(), Owner()
    for _ in range(100):
        memory.put(owner, "value", 10)
        memory.put(other, "value", 10)
    assert weakref.getweakrefcount(owner) <= 1


def test_a_value_outlives_its_eviction_in_whoever_holds_it() -> None:
    memory, owner = Memory(10), Owner()
    memory.put(owner, memoryview(b"0123456789"), 10)
    view = memory.get(owner)
    memory.put(Owner(), "value", 10)
    memory.drop(owner)
    assert view is not None
    assert bytes(view) == b"0123456789"


def test_hits_and_misses_are_counted() -> None:
    memory, owner = Memory(10), Owner()
    memory.get(owner)
    memory.put(owner, "value", 1)
    memory.get(owner)
    memory.get(owner)
    assert (memory.hits, memory.misses) == (2, 1)


def test_many_threads_never_hold_more_than_the_budget_and_one_value() -> None:
    memory, limit, size = Memory(1000), 1000, 90
    over: list[int] = []

    def work(number: int) -> None:
        owners = [Owner() for _ in range(20)]
        for step in range(400):
            owner = owners[(step * 7 + number) % 20]
            if memory.get(owner) is None:
                memory.put(owner, step, size)
            if step % 5 == 0:
                owners[step % 20] = Owner()
            if memory.total > limit + size:
                over.append(memory.total)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    gc.collect()
    assert not over
    assert memory.total == 0, "all owners are dead"


# --- derived bytes ---


class Builder:
    def __init__(self, content: bytes = b"content") -> None:
        self.content, self.built = content, 0

    def __call__(self) -> bytes:
        time.sleep(0.02)
        self.built += 1
        return self.content


def test_derived_bytes_are_made_at_the_first_use_and_once() -> None:
    build = Builder()
    derived = Derived(build, Memory(100))
    assert build.built == 0
    assert derived.size() == 7
    assert bytes(derived.read(3, 99)) == b"tent"
    assert build.built == 1


def test_derived_bytes_are_made_once_however_many_threads_ask() -> None:
    build = Builder()
    derived = Derived(build, Memory(100))
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda _: bytes(derived.read(0, 99)), range(16))) == [b"content"] * 16
    assert build.built == 1


def test_derived_bytes_are_made_again_after_an_eviction() -> None:
    memory, build = Memory(10), Builder()
    derived = Derived(build, memory)
    view = derived.read(0, 99)
    memory.put(owner := Owner(), "value", 10)
    assert bytes(view) == bytes(derived.read(0, 99)) == b"content"
    assert build.built == 2
    del owner


def test_derived_bytes_that_are_not_there_need_waiting() -> None:
    derived = Derived(Builder(), Memory(100))
    for use in (derived.size, lambda: derived.read(0, 1)):
        with no_wait(), pytest.raises(WouldBlock):
            use()
    derived.size()
    with no_wait():
        assert bytes(derived.read(0, 99)) == b"content"


def test_derived_bytes_that_failed_are_tried_again() -> None:
    answers = iter([Unreadable("no network"), Unreadable("no network"), None])

    def build() -> bytes:
        if (error := next(answers)) is not None:
            raise error
        return b"content"

    derived = Derived(build, Memory(100))
    for _ in range(2):
        with pytest.raises(Unreadable):
            derived.size()
    assert derived.size() == 7


def test_what_is_derived_of_something_derived_does_not_wait_for_itself() -> None:
    memory = Memory(100)
    inner = Derived(Builder(b"inner"), memory)
    outer = Derived(lambda: bytes(inner.read(0, 9)) + b"!", memory)
    thread = threading.Thread(target=outer.size, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert bytes(outer.read(0, 9)) == b"inner!"


# --- what is worked on ---


class Value:
    """A value whose bytes live as long as its anchor."""

    def __init__(self) -> None:
        self.anchor = Owner()


def test_what_is_in_use_stays_and_nothing_more_fits() -> None:
    memory, owners = Memory(100), [Owner() for _ in range(4)]
    assert memory.enter(owners[0], Value, 40) is not None
    assert memory.enter(owners[1], Value, 40) is not None
    assert memory.enter(owners[2], Value, 40) is None
    memory.leave(owners[0], memory.get(owners[0]), 10)
    assert memory.total == 50
    assert memory.enter(owners[2], Value, 40) is not None
    assert memory.get(owners[0]) is not None, "there was room for all"
    assert memory.enter(owners[3], Value, 20) is not None
    assert [memory.get(owner) is not None for owner in owners] == [False, True, True, True]


def test_a_view_of_what_has_gone_counts_until_it_goes() -> None:
    memory, owner, other = Memory(100), Owner(), Owner()
    value = memory.enter(owner, Value, 60)
    assert value is not None
    memory.leave(owner, value, 60)
    view = value.anchor
    del value
    assert memory.enter(other, Value, 60) is None
    assert memory.get(owner) is None
    assert memory.total == 60
    del view
    assert memory.total == 0
    assert memory.enter(other, Value, 60) is not None


def test_use_is_over_when_the_last_one_leaves() -> None:
    memory, owner = Memory(100), Owner()
    value = memory.enter(owner, Value, 60)
    assert memory.use(owner, 80)
    assert memory.total == 80
    memory.leave(owner, value, 20)
    assert memory.total == 80
    memory.leave(owner, value, 20)
    assert memory.total == 20
    assert not memory.use(Owner(), 1), "what holds nothing can't be used"
    assert not memory.use(owner, 101)


def test_who_finds_no_room_waits_for_it() -> None:
    memory, owner, other = Memory(100), Owner(), Owner()
    value = memory.enter(owner, Value, 80)
    entered: list[object] = []
    thread = threading.Thread(target=lambda: entered.append(memory.enter(other, Value, 80, 10)))
    thread.start()
    time.sleep(0.05)
    assert not entered
    memory.leave(owner, value, 80)
    del value
    thread.join(5)
    assert entered != [None]
    assert memory.total == 80


def test_who_has_some_does_not_wait_for_more() -> None:
    memory, owner = Memory(100), Owner()
    began = time.monotonic()
    assert memory.enter(owner, Value, 80) is not None
    assert memory.enter(Owner(), Value, 80, 10) is None
    assert time.monotonic() - began < 5


def test_what_needs_much_is_computed_in_turns() -> None:
    memory, under_way, most = Memory(100), [0], [0]

    def build() -> bytes:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.01)
        under_way[0] -= 1
        return b"content"

    blobs = [Derived(build, memory, 500) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda blob: bytes(blob.read(0, 9)), blobs)) == [b"content"] * 6
    assert most == [1]


def test_what_is_needed_inside_of_what_needs_much_is_not_waited_for() -> None:
    memory = Memory(100)
    inner = Derived(lambda: b"inner", memory, 90)
    outer = Derived(lambda: bytes(inner.read(0, 9)) + b"!", memory, 90)
    began = time.monotonic()
    assert bytes(outer.read(0, 9)) == b"inner!"
    assert time.monotonic() - began < 5


def test_a_build_that_fails_needs_nothing_any_more() -> None:
    memory = Memory(100)

    def build() -> bytes:
        raise Unreadable("no network")

    with pytest.raises(Unreadable):
        Derived(build, memory, 90).size()
    assert memory.total == 0
