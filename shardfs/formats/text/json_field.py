"""Records that are in one member of a JSON document, which a README names as the `field`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardfs.blob import Slice
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.shared.json_values import MAX_PARSED, loaded, space_end, value_end
from shardfs.formats.text.json_items import Items
from shardfs.formats.text.rows import PIECE, before_damage

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.formats.text.rows import Text

# How far a member is looked for: what is in front of it is held. A guess.
_FURTHEST = 32 << 20


def place_of(blob: Blob, begin: int, field: str) -> int:
    """Where the value of the member *field* begins in the document at *begin*. Raises Corrupt, TooLarge."""
    length = MAX_PARSED
    while True:
        data = before_damage(blob, begin, length)
        try:
            place = _member(data.decode("latin-1"), field)
        except (ValueError, RecursionError, IndexError) as error:
            if len(data) < length:
                raise Corrupt(f"is no JSON object with the field {field[:99]!r}") from error
            if length >= _FURTHEST:
                raise TooLarge(
                    f"the field {field[:99]!r} is not within the first {_FURTHEST >> 20} MiB"
                ) from error
            length *= 2
            continue
        if place is None:
            raise Corrupt(f"has no field {field[:99]!r}")
        return begin + place


def _member(text: str, field: str) -> int | None:
    """Where the value of a member of the object *text* begins; None where it has none of that name.

    Raises ValueError, RecursionError, IndexError where the text ends before, or is no JSON.
    """
    at = space_end(text, 0)
    if text[at] != "{":
        raise ValueError("no object")
    at = space_end(text, at + 1)
    while text[at] != "}":
        end = value_end(text, at)
        name = loaded(text[at:end].encode("latin-1"))
        at = space_end(text, end)
        if text[at] != ":":
            raise ValueError("no value of a member")
        at = space_end(text, at + 1)
        if name == field and text[at]:
            return at
        at = space_end(text, value_end(text, at))
        if text[at] == ",":
            at = space_end(text, at + 1)
        elif text[at] != "}":
            raise ValueError("no end of a member")
    return None


def items_of(text: Text, place: int) -> Text:
    """The items of the array at *place*, and nothing of what is behind it."""
    blob, items, at = text.blob, Items(), place + 1
    while items.end < 0 and not items.fault and (data := before_damage(blob, at, PIECE)):
        items.feed(data, at)
        at += len(data)
    if items.end >= 0:
        return replace(
            text, blob=Slice(blob, 0, items.end), size=items.end, begin=place + 1, finder=Items
        )
    return replace(text, begin=place + 1, finder=Items)
