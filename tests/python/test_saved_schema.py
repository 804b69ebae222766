"""Tests that a file stores the Arrow schema of its source as Parquet files do, so that pyarrow reads it."""
import base64
import datetime
import decimal
import json
import pathlib
import tempfile
import unittest
import uuid

import pyarrow as pa

from program import FORMATS, tensilo, write

# pyarrow calls the items of lists `element` in Parquet files
ITEM = pa.field("element", pa.int8())
PAIR = pa.struct([pa.field("a", pa.large_string(), False), pa.field("b", pa.list_(ITEM), metadata={"k": "v"})])
COLUMNS = [
    (pa.field("plain", pa.int64(), False), [1, 2]),
    (pa.field("noted", pa.float32(), metadata={"unit": "m", "": "empty key"}), [0.5, None]),
    (pa.field("large", pa.large_string()), ["x", None]),
    (pa.field("view", pa.string_view()), ["x", None]),
    (pa.field("lists", pa.large_list(pa.field("element", pa.int16(), False))), [[1], [2, 3]]),
    (pa.field("fixed", pa.list_(pa.field("element", pa.float64()), 2)), [[1, 2], None]),
    (pa.field("map", pa.map_(pa.string(), pa.int32())), [[("a", 1)], []]),
    (pa.field("pair", PAIR), [{"a": "x", "b": [1]}, None]),
    (pa.field("time", pa.timestamp("us", "Europe/Zurich")), [datetime.datetime(2026, 1, 2), None]),
    (pa.field("price", pa.decimal128(20, 3)), [decimal.Decimal("1.250"), None]),
    (pa.field("id", pa.uuid()), [uuid.UUID(int=1).bytes, None]),
    (pa.field("day", pa.date32()), [datetime.date(2026, 1, 2), None]),
]
KEYED = pa.field("keyed", pa.dictionary(pa.int8(), pa.string(), ordered=True))


def saved_schema(file):
    """Returns the Arrow schema that a file stores."""
    value = json.loads(tensilo("inspect", "--json", file))["metadata"]["ARROW:schema"]
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))


class SavedSchema(unittest.TestCase):
    def test_pyarrow_reads_the_schema_of_the_source(self):
        fields = [*(field for field, _ in COLUMNS), KEYED]
        keyed = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), ["low", "high"], ordered=True)
        arrays = [*(pa.array(values, field.type) for field, values in COLUMNS), keyed]
        table = pa.table(arrays, pa.schema(fields, {"author": "me"}))
        for format in FORMATS:
            with self.subTest(format), tempfile.TemporaryDirectory() as folder:
                source, file, copy = (pathlib.Path(folder) / name for name in (f"a.{format}", "a.tsl", "b.tsl"))
                write(table, source)
                tensilo("convert", source, "-o", file)
                expected, found = table.schema.remove_metadata(), saved_schema(file)
                self.assertTrue(found.equals(expected), f"{found}\ninstead of\n{expected}")
                # the values of a dictionary are in the metadata of its field
                for i in range(len(COLUMNS)):
                    self.assertTrue(found.field(i).equals(expected.field(i), check_metadata=True), found.field(i))
                self.assertEqual(json.loads(found.field("keyed").metadata[b"tensilo.dictionary"]), ["low", "high"])
                tensilo("convert", file, "-o", copy, "--columns", "large,pair")
                self.assertTrue(saved_schema(copy).equals(pa.schema([expected.field("large"), expected.field("pair")])))


if __name__ == "__main__":
    unittest.main()
