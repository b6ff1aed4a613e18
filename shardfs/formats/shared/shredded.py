"""Columns of variants, of which parts may stand in columns of their own types.

https://github.com/apache/parquet-format/blob/master/VariantShredding.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shardfs.blob import read_all
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.types import BINARIES, LISTS, TEXTS, ArrowField, Type
from shardfs.formats.shared.column_text import UUID_EXTENSION
from shardfs.formats.shared.columns import Access, Budget
from shardfs.formats.shared.jsontext import compact
from shardfs.formats.shared.variant import EXTENSIONS, decimal_number, read_names, read_value
from shardfs.model import Field, Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.shared.columns import Cells
    from shardfs.model import Kind, Services

_METADATA, _VALUE, _TYPED = "metadata", "value", "typed_value"
# The types that parts may have, beside structs and lists.
_TYPES = TEXTS | BINARIES | {Type.BOOL, Type.DECIMAL, Type.DATE, Type.TIME, Type.TIMESTAMP}
_NUMBERS = ("|i1", "<i2", "<i4", "<i8", "<f4", "<f8")


class _Missing:
    """The value of a member that an object does not have."""


_MISSING = _Missing()


def is_variant(field: ArrowField) -> bool:
    """Whether a column holds variants."""
    if field.extension not in EXTENSIONS or field.type.type is not Type.STRUCT:
        return False
    return _METADATA in _numbers(field) and bool(_numbers(field).keys() & {_VALUE, _TYPED})


def variant_value(field: ArrowField, cells: Cells, index: int, budget: Budget) -> Any:
    """A variant as ``jsontext.compact`` takes it. Raises Corrupt, Unsupported, TooLarge."""
    names = read_names(read_all(cells.child(_numbers(field)[_METADATA]).stored(index)))
    value = _Assembler(names, budget).value(field, cells, index)
    return None if value is _MISSING else value


@dataclass(frozen=True, slots=True)
class Variant:
    """Variants, shown as JSON."""

    access: ClassVar[Access] = Access.ANY
    kind: ClassVar[Kind] = Plain(".json")
    column: ArrowField

    def field(self, name: str, cells: Cells, index: int, services: Services, /) -> Field | None:
        def build() -> bytes:
            return compact(variant_value(self.column, cells, index, Budget()))

        return Field(name, self.kind, services.derive(build))


def _numbers(field: ArrowField) -> dict[str, int]:
    return {child.name: number for number, child in enumerate(field.type.children)}


@dataclass(frozen=True, slots=True)
class _Assembler:
    """Puts values together whose members have the *names*."""

    names: Sequence[str]
    budget: Budget

    def value(self, group: ArrowField, cells: Cells, index: int) -> Any:
        """What a group of a value and a typed one stands for."""
        numbers = _numbers(group)
        rest = self._rest(cells, numbers, index)
        at = numbers.get(_TYPED)
        if at is None or cells.child(at).is_null(index):
            return rest
        field, typed = group.type.children[at], cells.child(at)
        if field.type.type is Type.STRUCT:
            return self._object(field, typed, index, rest)
        if rest is not _MISSING:
            raise Corrupt("a variant that has a value of its own and one of a type")
        if field.type.type in LISTS:
            return self._list(field, typed, index)
        return self._leaf(field, typed, index)

    def _rest(self, cells: Cells, numbers: dict[str, int], index: int) -> Any:
        """The value that is stored in binary."""
        at = numbers.get(_VALUE)
        if at is None or cells.child(at).is_null(index):
            return _MISSING
        return read_value(read_all(cells.child(at).stored(index)), self.names, self.budget)

    def _object(self, field: ArrowField, cells: Cells, index: int, rest: Any) -> dict[str, Any]:
        members: dict[str, Any] = {} if rest is _MISSING else rest
        if not isinstance(members, dict):
            raise Corrupt("a variant that is no object, with members that have types")
        for number, member in enumerate(field.type.children):
            part = cells.child(number)
            if member.type.type is not Type.STRUCT:
                raise Corrupt(f"a variant whose member {member.name!r} is no group")
            value = _MISSING if part.is_null(index) else self.value(member, part, index)
            if (
                value is not _MISSING
            ):  # which counts, should a writer have left the member in both places
                members[member.name] = value
        return dict(sorted(members.items()))

    def _list(self, field: ArrowField, cells: Cells, index: int) -> list[Any]:
        item, items = field.type.children[0], cells.child(0)
        if item.type.type is not Type.STRUCT:
            raise Corrupt("a variant whose items are no groups")
        self.budget.spend(cells.span(index)[1] - cells.span(index)[0])
        values = (self.value(item, items, at) for at in range(*cells.span(index)))
        return [None if value is _MISSING else value for value in values]

    def _leaf(self, field: ArrowField, cells: Cells, index: int) -> Any:
        type_ = field.type
        is_bytes = type_.type is Type.FIXED_BINARY and field.extension != UUID_EXTENSION
        if is_bytes or (type_.type not in _TYPES and type_.dtype not in _NUMBERS):
            raise Unsupported(f"a variant with parts of type {type_.type.name} is not supported")
        (value,) = cells.values(index, index + 1, self.budget)
        return decimal_number(value) if type_.type is Type.DECIMAL else value
