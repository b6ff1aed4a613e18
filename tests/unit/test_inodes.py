from __future__ import annotations

from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from shardfs.tree.inodes import (
    CONTROL,
    DAMAGED,
    FOLDER,
    INNER,
    MAX_SHARDS,
    ROOT,
    SHARD_ROOT,
    Places,
    Special,
    file_ino,
    folder_ino,
    is_folder,
    is_special,
    shard_ino,
    special_ino,
    split_file,
    split_folder,
    split_shard,
    split_special,
)

counts = sampled_from([0, 1, 2, 999, 10**6, 2**31 - 2])


@given(shard=integers(0, MAX_SHARDS - 1), count=counts, data=integers(0, 2**40))
def test_numbers_say_which_node_they_are(shard: int, count: int, data: int) -> None:
    places = Places(count)
    records = {SHARD_ROOT, 0, max(count - 1, 0), data % (count + 1)}
    for record in records:
        for field in (FOLDER, CONTROL, DAMAGED, 0, data % places.max_fields):
            ino = shard_ino(shard, places.pack(record, field))
            number, place = split_shard(ino)
            assert (number, places.unpack(place)) == (shard, (record, field))
            assert 0 < ino < 2**63
            assert not is_special(ino)
            assert not is_folder(ino)


def test_places_of_a_shard_are_distinct() -> None:
    places = Places(3)
    fields = (FOLDER, CONTROL, DAMAGED, 0, 1, places.max_fields - 1)
    packed = [places.pack(record, field) for record in range(-1, 3) for field in fields]
    packed.append(places.pack(INNER + 7, FOLDER))
    assert len(set(packed)) == len(packed)
    assert places.unpack(places.pack(INNER + 7, FOLDER)) == (INNER + 7, FOLDER)


def test_few_records_leave_room_for_many_fields() -> None:
    assert Places(1_000_000).max_fields > 1_000_000
    assert Places(2**31 - 2).max_fields >= 1000


def test_the_spaces_are_apart() -> None:
    assert folder_ino(0) == ROOT
    assert split_folder(folder_ino(41)) == 41
    assert is_folder(folder_ino(10**6))
    for kind in Special:
        ino = special_ino(kind, 5 << 32 | 7)
        assert is_special(ino)
        assert not is_folder(ino)
        assert ino < 2**63
        assert split_special(ino) == (kind, 5 << 32 | 7)


@given(folder=integers(0, 2**28 - 1), position=integers(0, 2**32 - 1))
def test_numbers_of_files_say_folder_and_position(folder: int, position: int) -> None:
    ino = file_ino(folder, position)
    assert is_special(ino)
    assert ino < 2**63
    assert split_special(ino)[0] is Special.FILE
    assert split_file(ino) == (folder, position)


@given(first=integers(0, MAX_SHARDS - 100_000), count=counts, data=integers(0, 2**40))
@settings(max_examples=5)
def test_one_place_in_many_shards_differs_in_the_bits_that_the_kernel_hashes(
    first: int, count: int, data: int
) -> None:
    places = Places(count)
    place = places.pack(data % (count + 1) - 1, data % places.max_fields)
    low = {shard_ino(shard, place) & 0xFFFFF for shard in range(first, first + 100_000)}
    assert len(low) == 100_000


def test_one_position_in_many_folders_differs_in_the_bits_that_the_kernel_hashes() -> None:
    assert len({file_ino(folder, 0) & 0xFFFFF for folder in range(100_000)}) == 100_000
