from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shardfs.formats.shared.arrow.message import schema_of
from shardfs.formats.shared.features import columns_of, schema_features
from tests.arrow_files import encoded, files, shown

JPEG = b"\xff\xd8\xff\xe0\0\4JF\xff\xd9"
GIF = b"GIF89a\1\0\1\0\0\0\0;"
MEDIA = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def array_of(found: dict[str, bytes]) -> Any:
    assert list(found) == [".npy"]
    return np.load(io.BytesIO(found[".npy"]))


# --- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True]), {".txt": b"true\n"}),
        (pa.array([0.1], pa.float32()), {".txt": b"0.1\n"}),
        (pa.array([2**64 - 1], pa.uint64()), {".txt": b"18446744073709551615\n"}),
        (pa.array(["grün\n"]), {".txt": "grün\n".encode()}),
        (pa.array([""]), {".txt": b""}),
        (pa.array([JPEG]), {".jpg": JPEG}),
        (pa.array([b""]), {".bin": b""}),
        (pa.array([GIF], pa.binary(14)), {".gif": GIF}),
        (pa.array([None], pa.int8()), {}),
        (pa.array([None], pa.null()), {}),
        (pa.array(["x"]).dictionary_encode(), {".txt": b"x\n".strip()}),
        (pa.array([{"a": 1, "b": None}]), {".json": b'{"a":1,"b":null}\n'}),
        (pa.array([[float("nan"), -float("inf"), 0.1]]), {".json": b"[NaN,-Infinity,0.1]\n"}),
        (pa.array([[0.1]], pa.list_(pa.float32())), {".json": b"[0.1]\n"}),
        (pa.array([{"a": b"\0\xff"}]), {".json": b'{"a":"AP8="}\n'}),
        (
            pa.array([[("k", 1), ("k", None)]], pa.map_(pa.string(), pa.int8())),
            {".json": b'[["k",1],["k",null]]\n'},
        ),
        (pa.array([[]], pa.list_(pa.int8())), {".json": b"[]\n"}),
        (pa.array([{}], pa.struct([])), {".json": b"{}\n"}),
        (pa.array([["a", None]]), {".json": b'["a",null]\n'}),
    ],
    ids=str,
)
def test_values(array: pa.Array, expected: dict[str, bytes]) -> None:
    assert shown(array) == expected


def test_members_of_one_name_are_told_apart() -> None:
    array = pa.StructArray.from_arrays([pa.array([n]) for n in range(3)], ["a", "a", "a~1"])
    assert shown(array) == {".json": b'{"a":0,"a~1":1,"a~1~1":2}\n'}


def test_columns_of_one_name_are_two_fields() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], ["a", "a"])
    assert [column.name for column in columns_of(schema_of(table.schema.serialize()))] == ["a", "a"]


# --- extension types ---------------------------------------------------------------------------------------


def test_json_is_shown_as_it_is_stored() -> None:
    assert shown(pa.array(['{"k": [1]}'], pa.json_())) == {".json": b'{"k": [1]}'}
    assert shown(pa.array(["[]"]), feature={"_type": "Json"}) == {".json": b"[]"}


def test_an_unknown_extension_is_its_storage() -> None:
    type_ = pa.opaque(pa.int32(), "thing", "vendor")
    assert shown(pa.ExtensionArray.from_storage(type_, pa.array([7], pa.int32()))) == {
        ".txt": b"7\n"
    }


def test_tensors() -> None:
    cube = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(cube)
    assert np.array_equal(array_of(shown(array, 1)), cube[1])


# --- features ----------------------------------------------------------------------------------------------

LABEL = {"_type": "ClassLabel", "names": ["cat", "dog/wolf"]}


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0\tcat\n"), (1, "1\tdog/wolf\n"), (-1, "-1\n"), (2, "2\n")]
)
def test_labels_have_names(value: int, text: str) -> None:
    assert shown(pa.array([value]), feature=LABEL) == {".txt": text.encode()}


@pytest.mark.parametrize(
    "feature",
    [
        {"_type": "ClassLabel"},
        {"_type": "ClassLabel", "names": [1, 2]},
        {"_type": "ClassLabel", "names": "cat"},
        {"_type": ["ClassLabel"]},
        {"_type": "Array2D", "shape": [1]},
        {"_type": "Image"},
        "ClassLabel",
        [],
    ],
    ids=str,
)
def test_features_that_say_nothing_of_use_are_ignored(feature: Any) -> None:
    assert shown(pa.array([1]), feature=feature) == {".txt": b"1\n"}


def test_a_feature_that_does_not_fit_the_stored_type_is_ignored() -> None:
    assert shown(pa.array(["x"]), feature=LABEL) == {".txt": b"x"}


def test_features_of_the_schema_go_before_those_beside_it() -> None:
    described = json.dumps({"info": {"features": {"v": {"_type": "ClassLabel", "names": ["own"]}}}})
    table = pa.table({"v": [0]})
    assert files(encoded(table), 0, {"v": LABEL}) == {"v.txt": b"0\tcat\n"}
    table = table.replace_schema_metadata({"huggingface": described})
    assert files(encoded(table), 0, {"v": LABEL}) == {"v.txt": b"0\town\n"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"info": 1}', '{"info": {"features": []}}', "[" * 100_000]
)
def test_metadata_that_is_no_description_has_no_features(text: str) -> None:
    schema = pa.schema([("v", pa.int8())], metadata={"huggingface": text})
    assert schema_features(schema_of(schema.serialize())) == {}


# --- media -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"bytes": JPEG, "path": "lies.png"}, {".jpg": JPEG}),
        ({"bytes": JPEG, "path": None}, {".jpg": JPEG}),
        ({"bytes": b"\x01\x02", "path": "a.b/c.Nii"}, {".nii": b"\x01\x02"}),
        ({"bytes": b"\x01\x02", "path": None}, {".bin": b"\x01\x02"}),
        ({"bytes": None, "path": "elsewhere.png"}, {}),
        ({"bytes": None, "path": None}, {}),
        (None, {}),
    ],
)
def test_media(value: Any, expected: dict[str, bytes]) -> None:
    found = shown(pa.array([value], MEDIA))
    assert {name.lower(): content for name, content in found.items()} == expected


@pytest.mark.parametrize(
    "type_",
    [
        pa.struct([("path", pa.large_string()), ("bytes", pa.large_binary())]),
        pa.struct([("bytes", pa.binary_view()), ("path", pa.string_view())]),
    ],
    ids=str,
)
def test_media_of_other_widths(type_: pa.DataType) -> None:
    assert shown(pa.array([{"bytes": JPEG * 9, "path": "x"}], type_)) == {".jpg": JPEG * 9}


@pytest.mark.parametrize(
    "type_",
    [
        pa.struct([("bytes", pa.binary()), ("path", pa.int8())]),
        pa.struct([("bytes", pa.string()), ("path", pa.string())]),
        pa.struct([("bytes", pa.binary()), ("path", pa.string()), ("rate", pa.int8())]),
        pa.struct([("bytes", pa.binary()), ("bytes", pa.binary())]),
    ],
    ids=str,
)
def test_structs_that_are_no_media(type_: pa.DataType) -> None:
    arrays = [pa.array([None], field.type) for field in type_]
    assert list(shown(pa.StructArray.from_arrays(arrays, fields=list(type_)))) == [".json"]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, lambda t: pa.list_(t, 3)])
def test_lists_of_media_are_a_file_an_item(kind: Any) -> None:
    items = [
        {"bytes": JPEG, "path": "a"},
        {"bytes": None, "path": "b"},
        {"bytes": GIF, "path": None},
    ]
    assert shown(pa.array([items], kind(MEDIA))) == {".0.jpg": JPEG, ".2.gif": GIF}
    assert shown(pa.array([[None, *items[:2]]], kind(MEDIA))) == {".1.jpg": JPEG}


def test_lists_of_bytes_are_a_file_an_item() -> None:
    array = pa.array([[JPEG, None, b"", b"text"], []])
    assert shown(array) == {".0.jpg": JPEG, ".2.bin": b"", ".3.txt": b"text"}
    assert shown(array, 1) == {}
    assert files(encoded(pa.table({"v": array})), 0, raw=True) == {"v.bin": JPEG + b"text"}


def test_lists_of_uuids_are_json() -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    array = pa.ListArray.from_arrays([0, 1], ids)
    assert shown(array) == {".json": b'["00000000-0000-0000-0000-000000000000"]\n'}


# --- arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "bool"]
)
def test_fixed_lists_are_arrays(dtype: str) -> None:
    rows = np.arange(6).reshape(2, 3).astype(dtype)
    flat = pa.array(list(rows.ravel()), pa.from_numpy_dtype(rows.dtype))
    found = array_of(shown(pa.FixedSizeListArray.from_arrays(flat, 3), 1))
    assert found.dtype == rows.dtype
    assert np.array_equal(found, rows[1])


def test_fixed_lists_of_fixed_lists_are_arrays() -> None:
    array = pa.array([[[1, 2, 3], [4, 5, 6]]], pa.list_(pa.list_(pa.int8(), 3), 2))
    assert np.array_equal(array_of(shown(array)), np.array([[1, 2, 3], [4, 5, 6]], np.int8))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.list_(pa.int8(), 2), [1, None]),
        (pa.list_(pa.list_(pa.int8(), 1), 2), [[1], None]),
        (pa.list_(pa.bool_(), 2), [None, True]),
        (pa.list_(pa.string(), 1), ["a"]),
        (pa.list_(pa.list_(pa.int8(), 1)), [[1]]),
    ],
    ids=str,
)
def test_lists_that_are_no_arrays_are_json(type_: pa.DataType, value: Any) -> None:
    found = shown(pa.array([value], type_))
    assert json.loads(found[".json"]) == value


NESTED = pa.list_(pa.list_(pa.int32()))


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("shape", [[2, 3], [None, 3]])
def test_declared_arrays(kind: Any, shape: list[int | None]) -> None:
    array = pa.array([None, [[1, 2, 3], [4, 5, 6]]], kind(kind(pa.int32())))
    feature = {"_type": "Array2D", "shape": shape, "dtype": "int32"}
    assert np.array_equal(array_of(shown(array, 1, feature)), [[1, 2, 3], [4, 5, 6]])
    assert shown(array, 0, feature) == {}


def test_arrays_declared_by_their_extension_type() -> None:
    metadata = {
        "ARROW:extension:name": "datasets.features.features.Array2DExtensionType",
        "ARROW:extension:metadata": '[[null, 2], "int32"]',
    }
    schema = pa.schema([pa.field("v", NESTED, metadata=metadata)])
    table = pa.Table.from_arrays([pa.array([[[1, 2]], []], NESTED)], schema=schema)
    found = [files(encoded(table), row)["v.npy"] for row in range(2)]
    assert [np.load(io.BytesIO(data)).shape for data in found] == [(1, 2), (0, 2)]


@pytest.mark.parametrize("value", [[[1, 2]], [[1, 2], [3]], [[1, 2], None], [[1, 2], [3, None]]])
def test_arrays_that_are_not_as_declared_are_json(value: Any) -> None:
    feature = {"_type": "Array2D", "shape": [2, 2], "dtype": "int32"}
    assert json.loads(shown(pa.array([value], NESTED), 0, feature)[".json"]) == value


@pytest.mark.parametrize(
    "shape", [[], [2], [2, None], [2, -1], [2, 1.0], [2, True], "22", None, [1] * 100]
)
def test_shapes_that_are_none_are_ignored(shape: Any) -> None:
    feature = {"_type": "Array2D", "shape": shape, "dtype": "int32"}
    assert list(shown(pa.array([[[1]]], NESTED), 0, feature)) == [".json"]
