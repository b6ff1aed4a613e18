"""Views against their models: NumPy for numbers and headers, the whole content for the sniffed head."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from shardfs.blob import Bytes, read_all
from shardfs.cache.memory import Memory
from shardfs.model import Array, Encoded, Field, Items, Kind, Pixels, Scalar
from shardfs.numbers import scalar_text
from shardfs.views.present import Presenter
from shardfs.views.signatures import _TABLE, HEAD
from shardfs.views.sniff import extension

PRESENTER = Presenter(Memory(1 << 20), raw=False)
MAGIC = st.sampled_from([row[0] for row in _TABLE])

dtypes = st.sampled_from(
    [
        f"{order}{kind}"
        for order in "<>"
        for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")
    ]
    + ["|b1", "|i1", "|u1", "<c8", ">c16"]
)


@given(data=st.data(), dtype=dtypes)
def test_scalar_text_reads_back_as_the_same_bytes(data: st.DataObject, dtype: str) -> None:
    value = data.draw(npst.arrays(dtype, ()))
    text = scalar_text(dtype, value.tobytes())
    assert text is not None
    if value.dtype.kind == "b":
        assert text == str(bool(value)).lower()
        return
    back = np.array(complex(text) if value.dtype.kind == "c" else value.dtype.type(text), dtype)
    if value.dtype.kind == "c":
        # NaN has no sign that text could carry
        np.testing.assert_array_equal(back, value)
    elif np.isnan(value):
        assert text == "nan"
    else:
        assert back.tobytes() == value.tobytes()


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(2.0**-44)
@example(9.8607613e-32)
def test_no_float_takes_more_room_than_numpy_needs(value: float) -> None:
    single = np.float32(value)
    text = scalar_text("<f4", single.tobytes())
    assert text is not None
    assert len(text) <= max(len(str(single)), len(np.format_float_positional(single, trim="0")))


@given(
    array=npst.arrays(
        dtypes.filter(lambda dtype: dtype[1] != "c"), npst.array_shapes(min_dims=0, min_side=0)
    ),
    skip=st.integers(0, 9),
)
def test_numpy_loads_every_array(array: np.ndarray[Any, Any], skip: int) -> None:
    field = Field(
        "x", Array(array.dtype.str, array.shape, skip), Bytes(bytes(skip) + array.tobytes())
    )
    (file,) = PRESENTER.files([field])
    loaded = np.load(io.BytesIO(read_all(file.blob)), allow_pickle=False)
    assert (file.extension, loaded.dtype.str, loaded.shape) == (
        ".npy",
        array.dtype.str,
        array.shape,
    )
    assert loaded.tobytes() == array.tobytes()


contents = st.one_of(
    st.binary(max_size=600),
    st.builds(bytes.__add__, MAGIC, st.binary(max_size=600)),
    st.builds(lambda magic, rest: magic + rest * 20, MAGIC, st.binary(min_size=250, max_size=400)),
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


@given(content=contents, declared=st.sampled_from(["", ".bin", ".jpg", ".mp4", ".docx"]))
def test_sniffing_never_fails_and_always_answers_with_a_suffix(
    content: bytes, declared: str
) -> None:
    for size in (len(content), len(content) + 1, 1 << 40):
        found = extension(content[:HEAD], size, declared, "x.raw")
        assert re.fullmatch(r"\.[a-z0-9]+", found)
        assert found == extension(content, size, declared, "x.raw")


@given(magic=MAGIC, length=st.integers(0, 600))
def test_a_magic_number_alone_is_no_reason_to_fail(magic: bytes, length: int) -> None:
    for filler in (b"\0", b"\xff", b"A"):
        content = (magic + filler * length)[:length]
        assert extension(content, len(content)).startswith(".")


@given(text=st.text(max_size=6000))
def test_text_is_text_wherever_the_head_ends(text: str) -> None:
    content = re.sub(
        r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "", f"Say: {text * 20}"
    ).encode()
    assert extension(content[:HEAD], len(content)) == ".txt"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    value=st.lists(json_values, min_size=1),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    cut=st.integers(1, 200),
)
def test_json_is_json_wherever_the_head_ends(
    value: list[object], indent: int | None, ascii_only: bool, cut: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    content = re.sub(r"[\x7f-\x9f]", "", text).encode("utf-8", "ignore")
    assert extension(content[:cut], len(content)) == ".json"


kinds: st.SearchStrategy[Kind] = st.one_of(
    st.just(Encoded()),
    st.just(Pixels()),
    st.builds(Scalar, dtypes),
    st.builds(
        Array, dtypes, st.lists(st.integers(-1, 4), max_size=3).map(tuple), st.integers(0, 5)
    ),
)
spans = st.lists(st.tuples(st.integers(-1, 40), st.integers(-1, 40)), max_size=3).map(tuple)


@given(
    kind=kinds | st.builds(Items, kinds, spans),
    data=st.binary(max_size=64),
)
def test_any_bytes_under_any_kind_are_files(kind: Kind, data: bytes) -> None:
    files = PRESENTER.files([Field("x", kind, Bytes(data))])
    assert files or (isinstance(kind, Items) and not kind.spans)
    for file in files:
        assert file.stem == "x"
        assert file.extension.startswith(".")


@pytest.mark.parametrize("mode", ["L", "RGB", "1", "I;16B"])
@given(width=st.integers(0, 9), height=st.integers(0, 9), pixels=st.binary(max_size=250))
def test_pixels_are_an_image_exactly_where_the_sizes_agree(
    mode: str, width: int, height: int, pixels: bytes
) -> None:
    bits = {"L": 8, "RGB": 24, "1": 1, "I;16B": 16}[mode]
    fits = width > 0 and height > 0 and height * -(-width * bits // 8) == len(pixels)
    head = b"".join(part.to_bytes(4, "little") for part in (width, height, len(mode)))
    (file,) = PRESENTER.files([Field("x", Pixels(), Bytes(head + mode.encode() + pixels))])
    assert file.extension == (".tif" if fits else ".bin")
