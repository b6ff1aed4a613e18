"""How the columns of a table become fields of records, for Arrow files and for Parquet alike.

A ``Column`` is made of an Arrow field and what Hugging Face's features say of it: ``_features.columns_of`` chooses its
form. Where its values lie, ``Cells`` know. A column asks them for no more than the ``access`` of its form says, so that
a format which finds plain values by itself need not know nested ones. Nothing here decodes a value before somebody
looks at it, and sizes of bytes and texts are those of their blobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from shardfs.blob import Blob, Broken, Concat, read_all
from shardfs.errors import ShardfsError, TooLarge, Unreadable
from shardfs.formats.shared.jsontext import compact
from shardfs.formats.shared.offsets import MAX_ITEMS
from shardfs.model import Array, Encoded, Field, Items, Kind, Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shardfs.model import Services

# What a value may come to as JSON, counted as below: more than a person or a program expects in a piece of JSON, and
# what a few stored bytes can claim, since dictionaries and runs of equal values tell it many times.
_MAX_COST = 1 << 27
# What a value costs beside its bytes. A guess at what Python takes.
_VALUE_COST = 16


class Budget:
    """How much one value may still come to as JSON."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MAX_COST

    def spend(self, values: int) -> None:
        """Take *values* more into the JSON. Raises TooLarge."""
        self.spend_bytes(values * _VALUE_COST)

    def spend_bytes(self, count: int) -> None:
        """Take *count* more bytes into the JSON. Raises TooLarge."""
        self._left -= count
        if self._left < 0:
            raise TooLarge(f"a nested value that comes to more than {_MAX_COST} bytes of JSON")


class Cells(Protocol):
    """The values of a column, or of a part of a nested one, over some rows; they are numbered from 0.

    Immutable and thread-safe; reads obey ``blob.no_wait``. Every method raises Corrupt where the stored bytes
    contradict the format or the numbers lead outside.
    """

    def is_null(self, index: int, /) -> bool:
        """Whether a value is null; for a member of a struct, without regard to the struct."""
        ...

    def stored(self, index: int, /) -> Blob:
        """The bytes of a value: of text and binary its content, of fixed width the value in little-endian.

        A truth value is one byte, 0 or 1. A dictionary is looked up already. Undefined for a null.
        """
        ...

    def child(self, number: int, /) -> Cells:
        """The members *number* of structs, under the same index; the items of lists are child 0."""
        ...

    def span(self, index: int, /) -> tuple[int, int]:
        """(start, stop): which of the items are those of a list."""
        ...

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        """The span of the lists from *start* to *stop* together.

        None unless each has *size* items, they lie side by side, and none is null.
        """
        ...

    def run(self, start: int, stop: int, /) -> Blob | None:
        """The bytes of the numbers or truth values from *start* to *stop*, side by side; None if one is null."""
        ...

    def values(self, start: int, stop: int, budget: Budget, /) -> Sequence[Any]:
        """The values from *start* to *stop* as ``_json.compact`` takes them. Raises TooLarge."""
        ...


class Access(Enum):
    """What a form needs of the cells."""

    STORED = "is_null and stored"
    MEDIA = "is_null; of the children `bytes` and `path`, is_null and stored"
    ANY = "everything"


class Form(Protocol):
    """How the values of a column become fields."""

    @property
    def access(self) -> Access: ...

    @property
    def kind(self) -> Kind:
        """What the fields are, as far as that is known without a look at one."""
        ...

    def field(self, name: str, cells: Cells, index: int, services: Services, /) -> Field | None:
        """The field of a value that is not null; None where there is nothing all the same. Raises Corrupt."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; names may be empty, and may be there twice."""

    name: str
    form: Form

    def field(self, cells: Cells, index: int, services: Services) -> Field | None:
        """The field of a row, None where there is nothing: a null. Raises Corrupt."""
        if cells.is_null(index):
            return None
        return self.form.field(self.name, cells, index, services)


def row_fields(
    columns: Iterable[Column], cells: Callable[[int], Cells], index: int, services: Services
) -> list[Field]:
    """The fields of a row; one that can't be read is a field all the same, of a ``Broken`` blob.

    *cells* gives the values of a column by its number.
    """
    fields = []
    for number, column in enumerate(columns):
        try:
            field = column.field(cells(number), index, services)
        except Unreadable:
            raise
        except ShardfsError as error:
            field = Field(column.name, column.form.kind, Broken(error.again()))
        if field is not None:
            fields.append(field)
    return fields


# --- forms -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """Values whose stored bytes are what their kind says."""

    access: ClassVar[Access] = Access.STORED
    kind: Kind

    def field(self, name: str, cells: Cells, index: int, _: Services, /) -> Field | None:
        return Field(name, self.kind, cells.stored(index))


@dataclass(frozen=True, slots=True)
class Nothing:
    """The type of which all values are null."""

    access: ClassVar[Access] = Access.STORED
    kind: ClassVar[Kind] = Plain(".txt")

    def field(self, *_: object) -> Field | None:
        return None


@dataclass(frozen=True, slots=True)
class Media:
    """Structs of the bytes of a file and its path, which is a hint and no more: members number *content* and *path*.

    Where there are no bytes, the content is elsewhere and there is nothing to show.
    """

    access: ClassVar[Access] = Access.MEDIA
    kind: ClassVar[Kind] = Encoded()
    content: int
    path: int

    def field(self, name: str, cells: Cells, index: int, _: Services, /) -> Field | None:
        content = self.bytes(cells, index)
        if content is None:
            return None
        paths = cells.child(self.path)
        if paths.is_null(index):
            return Field(name, self.kind, content)
        hint = str(read_all(paths.stored(index)), "utf-8", "replace")
        return Field(name, Encoded(hint=hint), content)

    def bytes(self, cells: Cells, index: int) -> Blob | None:
        """The content of a file, None where it is not here."""
        files = cells.child(self.content)
        return None if cells.is_null(index) or files.is_null(index) else files.stored(index)


@dataclass(frozen=True, slots=True)
class Binary:
    """Items of lists that are byte strings."""

    def bytes(self, cells: Cells, index: int) -> Blob | None:
        """The content of one, None for a null."""
        return None if cells.is_null(index) else cells.stored(index)


@dataclass(frozen=True, slots=True)
class Several:
    """Lists of media or byte strings: one file an item."""

    access: ClassVar[Access] = Access.ANY
    kind: ClassVar[Kind] = Items(Encoded(), ())
    item: Media | Binary

    def field(self, name: str, cells: Cells, index: int, _: Services, /) -> Field | None:
        start, stop = cells.span(index)
        if stop - start > MAX_ITEMS:
            raise TooLarge(f"a list of {stop - start} items, more than {MAX_ITEMS}")
        items = cells.child(0)
        blobs = [self.item.bytes(items, at) for at in range(start, stop)]
        spans, end = [], 0
        for blob in blobs:
            spans.append(None if blob is None else (end, blob.size()))
            end += 0 if blob is None else blob.size()
        content = Concat([blob for blob in blobs if blob is not None])
        return Field(name, Items(Encoded(), tuple(spans)), content)


@dataclass(frozen=True, slots=True)
class Json:
    """Values that are shown as JSON."""

    access: ClassVar[Access] = Access.ANY
    kind: ClassVar[Kind] = Plain(".json")

    def field(self, name: str, cells: Cells, index: int, services: Services, /) -> Field | None:
        def build() -> bytes:
            (value,) = cells.values(index, index + 1, Budget())
            return compact(value)

        return Field(name, self.kind, services.derive(build))


@dataclass(frozen=True, slots=True)
class Block:
    """Nested lists of numbers that are an array: its stored elements, as they lie.

    Lists of other lengths, or with nulls in them, are no array and shown as JSON.

    Attributes:
        lengths: of the lists from the outermost inwards; None for the outermost where it has any length.
        shape: of the array; empty where it is just that of the lists.
    """

    access: ClassVar[Access] = Access.ANY
    dtype: str
    lengths: tuple[int | None, ...]
    shape: tuple[int, ...] = ()

    @property
    def kind(self) -> Kind:
        return Array(self.dtype, self.shape or tuple(length or 0 for length in self.lengths))

    def field(self, name: str, cells: Cells, index: int, services: Services, /) -> Field | None:
        elements = self._elements(cells, index)
        if elements is None:
            return Json().field(name, cells, index, services)
        start, stop = cells.span(index)
        lists = (stop - start, *(length or 0 for length in self.lengths[1:]))
        return Field(name, Array(self.dtype, self.shape or lists), elements)

    def _elements(self, cells: Cells, index: int) -> Blob | None:
        """The elements; None where the lists are no array."""
        start, stop = cells.span(index)
        if self.lengths[0] not in (None, stop - start):
            return None
        items = cells.child(0)
        for length in self.lengths[1:]:
            span = items.even(start, stop, length or 0)
            if span is None:
                return None
            (start, stop), items = span, items.child(0)
        return items.run(start, stop)
