"""What holds for every format: a subclass names it, and gives a folder that its own library wrote."""

from __future__ import annotations

import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import integers

from shardfs.blob import no_wait, read_all
from shardfs.errors import ShardfsError, WouldBlock
from shardfs.options import Options
from shardfs.sources.local import LocalStore
from shardfs.views.present import Presenter
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.model import Dataset, Field, Format, Shard
    from shardfs.stores import Store

# Records of a shard that are looked at, from both ends.
SOME = 20


class FormatContract:
    """Attributes: *format* is the class, *options* are for ``Options``."""

    format: ClassVar[type[Format]]
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def source(self) -> Path:
        raise NotImplementedError

    @pytest.fixture
    def store(self, source: Path) -> Store:
        return LocalStore(str(source))

    @pytest.fixture
    def dataset(self, store: Store) -> Dataset:
        return self.opened(store)

    @pytest.fixture
    def shards(self, dataset: Dataset) -> list[Shard]:
        return [dataset.open_shard(number) for number in range(len(dataset.shards))]

    def opened(self, store: Store, **options: Any) -> Dataset:
        services = FakeServices(Options(**self.options, **options))
        return self.format.open(store, names(store), services)

    # --- datasets ---

    def test_it_is_recognised(self, store: Store) -> None:
        assert self.format.detect(store, names(store))

    def test_what_is_known_of_shards_before_they_are_opened_is_right(
        self, store: Store, dataset: Dataset, shards: list[Shard]
    ) -> None:
        assert len({ref.name for ref in dataset.shards}) == len(dataset.shards) > 0
        for ref, shard in zip(dataset.shards, shards, strict=True):
            assert all(ref.name.split("/"))
            assert ref.records in (None, len(shard))
            if ref.file:
                entry = store.stat(ref.file)
                assert (entry.version, entry.mtime_ns) == (ref.version, ref.mtime_ns)
                assert dataset.owns(ref.file)

    def test_what_is_known_of_the_dataset_fits_json(self, dataset: Dataset) -> None:
        assert dataset.format
        assert json.loads(json.dumps(dataset.info())) is not None

    def test_files_of_others_are_not_its_own(self, dataset: Dataset) -> None:
        assert not dataset.owns("README.md")
        assert not dataset.owns("somewhere/else.jpg")

    # --- shards ---

    def test_keys_are_one_for_each_record_and_found(self, shards: list[Shard]) -> None:
        for shard in shards:
            keys = [shard.key(number) for number in range(len(shard))]
            assert len(set(keys)) == len(keys)
            assert all(all(key.split("/")) for key in keys)
            assert shard.nested or not any("/" in key for key in keys)
            for number in (0, len(keys) // 2, len(keys) - 1) if keys else ():
                assert shard.find(keys[number]) == number

    def test_what_is_no_key_is_not_found(self, shards: list[Shard]) -> None:
        for shard in shards:
            for key in ("", "no such key", "-1", "9" * 30, "/", "..", "\udcff"):
                assert shard.find(key) is None

    def test_there_are_as_many_records_as_it_says(self, shards: list[Shard]) -> None:
        for shard in shards:
            count = len(shard)
            assert all(shard.has(number) for number in range(count))
            assert not shard.has(count)
            assert not shard.has(-1)
            assert shard.capacity >= count + shard.loose

    def test_sizes_are_exact(self, shards: list[Shard]) -> None:
        for field in each_field(shards):
            size = field.data.size()
            assert len(field.data.read(0, size + 10)) == size
            assert field.data.size() == size
            assert len(field.data.read(size, 10)) == 0

    def test_fields_are_those_of_the_columns(self, shards: list[Shard]) -> None:
        for shard in shards:
            found = {field.name for field in each_field([shard])}
            assert found <= set(shard.columns)
            assert len(set(shard.columns)) == len(shard.columns)

    def test_without_waiting_fields_answer_right_or_would_block(
        self, dataset: Dataset, shards: list[Shard]
    ) -> None:
        for number, shard in enumerate(shards):
            again = dataset.open_shard(number)
            for record in some(shard):
                patient = digests(shard, record)
                try:
                    with no_wait():
                        assert digests(again, record) == patient
                except WouldBlock:
                    assert digests(again, record) == patient

    def test_many_threads_see_the_same(self, dataset: Dataset, shards: list[Shard]) -> None:
        for number, shard in enumerate(shards[:3]):
            expected = [digests(shard, record) for record in some(shard)]
            shared = dataset.open_shard(number)
            with ThreadPoolExecutor(8) as pool:
                for got in pool.map(
                    lambda _, shared=shared: [digests(shared, record) for record in some(shared)],
                    range(8),
                ):
                    assert got == expected

    def test_what_was_handed_out_outlives_its_shard(
        self, dataset: Dataset, shards: list[Shard]
    ) -> None:
        for number, shard in enumerate(shards):
            if not len(shard):
                continue
            expected = digests(shard, 0)
            held = dataset.open_shard(number)
            fields = held.fields(0)
            held.close()
            held.close()
            assert [(field.name, digest(field)) for field in fields] == expected

    # --- hostile input ---

    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(seed=integers(0, 2**32))
    def test_damage_of_any_kind_is_an_error_that_has_a_name(self, source: Path, seed: int) -> None:
        files = {
            path.relative_to(source).as_posix(): path.read_bytes()
            for path in source.rglob("*")
            if path.is_file()
        }
        chance = random.Random(seed)
        for _ in range(chance.choice((1, 1, 2, 5))):
            path = chance.choice(sorted(files))
            files[path] = damaged(files[path], chance)
        use_all(self, MemoryStore(files))


def names(store: Store) -> list[str]:
    return [entry.name for entry in store.list() if not entry.is_dir]


def some(shard: Shard) -> list[int]:
    return sorted({*range(len(shard))[:SOME], *range(len(shard))[-SOME:]})


def each_field(shards: list[Shard]) -> Iterator[Field]:
    for shard in shards:
        for record in some(shard):
            yield from shard.fields(record)


def digest(field: Field) -> str:
    return hashlib.sha256(read_all(field.data)).hexdigest()


def digests(shard: Shard, record: int) -> list[tuple[str, str]]:
    return [(field.name, digest(field)) for field in shard.fields(record)]


NUMBERS = (b"-1", b"0", b"1e99", b"18446744073709551616", b"4294967295", b"null", b'"x"', b"[]")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """*data* with one thing wrong."""
    at = chance.randrange(len(data) + 1)
    stop = min(at + chance.choice((1, 4, 8, 100)), len(data))
    digits = [i for i, byte in enumerate(data[:100_000]) if 48 <= byte < 58]
    ways = [
        data[:at],
        data[:at] + chance.randbytes(stop - at) + data[stop:],
        data[:at] + bytes([255] * (stop - at)) + data[stop:],
        data[:at] + data[stop:],
        data[:at] + data[at:stop] * 2 + data[stop:],
        data[:at] + chance.randbytes(4) + data[at:],
    ]
    if digits:
        digit = chance.choice(digits)
        ways += [data[:digit] + chance.choice(NUMBERS) + data[digit + 1 :]] * 4
    return chance.choice(ways)


def use_all(contract: FormatContract, store: MemoryStore) -> None:
    """Do with a dataset what a tree does, as far as it goes."""
    presenter = Presenter(FakeServices().memory, raw=False)
    try:
        if not contract.format.detect(store, names(store)):
            return
        dataset = contract.opened(store, max_chunk_size=64 << 20)
        refs = list(dataset.shards)
    except ShardfsError:
        return
    for number, ref in enumerate(refs):
        assert ref.name
        try:
            shard = dataset.open_shard(number)
            records = some(shard)
        except ShardfsError:
            continue
        for record in records:
            try:
                assert shard.find(shard.key(record)) == record
                files = presenter.files(shard.fields(record))
            except ShardfsError:
                continue
            for file in files:
                try:
                    size = file.blob.size()
                    assert len(file.blob.read(0, min(size, 1 << 20))) == min(size, 1 << 20)
                except ShardfsError:
                    continue
