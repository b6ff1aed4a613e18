from __future__ import annotations

import errno

import pytest

from shardfs.errors import Corrupt, NoKey, ShardfsError, located
from shardfs.system.mount_table import Busy

# What a program on the mount can act on.
ALLOWED = {errno.EIO, errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL}
ALLOWED |= {errno.ESTALE}
# What only the command line sees.
APART = {Busy}


def all_errors(kind: type[ShardfsError]) -> set[type[ShardfsError]]:
    return {kind}.union(*(all_errors(sub) for sub in kind.__subclasses__()))


def test_every_error_has_an_errno_a_program_can_act_on() -> None:
    assert {kind.errno for kind in all_errors(ShardfsError) - APART} <= ALLOWED


def test_places_read_from_the_outside_in_and_only_once() -> None:
    with (
        pytest.raises(Corrupt) as caught,
        located("shard"),
        located("record 5"),
        located("record 5"),
        located(""),
    ):
        raise Corrupt("too short")
    assert str(caught.value) == "shard: record 5: too short"


def test_a_copy_says_the_same_and_carries_no_traceback() -> None:
    try:
        with located("shard"):
            raise NoKey("encrypted")
    except NoKey as error:
        copy = error.again()
        assert type(copy) is NoKey
        assert str(copy) == "shard: encrypted"
        assert copy.__traceback__ is None


def test_other_exceptions_pass_untouched() -> None:
    with pytest.raises(ValueError, match=r"^plain$"), located("shard"):
        raise ValueError("plain")
