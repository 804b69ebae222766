#!/usr/bin/env python3
"""A second, independent reader of the tensilo file format, written from SPEC.md alone and meant to be read beside it.

    reader.py [--columns A,B] [--no-samples] FILE    prints what the file holds as one line of JSON
    reader.py --verify FILE                          prints "ok", or the first rule that is violated

Exit status: 0 good, 1 invalid file, 2 wrong usage, 3 cannot be read. Needs Python 3.9, and for Zstandard frames the
package "zstandard" (tried with 0.25)."""
import argparse, array, json, math, operator, struct, sys, zlib
from types import SimpleNamespace as Record
from typing import Iterator, Optional

# ---- 1. Words and notation -------------------------------------------------------------------------------------------
class Violation(Exception):
    def __init__(self, rule, message, offset=None):
        self.rule, self.message, self.offset = rule, message, offset

    def __str__(self):
        return f"{self.rule}: {self.message} (offset {self.offset})"

def check(condition, rule, message, offset=None):  # without an offset, File supplies that of the region it looks at
    if not condition:
        raise Violation(rule, message, offset)

def align(x, a):
    return -(-x // a) * a

def is_zero(data):
    return data.count(0) == len(data)

def text(data, rule, what):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Violation(rule, f"{what} is not UTF-8") from None

class Fields:
    """Takes the fields of a block one after the other; one that reaches beyond the block violates `rule`."""
    def __init__(self, block, rule):
        self.block, self.rule, self.position = block, rule, 0

    def take(self, size):
        check(size <= len(self.block) - self.position, self.rule, "a field reaches beyond the block")
        self.position += size
        return self.block[self.position - size:self.position]

    def unpack(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def end(self):
        check(self.position == len(self.block), self.rule, "the block does not end where its fields end")

# ---- 8. Limits -------------------------------------------------------------------------------------------------------
MAX_COLUMNS = MAX_MAP_ENTRIES = MAX_TABLES = MAX_RUNS = 65536
MAX_NAME, MAX_VALUE, MAX_RANK, MAX_CHUNK_SAMPLES, MAX_SAMPLES = 1024, 1 << 20, 16, 1 << 24, (1 << 63) - 1
MAX_CHUNK, MAX_CHUNK_OF_SEVERAL = (1 << 32) - (1 << 16), 64 << 20
VARYING = 0xFFFFFFFF  # the largest extent is one less

# ---- 2. Regions ------------------------------------------------------------------------------------------------------
HEADER, CHUNK, TABLE, INDEX, FOOTER, TRAILER = b"\x89TSL", b"TSLC", b"TSLT", b"TSLI", b"TSLF", b"TSLE"
BODY_LIMIT = {HEADER: 16 << 20, CHUNK: MAX_CHUNK, TABLE: 16 << 20, FOOTER: 256 << 20}  # the others
IN_COMMIT = (CHUNK, TABLE, INDEX, FOOTER)
MAY_FOLLOW = {HEADER: IN_COMMIT, CHUNK: IN_COMMIT, TABLE: IN_COMMIT, INDEX: (INDEX, FOOTER), FOOTER: (TRAILER,),
              TRAILER: IN_COMMIT}

def read_head(data, at, file_id=None, kind=None):
    """R-2.1 to R-2.4. f4, f32 and f48 are the fields whose meaning depends on the kind."""
    check(at + 64 <= len(data), "R-2.5", "the head reaches beyond the end of the file", at)
    raw = data[at:at + 64]
    magic, f4, own_id, offset, f32, body_bytes, f48, body_crc, head_crc = struct.unpack("<4s4s16sQ12sI8sII", raw)
    check(zlib.crc32(raw[:60]) == head_crc, "R-2.1", "head_crc is wrong", at)
    check(magic in MAY_FOLLOW and kind in (None, magic), "R-2.2", "magic is not one that may stand here", at)
    check(file_id in (None, own_id), "R-2.3", "file_id is not that of the header", at)
    check(offset == at, "R-2.4", f"offset says {offset}", at)
    return Record(magic=magic, file_id=own_id, offset=at, body_bytes=body_bytes, body_crc=body_crc,
                  f4=f4, f32=f32, f48=f48, end=at + 64 + body_bytes)

def read_region(data, at, file_id=None, kind=None):
    head = read_head(data, at, file_id, kind)
    check(head.end <= len(data), "R-2.5", "the body reaches beyond the end of the file", at)
    check(head.body_bytes <= BODY_LIMIT.get(head.magic, MAX_CHUNK), "R-2.5", "body_bytes is over its limit", at)
    head.body = data[at + 64:head.end]
    check(zlib.crc32(head.body) == head.body_crc, "R-2.6", "body_crc is wrong", at)
    return head

def read_next(data, previous, header):
    """Walks on to the region that follows `previous` (R-2.1 to R-2.9)."""
    e = previous.end
    s, c = align(e, 64), align(e + 64, header.alignment) - 64
    check(s < len(data), "R-2.9", "the file ends before the trailer of a commit", e)
    at = s
    if is_zero(data[s:s + 4]):
        check(c >= len(data) or not is_zero(data[c:c + 4]), "R-2.7", "no region stands where one must", s)
        at = c
    padding = data[e:at]
    if not is_zero(padding):
        wrong = e + len(padding) - len(padding.lstrip(b"\0"))
        try:  # is it a region in the wrong place?
            read_head(data, wrong // 64 * 64, header.file_id)
        except Violation:
            raise Violation("R-2.8", "padding is not zero", wrong) from None
        raise Violation("R-2.7", f"the region must not stand before {at}", wrong // 64 * 64)
    head = read_region(data, at, header.file_id)
    check(head.magic in MAY_FOLLOW[previous.magic], "R-2.9", f"{head.magic} follows {previous.magic}", at)
    place = c if head.magic in (CHUNK, TABLE) else s
    check(at == place, "R-2.7", f"the region must stand at {place}", at)
    return head

# ---- 3. Header and schema --------------------------------------------------------------------------------------------
DTYPES = {1: ("bf16", 2), 2: ("f16", 2), 3: ("f32", 4), 4: ("f64", 8), 5: ("i8", 1), 6: ("i16", 2), 7: ("i32", 4),
          8: ("i64", 8), 9: ("u8", 1), 10: ("u16", 2), 11: ("u32", 4), 12: ("u64", 8), 13: ("bool", 1),
          14: ("bytes", 1), 15: ("utf8", 1)}

def read_header(data):
    header = read_region(data, 0, kind=HEADER)
    incompat_flags, _, _ = struct.unpack("<III", header.f32)
    header.alignment, reserved = struct.unpack("<II", header.f48)
    check(header.f4 == b"\r\n\x1a\n" and reserved == 0, "R-3.1", "magic_tail or reserved field is wrong")
    check(incompat_flags == 0, "R-9.1", f"unknown incompat_flags {incompat_flags:#x}")
    check(header.alignment in (64, 4096), "R-3.2", f"alignment is {header.alignment}")
    fields = Fields(header.body, "R-3.3")
    column_count, = fields.unpack("I")
    check(column_count <= MAX_COLUMNS, "R-3.6", "too many columns")
    header.metadata = read_metadata(fields)
    header.columns = [read_column(fields) for _ in range(column_count)]
    fields.end()
    check(len({c.name for c in header.columns}) == column_count, "R-3.4", "two columns have the same name")
    return header

def read_metadata(fields):
    metadata, last_key = {}, b""
    count, = fields.unpack("I")
    check(count <= MAX_MAP_ENTRIES, "R-3.4", "too many metadata entries")
    for _ in range(count):
        key_bytes, = fields.unpack("I")
        check(1 <= key_bytes <= MAX_NAME, "R-3.4", "bad length of a metadata key")
        key = fields.take(key_bytes)
        check(key > last_key, "R-3.4", "metadata keys do not ascend")
        value_bytes, = fields.unpack("I")
        check(value_bytes <= MAX_VALUE, "R-3.4", "a metadata value is too long")
        metadata[text(key, "R-3.4", "a metadata key")] = text(fields.take(value_bytes), "R-3.4", "a metadata value")
        last_key = key
    return metadata

def read_column(fields):
    name_bytes, = fields.unpack("I")
    check(1 <= name_bytes <= MAX_NAME, "R-3.4", "bad length of a name")
    name = text(fields.take(name_bytes), "R-3.4", "a name")
    check(not any(c < " " or c == "\x7f" for c in name), "R-3.4", "a name has control characters")
    dtype, column_flags, rank, reserved = fields.unpack("BBBB")
    check(dtype in DTYPES, "R-3.5", f"unknown dtype {dtype}")
    check(column_flags < 4 and reserved == 0, "R-3.6", "reserved bits of a column are not zero")
    check(rank <= MAX_RANK, "R-3.6", f"rank is {rank}")
    extents = fields.unpack(f"{rank}I")
    column = Record(name=name, dtype=DTYPES[dtype][0], w=DTYPES[dtype][1], extents=extents, V=extents.count(VARYING),
                    inner=math.prod(x for x in extents if x != VARYING), nullable=bool(column_flags & 1), cast=None)
    check(column.dtype not in ("bytes", "utf8") or extents == (VARYING,), "R-3.5", "bytes or utf8 of wrong shape")
    check(column.inner * column.w <= MAX_CHUNK, "R-3.6", "inner x w is over its limit")
    if column_flags & 2:
        source, rounding, reserved = fields.unpack("BBH")
        check(dtype in (1, 2, 3) and source in (2, 3, 4) and source != dtype and rounding == 1, "R-3.7", "bad cast")
        check(reserved == 0, "R-3.6", "the reserved field of a cast is not zero")
        column.cast = {"source": DTYPES[source][0], "rounding": "nearest-even"}
    column.metadata = read_metadata(fields)
    # What the walk has seen of the column. An item of `chunks` is the index entry that the chunk must have; those from
    # `committed` on are of the commit that is being walked; those before `listed` have been found in an index page.
    column.chunks, column.committed, column.listed, column.page = [], 0, 0, None
    column.sample_count = column.raw_bytes = column.stored_bytes = column.null_count = 0
    column.encodings, column.tables, column.runs = {}, [], []
    return column

# ---- 4. Chunks -------------------------------------------------------------------------------------------------------
def read_chunk(head, columns):
    column_index, = struct.unpack("<I", head.f4)
    first_sample, n = struct.unpack("<QI", head.f32)
    raw_bytes, encoding, chunk_flags = struct.unpack("<IHH", head.f48)
    check(column_index < len(columns), "R-4.1", f"column is {column_index}")
    check(1 <= n <= MAX_CHUNK_SAMPLES and raw_bytes <= MAX_CHUNK, "R-4.1", "sample_count or raw_bytes outside limits")
    check(chunk_flags <= 1, "R-4.1", "reserved bits of chunk_flags are not zero")
    check(encoding in ENCODINGS, "R-5.1", f"unknown encoding {encoding}")
    column = columns[column_index]
    check(first_sample == column.sample_count, "R-4.2", f"the chunk does not begin at sample {column.sample_count}")
    check(n == 1 or raw_bytes <= MAX_CHUNK_OF_SEVERAL, "R-4.10", "a chunk of several samples is over 64 MiB")
    content = decode_chunk(column, n, raw_bytes, encoding, chunk_flags, head.body)
    column.chunks.append((head.offset, first_sample, head.body_bytes, n, head.body_crc, encoding, chunk_flags))
    column.sample_count += n
    column.raw_bytes += raw_bytes
    column.stored_bytes += head.body_bytes
    column.null_count += content.present.count(0)
    column.encodings = {**dict.fromkeys(content.encodings, 0), **column.encodings}
    column.encodings[encoding] += 1

def decode_chunk(column, n, raw_bytes, encoding, parts_flag, body):
    """present: 0 or 1 for each sample; dims: the extents, a list for each varying dimension; ends; values."""
    check(parts_flag or not column.V, "R-4.3", "parts is clear in a ragged column")
    validity, shape, values = (b"", 0, 0), (b"", 0, 0), (body, raw_bytes, encoding)
    if parts_flag:
        validity, shape, values = read_part_table(body, raw_bytes, encoding)
        check(column.V or validity[1], "R-4.3", "parts is set without need")
    present, dims, ends = [1] * n, [], None
    if validity[1]:
        check(column.nullable, "R-4.6", "validity in a column that is not nullable")
        check(validity[1] == align(n, 8) // 8, "R-4.5", "validity has the wrong length")
        bitmap = decode(*validity, 1)
        present = [bitmap[i >> 3] >> (i & 7) & 1 for i in range(n)]
        check(0 in present, "R-4.6", "validity is present though no sample is null")
        check(n % 8 == 0 or bitmap[-1] >> n % 8 == 0, "R-4.6", "validity bits after the last sample are not 0")
    if column.V:
        check(shape[1] == 4 * n * (1 if column.V == 1 else 1 + column.V), "R-4.5", "shape has the wrong length")
        numbers = array.array("I", decode(*shape, 4))
        if sys.byteorder == "big":
            numbers.byteswap()
        ends, dims = numbers[:n], [numbers[k:k + n] for k in range(n, len(numbers), n)]
        check(all(map(operator.le, ends, ends[1:])), "R-4.7", "ends descends")
        counts = array.array("I", map(operator.sub, ends, array.array("I", [0]) + ends[:-1]))
        dims = dims or [counts]
        check(all(map(operator.eq, map(math.prod, zip(*dims)), counts)), "R-4.7", "ends does not fit the extents")
        check(all(max(dim) < VARYING for dim in dims), "R-4.7", "an extent is over its limit")
    else:
        check(shape[1] == 0, "R-4.4", "shape is present in a fixed column")
    length = (ends[-1] if column.V else n) * column.inner * column.w
    check(values[1] == length, "R-4.5", f"the values should have {length} bytes decoded")
    content = Record(present=present, dims=dims, ends=ends, values=decode(*values, column.w),
                     encodings={part[2] for part in (validity, shape) if part[1]} | {encoding})
    check_values(column, n, content)
    return content

def read_part_table(body, raw_bytes, encoding):
    """For each part (stored bytes, raw_bytes, encoding)."""
    check(len(body) >= 64 and is_zero(body[48:64]), "R-4.4", "the part table is cut off or its end is not zero")
    parts, position = [], 64
    for entry in range(3):
        stored_bytes, part_raw, part_encoding, reserved = struct.unpack_from("<IIH6s", body, 16 * entry)
        end = position + stored_bytes
        following = align(end, 64) if entry < 2 else end
        check(following <= len(body), "R-4.4", "a part reaches beyond the end of the body")
        check(is_zero(reserved) and is_zero(body[end:following]), "R-4.4", "reserved or padding bytes are not zero")
        check(entry == 2 or part_raw or not (stored_bytes or part_encoding), "R-4.4", "an absent part is not all zero")
        parts.append((body[position:end], part_raw, part_encoding))
        position = following
    check(position == len(body), "R-4.4", "the body does not end where the values end")
    check(parts[2][2] == encoding, "R-4.4", "the encoding of the values is not that of the chunk head")
    check(sum(part[1] for part in parts) == raw_bytes, "R-4.4", "the raw_bytes of the parts do not add up")
    return parts

def sample_range(column, content, i):
    """Where the values of sample `i` of a chunk begin and end."""
    begin, end = (i, i + 1) if not column.V else (content.ends[i - 1] if i else 0, content.ends[i])
    return begin * column.inner * column.w, end * column.inner * column.w

def check_values(column, n, content):
    for i in range(n) if 0 in content.present or column.dtype == "utf8" else ():
        begin, end = sample_range(column, content, i)
        if not content.present[i]:
            check(not any(dim[i] for dim in content.dims), "R-4.8", "a null sample has an extent that is not 0")
            check(is_zero(content.values[begin:end]), "R-4.8", "the values of a null sample are not zero")
        if column.dtype == "utf8":
            text(content.values[begin:end], "R-4.9", "a sample of a utf8 column")
    if column.dtype == "bool":
        check(not content.values.translate(None, b"\0\1"), "R-4.9", "a bool is neither 0 nor 1")

def read_table(head, columns):
    column_index, table = struct.unpack("<II", head.f4 + head.f32[:4])
    check(column_index < len(columns), "R-4.11", f"column is {column_index}")
    check(is_zero(head.f32[4:] + head.f48), "R-4.11", "reserved fields are not zero")
    tables = columns[column_index].tables
    check(table == len(tables), "R-4.11", f"the number of the table is {table} instead of {len(tables)}")
    tables.append((column_index, table, head.offset, head.body_bytes, head.body_crc))

# ---- 5. Encodings ----------------------------------------------------------------------------------------------------
RAW, CONSTANT, BITSHUFFLE_ZSTD, ZSTD = 0, 1, 2, 3
ENCODINGS = {RAW: "raw", CONSTANT: "constant", BITSHUFFLE_ZSTD: "bitshuffle-zstd", ZSTD: "zstd"}

def decode(stored, length, encoding, element_bytes):
    """The caller has compared `length` with what the schema and the shape demand."""
    check(encoding in ENCODINGS, "R-5.1", f"unknown encoding {encoding}")
    if length == 0:
        check(encoding == RAW and not stored, "R-5.2", "an empty part is not raw with 0 stored bytes")
        return b""
    if encoding == RAW:
        check(len(stored) == length, "R-5.3", "stored and decoded length differ")
        return stored
    if encoding == CONSTANT:
        check(len(stored) == element_bytes and length % element_bytes == 0, "R-5.4", "not one whole element")
        return stored * (length // element_bytes)
    check(encoding == ZSTD or length % element_bytes == 0, "R-5.6", "not a whole number of elements")
    content = read_frame(stored, length)
    return content if encoding == ZSTD else unshuffle(content, element_bytes)

def read_frame(stored, length):
    import zstandard
    check(stored[:4] == b"\x28\xb5\x2f\xfd", "R-5.5", "the stored bytes are not a Zstandard frame")
    try:
        frame = zstandard.get_frame_parameters(stored)
        check(frame.content_size == length, "R-5.5", "the frame does not state the decoded length")
        check(frame.dict_id == 0, "R-5.5", "the frame names a dictionary")
        content = zstandard.ZstdDecompressor().decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Violation("R-5.5", f"not exactly one good frame: {error}") from None
    check(len(content) == length, "R-5.5", "the frame decodes to another length")
    return content

def unshuffle(shuffled, w):
    """Planes 8k to 8k + 7 hold byte k of all elements. Eight bytes, one from each of these planes, are an 8 x 8 matrix
    of bits; transposed, they are byte k of eight elements. 4096 matrices are transposed at once, as one integer."""
    m = len(shuffled) // w // 8
    result = bytearray(shuffled)  # the elements after the last group of eight are in place already
    for k in range(w):
        for begin in range(0, m, 4096):
            size = min(4096, m - begin)
            matrices = bytearray(8 * size)
            for row in range(8):
                plane = (8 * k + row) * m
                matrices[row::8] = shuffled[plane + begin:plane + begin + size]
            x = int.from_bytes(matrices, "little")
            for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
                swap = (x ^ x >> shift) & int.from_bytes(mask.to_bytes(8, "little") * size, "little")
                x ^= swap ^ swap << shift
            result[8 * begin * w + k:8 * (begin + size) * w:w] = x.to_bytes(8 * size, "little")
    return bytes(result)

# ---- 6. Index --------------------------------------------------------------------------------------------------------
def read_index_page(head, columns, previous):
    head.column, = struct.unpack("<I", head.f4)
    first_sample, head.entry_count = struct.unpack("<QI", head.f32)
    check(head.column < len(columns), "R-6.1", f"column is {head.column}")
    right = 1 <= head.entry_count <= 126 and head.body_bytes == 32 * head.entry_count
    check(right, "R-6.1", f"entry_count is {head.entry_count}, body_bytes {head.body_bytes}")
    entries = list(struct.iter_unpack("<QQIIIHH", head.body))
    check(first_sample == entries[0][1], "R-6.1", "first_sample is not that of the first entry")
    column = columns[head.column]
    if previous.magic == INDEX and previous.column == head.column:
        check(previous.entry_count == 126, "R-6.3", "a page that is not the last of its run is not full")
    else:
        check(previous.magic != INDEX or previous.column < head.column, "R-6.2", "columns do not ascend")
        column.page = head.offset
    check(struct.unpack("<Q", head.f48)[0] == column.listed, "R-6.2", "first_chunk is wrong")
    expected = column.chunks[column.listed:column.listed + head.entry_count]
    check(entries == expected, "R-6.2", "the entries are not the next chunks of the column")
    column.listed += head.entry_count

def end_runs(columns):
    """At a footer: all chunks of the commit stand in the index, and are a run of their column."""
    for column in columns:
        check(column.listed == len(column.chunks), "R-6.2", f"chunks of column {column.name!a} are not in the index")
        counts = [chunk[3] for chunk in column.chunks[column.committed:]]
        if counts:
            uniform = all(count == counts[0] for count in counts[:-1]) and counts[-1] <= counts[0]
            first_sample = column.chunks[column.committed][1]
            column.runs.append((column.page, first_sample, sum(counts), len(counts), counts[0] if uniform else 0, 0))
        column.committed = len(column.chunks)

# ---- 7. Footer, trailer, commits -------------------------------------------------------------------------------------
def read_footer(head, header):
    """What a footer says, with all checks that need only the header beside it."""
    commit, incompat_flags, sample_count = struct.unpack("<IIQ", head.f4 + head.f32[:4] + head.f48)
    check(incompat_flags == 0, "R-9.1", f"unknown incompat_flags {incompat_flags:#x}")
    check(sample_count <= MAX_SAMPLES, "R-7.5", "sample_count is over its limit")
    fields = Fields(head.body, "R-7.2")
    check(fields.take(*fields.unpack("I")) == header.body, "R-7.1", "schema is not that of the header")
    table_count, = fields.unpack("I")
    check(table_count <= MAX_TABLES, "R-7.2", "too many tables")
    tables = list(struct.iter_unpack("<IIQII", fields.take(24 * table_count)))
    return Record(commit=commit, sample_count=sample_count, tables=tables, end=fields.end,
                  facts=[read_facts(column, fields, sample_count, head.offset) for column in header.columns])

def read_facts(column, fields, sample_count, footer_offset):
    facts = Record()
    facts.raw_bytes, facts.stored_bytes, facts.null_count, facts.chunk_count = fields.unpack("QQQQ")
    run_count, encoding_count, reserved = fields.unpack("IHH")
    check(run_count <= MAX_RUNS, "R-7.2", "too many runs")
    encodings = list(struct.iter_unpack("<H6sQ", fields.take(16 * encoding_count)))
    facts.runs = list(struct.iter_unpack("<QQQQII", fields.take(40 * run_count)))
    facts.cast_facts = fields.unpack("8s8sQQ") if column.cast else None
    is_clear = reserved == 0 and all(is_zero(e[1]) for e in encodings) and all(run[5] == 0 for run in facts.runs)
    check(is_clear, "R-7.2", "reserved fields are not zero")
    facts.encodings = [(e[0], e[2]) for e in encodings]
    for e, _ in facts.encodings:
        check(e in ENCODINGS, "R-7.6", f"column {column.name!a} uses the unknown encoding {e}")
    samples = chunks = 0
    for offset, first_sample, run_samples, run_chunks, samples_per_chunk, _ in facts.runs:
        check(first_sample == samples, "R-7.3", "a run does not begin where the one before it ended")
        check(1 <= run_chunks <= run_samples, "R-7.3", "a run has no chunk, or fewer samples than chunks")
        by_division = -(-run_samples // samples_per_chunk) if samples_per_chunk else run_chunks
        check(run_chunks == by_division, "R-7.3", "the chunk count of a run does not fit samples_per_chunk")
        pages_end = offset + 64 * -(-run_chunks // 126) + 32 * run_chunks
        check(pages_end <= footer_offset, "R-7.3", "the pages of a run do not lie before the footer")
        samples, chunks = samples + run_samples, chunks + run_chunks
    check(samples == sample_count, "R-7.3", "the samples of the runs do not add up to sample_count")
    check(chunks == facts.chunk_count, "R-7.3", "the chunks of the runs do not add up to chunk_count")
    return facts

def check_facts(footer, columns):
    check(footer.tables == [t for column in columns for t in column.tables], "R-7.4", "the list of tables is wrong")
    for column, facts in zip(columns, footer.facts):
        for name in ("raw_bytes", "stored_bytes", "null_count", "runs"):
            check(getattr(facts, name) == getattr(column, name), "R-7.4", f"{name} of column {column.name!a} is wrong")
        check(facts.chunk_count == len(column.chunks), "R-7.4", f"chunk_count of column {column.name!a} is wrong")
        check(facts.encodings == sorted(column.encodings.items()), "R-7.4", f"encodings of {column.name!a} are wrong")

def find_last_trailer(data, file_id):
    """7.3: the offset of the last valid trailer and the region of its footer, or None for both."""
    at = data.rfind(TRAILER)
    while at >= 0:
        try:
            if at % 64 == 0:
                trailer = read_head(data, at, file_id, TRAILER)
                return at, read_region(data, struct.unpack_from("<Q", trailer.f32)[0], file_id, FOOTER)
        except Violation:
            pass
        at = data.rfind(TRAILER, 0, at + 3)
    return None, None

# ---- 10. Reading and verifying ---------------------------------------------------------------------------------------
class File:
    """A file that has been walked, with every check, from its header to its last valid trailer."""
    def __init__(self, data):
        self.data, self.at = data, 0
        try:
            self.header = read_header(data)
            self.last, footer = find_last_trailer(data, self.header.file_id)
            self.check_known(footer)
            self.walk()
        except Violation as violation:
            violation.offset = self.at if violation.offset is None else violation.offset
            raise
        self.tail_bytes = len(data) - self.last - 64

    def check_known(self, footer):
        """Refuses first what this reader does not know. Anything else is reported in the order of the file."""
        try:
            if footer:
                read_footer(footer, self.header)
        except Violation as violation:
            if violation.rule in ("R-7.6", "R-9.1"):
                self.at = footer.offset
                raise

    def walk(self):
        """If there is no valid trailer, this ends with the violation that is the cause of it."""
        columns, previous, last_trailer, commits, samples = self.header.columns, self.header, 0, 0, 0
        while last_trailer == 0 or last_trailer != self.last:
            self.at = previous.end
            head = read_next(self.data, previous, self.header)
            self.at = head.offset
            check(self.last is None or self.at <= self.last, "R-2.7", "the walk misses the last valid trailer")
            if head.magic == CHUNK:
                read_chunk(head, columns)
            elif head.magic == TABLE:
                read_table(head, columns)
            elif head.magic == INDEX:
                read_index_page(head, columns, previous)
            elif head.magic == FOOTER:
                end_runs(columns)
                self.footer = read_footer(head, self.header)
                self.footer.end()
                check(self.footer.commit == commits, "R-7.5", f"commit is {self.footer.commit} instead of {commits}")
                check(self.footer.sample_count >= samples, "R-7.5", "sample_count is less than in the commit before")
                check_facts(self.footer, columns)
                samples, commits = self.footer.sample_count, commits + 1
            else:
                trailer_flags, footer_offset, reserved = struct.unpack("<IQI", head.f4 + head.f32)
                right = head.body_bytes == reserved == 0 and trailer_flags < 2
                check(right, "R-7.7", "the body is not empty or a reserved field not zero")
                check(footer_offset == previous.offset, "R-7.7", "footer_offset is not the footer before the trailer")
                check(struct.unpack("<Q", head.f48)[0] == last_trailer, "R-7.7", "previous_trailer is wrong")
                last_trailer, self.finished = head.offset, bool(trailer_flags & 1)
            previous = head

    def describe(self):
        """All but the samples, as it is printed."""
        header, footer = self.header, self.footer
        return {"file_id": header.file_id.hex(), "alignment": header.alignment, "finished": self.finished,
                "tail_bytes": self.tail_bytes, "commits": footer.commit + 1, "sample_count": footer.sample_count,
                "metadata": header.metadata, "columns": list(map(describe_column, header.columns, footer.facts))}

    def samples(self, column) -> Iterator[Optional[dict]]:
        for offset, _, body_bytes, n, _, encoding, chunk_flags in column.chunks:
            raw_bytes, = struct.unpack_from("<I", self.data, offset + 48)
            body = self.data[offset + 64:offset + 64 + body_bytes]
            content = decode_chunk(column, n, raw_bytes, encoding, chunk_flags, body)
            for i in range(n):
                begin, end = sample_range(column, content, i)
                yield {"extents": [dim[i] for dim in content.dims],
                       "hex": content.values[begin:end].hex()} if content.present[i] else None

def describe_column(column, facts):
    cast = None
    if column.cast:
        absolute, relative, infinite, subnormal = facts.cast_facts
        cast = {**column.cast, "max_abs_error": absolute.hex(), "max_rel_error": relative.hex(),
                "to_infinite": infinite, "to_subnormal": subnormal}
    return {"name": column.name, "dtype": column.dtype, "shape": [None if x == VARYING else x for x in column.extents],
            "nullable": column.nullable, "cast": cast, "metadata": column.metadata, "chunk_count": facts.chunk_count,
            "raw_bytes": facts.raw_bytes, "stored_bytes": facts.stored_bytes, "null_count": facts.null_count,
            "encodings": {ENCODINGS[encoding]: count for encoding, count in facts.encodings}}

def read(data: bytes) -> dict:
    """All that a file holds. Raises a Violation."""
    file = File(data)
    result = file.describe()
    for described, column in zip(result["columns"], file.header.columns):
        described["samples"] = list(file.samples(column))
    return result

def verify(data: bytes) -> Optional[Violation]:
    """The first violation, or None."""
    try:
        file = File(data)
        check(file.tail_bytes == 0, "R-2.7", f"{file.tail_bytes} bytes after the last valid trailer", file.last + 64)
        check(file.finished, "R-7.8", "the last trailer is not finished", file.last)
    except Violation as violation:
        return violation
    return None

def print_json(file, wanted, out):
    """Prints what `read` returns, sample by sample, with the samples of the columns in `wanted` only."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    result = file.describe()
    columns = result.pop("columns")
    out.write(encode(result)[:-1] + ',"columns":[')
    for number, (described, column) in enumerate(zip(columns, file.header.columns)):
        out.write(",{"[number == 0:] + encode(described)[1:-1])
        if column.name in wanted:
            out.write(',"samples":[')
            for i, sample in enumerate(file.samples(column)):
                extents = ",".join(map(str, sample["extents"])) if sample else ""
                item = '{"extents":[%s],"hex":"%s"}' % (extents, sample["hex"]) if sample else "null"
                out.write(","[i == 0:] + item)
            out.write("]")
        out.write("}")
    out.write("]}\n")

def main():
    parser = argparse.ArgumentParser(description="Reads or verifies a tensilo file.")
    parser.add_argument("--verify", action="store_true", help="print ok, or the first rule that is violated")
    parser.add_argument("--columns", metavar="A,B", help="dump the samples of these columns only")
    parser.add_argument("--no-samples", action="store_true", help="dump no samples")
    parser.add_argument("FILE")
    arguments = parser.parse_args()
    try:
        with open(arguments.FILE, "rb") as stream:
            data = stream.read()
        if arguments.verify:
            violation = verify(data)
            print(violation or "ok")
            return 1 if violation else 0
        file = File(data)
        names = {column.name for column in file.header.columns}
        wanted = names if arguments.columns is None else set(arguments.columns.split(","))
        if not wanted <= names:
            parser.error(f"no such column: {', '.join(sorted(wanted - names))}")
        print_json(file, () if arguments.no_samples else wanted, sys.stdout)
        sys.stdout.flush()
    except Violation as violation:
        print(violation, file=sys.stderr)
        return 1
    except (OSError, MemoryError, ImportError) as error:
        print(f"{arguments.FILE}: {error or 'out of memory'}", file=sys.stderr)
        return 3
    return 0

if __name__ == "__main__":
    sys.exit(main())
