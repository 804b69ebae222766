#!/usr/bin/env python3
"""A second, independent reader of the tensilo file format, written from SPEC.md, TIERS.md and BINS.md alone.
    reader.py [--columns A,B] [--no-samples] FILE    prints the contents of the file as one line of JSON
    reader.py --verify FILE                          prints "ok", or the first rule that is broken
Exit status: 0 good, 1 invalid, 2 wrong usage, 3 unreadable. Python 3.9; for Zstandard: package zstandard."""
import argparse, hashlib, json, math, operator, struct, sys, zlib
from collections import Counter
from contextlib import suppress
from itertools import chain
from types import SimpleNamespace as Record

from reader_encodings import ENCODINGS, RAW, Fields, Violation, align, check, decode

# ---- 1. Words and notation ---------------------------------------------------------------------------------
def text(rule, data):
    check({f"{rule} a text is not UTF-8": data.decode("utf-8", "ignore").encode() == data})
    return data.decode()

class Block(Fields):  # the fields of a schema block or a footer
    def count(self, rule, min_value=0, max_value=65536):
        number, = self.unpack("I")
        check({f"{rule} {number}": min_value <= number <= max_value})
        return number
    def text(self, min_value, max_value):
        return text("R-3.4", self.take(self.count("R-3.4 length of a text:", min_value, max_value)))
# ---- 2. Regions --------------------------------------------------------------------------------------------
FILE_HEADER, CHUNK, TABLE, INDEX, FOOTER, TRAILER = b"\x89TSL", b"TSLC", b"TSLT", b"TSLI", b"TSLF", b"TSLE"
MAX_CHUNK, VARYING = (1 << 32) - (1 << 16), 0xFFFFFFFF
KINDS = {  # limit of body_bytes, and layout of the fields that depend on the kind, at 4, 32 and 48
    FILE_HEADER: (16 << 20, "<4s" "III" "II"),  # magic_tail, three words of flags, alignment, edition
    CHUNK: (MAX_CHUNK, "<I" "QI" "IHH"),  # column, first_sample, sample_count, raw_bytes, encoding, flags
    TABLE: (16 << 20, "<I" "IQ" "Q"),  # column, table, reserved, reserved
    INDEX: (4032, "<I" "QI" "Q"),  # column, first_sample, entry_count, first_chunk
    FOOTER: (256 << 20, "<I" "III" "Q"),  # commit, three words of flags, sample_count
    TRAILER: (0, "<I" "QI" "Q")}  # trailer_flags, footer_offset, reserved, previous_trailer
FOLLOW = {**dict.fromkeys(KINDS, (CHUNK, TABLE, INDEX, FOOTER)), INDEX: (INDEX, FOOTER), FOOTER: (TRAILER,)}

def read_region(file, at, kinds, header_only=False):
    header = file.data[at:at + 64]
    check({"R-2.5 the header reaches beyond the end of the file": len(header) == 64})
    kind, file_id, previous, offset, body_bytes, body_crc, header_crc = struct.unpack("<4s4x12sIQ12xI8xII", header)
    check({"R-2.1 header_crc": zlib.crc32(header[:60]) == header_crc, f"R-2.2 magic {kind}": kind in kinds,
           "R-2.3 file_id": file.file_id in (None, file_id), f"R-2.4 offset {offset}": offset == at and at % 64 == 0})
    (limit, layout), end = KINDS[kind], at + 64 + body_bytes
    check({f"R-2.5 body_bytes {body_bytes}": body_bytes <= limit and end <= len(file.data)})
    body, fields = file.data[at + 64:end], struct.unpack(layout, header[4:8] + header[32:44] + header[48:56])
    check({"R-2.6 body_crc": header_only or zlib.crc32(body) == body_crc})
    return Record(kind=kind, file_id=file_id, previous=previous, header_crc=header_crc, at=at, body=body, body_crc=body_crc, end=end, fields=fields)

def intact_header(file, at, kinds):
    with suppress(Violation):
        return read_region(file, at, kinds, header_only=True)

def read_next(file):  # reads the region after file.previous
    data, e = file.data, file.previous.end
    s, c = align(e, 64), align(e + 64, file.alignment) - 64
    magic, other, file.at = data[s:s + 4], data[c:c + 4], s
    check({"R-2.9 the file ends without a trailer": s < len(data) and (any(magic) or c < len(data))})
    if not any(magic):
        right = c > s and any(other) and other not in (FILE_HEADER, INDEX, FOOTER, TRAILER)
        check({f"R-2.7 no region here, and no chunk or table at {c}": right})
        file.at = c
    elif c > s and not intact_header(file, s, KINDS) and intact_header(file, c, (CHUNK, TABLE)):
        file.at = c  # the padding before it is damaged
    check({"R-2.8 the padding before this offset": not any(data[e:file.at])})
    region = read_region(file, file.at, KINDS)
    check({f"R-2.7 the region must be at {c}": file.at == c or region.kind not in (CHUNK, TABLE),
           f"R-2.9 {region.kind} after {file.previous.kind}": region.kind in FOLLOW[file.previous.kind],
           "R-2.10 previous": region.previous == file.previous.header_crc})
    return region
# ---- 3. Header and schema ----------------------------------------------------------------------------------
DTYPES = ("- bf16 f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool bytes utf8 f8_e4m3fn f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz "
          "f8_e8m0fnu f6_e2m3 f6_e3m2 f4_e2m1 i4 u4 complex64").split()
ELEMENT_BYTES = (0, 2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8) + 13 * (1,) + (8,)
BITS = {"bool": 1, "f6_e2m3": 6, "f6_e3m2": 6, "f4_e2m1": 4, "i4": 4, "u4": 4}  # bits of its byte that an element uses, if not all
NESTED = 1  # of incompat_flags

def read_file_header(file):
    file.previous = header = read_region(file, 0, (FILE_HEADER,))
    magic_tail, *file.flags, file.alignment, edition = header.fields
    check({"R-3.9 written before edition 1: convert the source again": edition != 0, f"R-3.9 the newer edition {edition}": edition <= 1,
           "R-9.1 incompat_flags": file.flags[0] & ~NESTED == 0, "R-3.1 magic_tail": magic_tail == b"\r\n\x1a\n",
           "R-2.10 previous of the file header": header.previous == 0, "R-3.2 alignment": file.alignment in (64, 4096)})
    file.file_id, file.schema, fields = header.file_id, header.body, Block(header.body, "R-3.3")
    column_count, file.metadata = fields.count("R-3.6 column_count"), read_metadata(fields)
    file.columns = [read_column(fields) for _ in range(column_count)]
    check({"R-3.3 length of the schema": not fields.read(),
           "R-3.4 a name twice": len({column.info["name"] for column in file.columns}) == column_count,
           "R-3.8 the flag nested": bool(file.flags[0] & NESTED) == any(column.L for column in file.columns)})

def read_metadata(fields):
    entries = [(fields.text(1, 1024), fields.text(0, 16 << 20)) for _ in range(fields.count("R-3.4 entries:"))]
    check({"R-3.4 order of keys": [key for key, _ in entries] == sorted(dict(entries))})  # code points sort like their UTF-8 bytes
    return dict(entries)

def read_column(fields):
    name, cast = fields.text(1, 1024), None
    dtype, flags, rank, w = fields.unpack("BBBB")
    check({"R-3.4 control character in a name": all(c >= " " and c != "\x7f" for c in name),
           f"R-3.5 dtype {dtype} of {w} bytes": dtype and w in (ELEMENT_BYTES[dtype:dtype + 1] or (1, 2, 4, 8)),
           "R-3.6 column_flags or rank": flags < 8 and rank <= 16})
    extents, is_known = fields.unpack(f"{rank}I"), dtype < len(DTYPES)
    size = math.prod(x for x in extents if x != VARYING) * w  # inner x w
    check({"R-3.5 extents": dtype not in (14, 15) or extents == (VARYING,), "R-3.6 inner x w": size <= MAX_CHUNK})
    if flags & 2:
        source, rounding, reserved = fields.unpack("BBH")
        right = 1 <= dtype <= 4 and source <= 12 and source != dtype and rounding == 1
        check({"R-3.6 reserved field of a cast": reserved == 0, "R-3.7 dtypes or rounding of a cast": right})
        cast = {"source": DTYPES[source] if source else "decimal", "rounding": "nearest-even"}
    L, may_be_null = 0, [bool(flags & 1)]  # of the entries of each level
    if flags & 4:
        L, reserved, bits = fields.unpack("BBH")
        check({"R-3.6 reserved field of nesting": reserved == 0, "R-3.8 levels": 1 <= L <= 16, "R-3.8 nullable_levels": bits >> L == 0})
        may_be_null += [bool(bits >> k & 1) for k in range(L)]
    info = {"name": name, "dtype": DTYPES[dtype] if is_known else f"unknown {dtype}", "shape": [None if x == VARYING else x for x in extents],
            "nullable": bool(flags & 1), "cast": cast, **({"nullable_levels": may_be_null[1:]} if L else {}),
            "metadata": read_metadata(fields)}
    # `chunks` has the index entry that each chunk of the walk must have: entries before `listed` were found in a
    # page, and `runs` counts the entries of earlier commits. `stated` has the facts that a footer states.
    return Record(info=info, is_known=is_known, coded=4 if dtype == 26 else w, V=extents.count(VARYING), L=L, may_be_null=may_be_null, size=size,
                  samples=[], sums=Counter(), runs=[], encodings=Counter(), tables=[], bodies=[], chunks=[], listed=0,
                  errors=(), stated={"encodings": []}, unknown=[])
# ---- 4. Chunks ---------------------------------------------------------------------------------------------
def read_chunk(file, region):
    index, first_sample, n, raw_bytes, encoding, flags = region.fields
    right = index < len(file.columns) and 1 <= n <= 1 << 24 and raw_bytes <= MAX_CHUNK and flags < 2
    check({"R-4.1 column, sample_count, raw_bytes or chunk_flags": right})
    column, absent = file.columns[index], (b"", 0, RAW, b"")
    V, L, size, dtype = column.V, column.L, column.size, column.info["dtype"]
    check({"R-4.2 first_sample": first_sample == column.sums["samples"], "R-4.3 parts clear": flags or not V and not L})
    column.sums.update(samples=n, chunk_count=1, raw_bytes=raw_bytes, stored_bytes=len(region.body))
    column.chunks.append((region.at, first_sample, len(region.body), n, region.body_crc, encoding, flags))
    if column.unknown:
        return  # any part may have the unknown encoding
    parts = read_parts(column, region) if flags else (absent, absent, (region.body, raw_bytes, encoding, b""))
    validity, shape, values = parts
    right = shape[1] % 4 == 0 if L else shape[1] == 4 * n * (V if V < 2 else 1 + V)
    check({"R-4.6 no entry may be null": not validity[1] or any(column.may_be_null),
           "R-4.5 length of a part": right and (L or validity[1] in (0, align(n, 8) // 8) and (V or values[1] == n * size)),
           "R-4.10 several samples in more than 64 MiB": n == 1 or raw_bytes <= 64 << 20,
           "R-4.12 validity and shape in more than 64 MiB": not L or validity[1] + shape[1] <= 64 << 20})
    numbers = struct.unpack(f"<{shape[1] // 4}I", decode(*shape, 4, column.bodies))
    counts, lists, numbers = read_lists(column, n, numbers)
    items = counts[-1]
    check({"R-4.12 too many items without elements": not L or V or size or items <= 1 << 24})
    ends, dims = numbers[:items] if V else range(1, items + 1), []  # a fixed item counts as 1
    check({"R-4.5 length of values": values[1] == (ends[-1] if items else 0) * size})
    present = read_validity(column, counts, validity)
    for ends_of_lists, is_present in zip(lists, present):
        empty = map(operator.eq, ends_of_lists, chain([0], ends_of_lists))
        check({"R-4.8 a null list is not empty": all(map(operator.or_, is_present, empty))})
    if V and items:
        lengths = list(map(operator.sub, ends, chain([0], ends)))
        dims = [numbers[k:k + items] for k in range(items, len(numbers), items)] or [lengths]
        right = list(map(math.prod, zip(*dims))) == lengths and max(map(max, dims)) < VARYING
        check({"R-4.7 ends descends": min(lengths) >= 0, "R-4.7 extents": right})
    decoded, entries = decode(*values, column.coded, column.bodies), []
    requested = column.is_known and (file.requested is None or column.info["name"] in file.requested)
    if requested or dtype == "utf8" or 0 in present[L]:
        for is_present, begin, end, *extents in zip(present[L], chain([0], ends), ends, *dims):
            item = decoded[begin * size:end * size]
            check({"R-4.8 a null is not zero": is_present or not any(item) and not any(extents)})
            text("R-4.9", item if dtype == "utf8" else b"")
            if requested:
                entries.append({"extents": extents, "hex": item.hex()} if is_present else None)
    if requested:
        for is_present, ends_of_lists in zip(present[-2::-1], lists[::-1]):
            ranges = zip(is_present, chain([0], ends_of_lists), ends_of_lists)
            entries = [entries[begin:end] if is_list else None for is_list, begin, end in ranges]
        column.samples += entries
    unused = decoded.translate(None, bytes(range(1 << BITS.get(dtype, 8))))  # nothing remains if elements use all 8 bits
    check({"R-4.9 a bool is neither 0 nor 1": dtype != "bool" or not unused, "R-4.13 bits above an element": not unused})
    column.sums.update(null_count=present[0].count(0))
    column.encodings.update({part[2]: 0 for part in parts if part[1]})
    column.encodings[encoding] += 1

def read_lists(column, n, numbers):  # entries of each level, `ends` of the lists of each level, and the remaining numbers
    counts, lists, V = [n], [], column.V
    for _ in range(column.L):
        ends, numbers = numbers[:counts[-1]], numbers[counts[-1]:]
        check({"R-4.5 length of a shape": len(ends) == counts[-1], "R-4.7 ends of lists descends": list(ends) == sorted(ends)})
        lists.append(ends)
        counts.append(ends[-1] if ends else 0)
    check({"R-4.5 length of a shape": len(numbers) == counts[-1] * (V if V < 2 else 1 + V)})
    return counts, lists, numbers

def read_validity(column, counts, validity):  # for each level, which entries are present
    if not validity[1]:
        return [range(1, n + 1) for n in counts]  # no entry is 0, so all are present
    sizes = [align(n, 8) // 8 for n in counts]
    check({"R-4.5 length of the validity": validity[1] == sum(sizes)})
    bitmaps, present = decode(*validity, 1, column.bodies), []
    for n, size in zip(counts, sizes):
        bitmap, bitmaps = bitmaps[:size], bitmaps[size:]
        check({"R-4.6 bits at the end": not size or not bitmap[-1] >> (n - 1) % 8 + 1})
        present.append(bytes(bitmap[i >> 3] >> (i & 7) & 1 for i in range(n)) if size else range(1, n + 1))
    check({"R-4.6 no null": any(0 in level for level in present),
           "R-4.6 an entry that may not be null": all(may or 0 not in level for may, level in zip(column.may_be_null, present))})
    return present

def read_parts(column, region):  # for each part its stored bytes, raw_bytes, encoding, and the bytes before it
    body, parts, end, reserved = region.body, [], 64, region.body[48:64]
    check({"R-4.4 the part table is cut off": len(body) >= 64})
    for stored_bytes, raw_bytes, encoding, reserved_of_part in struct.iter_unpack("<IIH6s", body[:48]):
        begin = align(end, 64)
        reserved += reserved_of_part + body[end:begin]
        end = begin + stored_bytes
        parts.append((body[begin:end], raw_bytes, encoding, memoryview(body)[:begin]))
    right = (sum(part[1] for part in parts), parts[2][2]) == region.fields[3:5]
    absent = all(part[1] or part[:3] == (b"", 0, RAW) for part in parts[:2]) and (column.V or column.L or not parts[1][1])
    check({"R-4.3 parts is set without need": column.V or column.L or parts[0][1],
           "R-4.4 length of the body": end == len(body), "R-4.4 reserved or padding": not any(reserved),
           "R-4.4 raw_bytes or encoding of the chunk": right, "R-4.4 a part that must be absent": absent})
    return parts

def read_table(file, region):
    index, table, *reserved = region.fields
    right = index < len(file.columns) and table == len(file.columns[index].tables) and not any(reserved)
    check({"R-4.11 column, table or reserved": right})
    file.columns[index].tables.append((index, table, region.at, len(region.body), region.body_crc))
    file.columns[index].bodies.append(region.body)
# ---- 5. Encodings: in reader_encodings.py ------------------------------------------------------------------
# ---- 6. Index ----------------------------------------------------------------------------------------------
def read_page(file, region):
    index, first_sample, entry_count, first_chunk = region.fields
    right = index < len(file.columns) and 1 <= entry_count <= 126 and len(region.body) == 32 * entry_count
    check({"R-6.1 column, entry_count or body_bytes": right})
    entries, column = list(struct.iter_unpack("<QQIIIHH", region.body)), file.columns[index]
    last, *_, last_count, _ = file.previous.fields if file.previous.kind == INDEX else (-1, 0, 0)
    right = last <= index and first_chunk == column.listed
    column.listed += entry_count
    check({"R-6.1 first_sample": first_sample == entries[0][1], "R-6.2 column or first_chunk": right,
           "R-6.2 not the next chunks": entries == column.chunks[first_chunk:column.listed],
           "R-6.3 the page before is not full": last < index or last_count == 126})
    column.run_offset = region.at if last < index else column.run_offset
    file.content += region.body
# ---- 7. Footer, trailer, commits ---------------------------------------------------------------------------
def read_footer(file, region):  # stores the stated facts in the columns
    fields = Block(region.body, "R-7.2")
    file.stated_id, = fields.unpack("16s")
    check({"R-7.1 schema": fields.take(*fields.unpack("I")) == file.schema})
    file.tables = list(struct.iter_unpack("<IIQII", fields.take(24 * fields.count("R-7.2 table_count"))))
    for column in file.columns:
        sums = dict(zip(("raw_bytes", "stored_bytes", "null_count", "chunk_count"), fields.unpack("QQQQ")))
        run_count, (encoding_count, reserved) = fields.count("R-7.2 run_count"), fields.unpack("HH")
        encodings = list(struct.iter_unpack("<H6sQ", fields.take(16 * encoding_count)))
        column.stated_runs = list(struct.iter_unpack("<QQQQII", fields.take(40 * run_count)))
        reserved = [reserved, *(any(e[1]) for e in encodings), *(run[5] for run in column.stated_runs)]
        check({"R-7.2 reserved fields": not any(reserved)})
        column.stated = {**sums, "encodings": [(encoding, chunks) for encoding, _, chunks in encodings]}
        if column.info["cast"]:
            *column.errors, infinite, subnormal = fields.unpack("8s8sQQ")
            names = {"max_abs_error": column.errors[0].hex(), "max_rel_error": column.errors[1].hex()}
            column.info["cast"].update(names, to_infinite=infinite, to_subnormal=subnormal)
    check({"R-7.2 length of the body": not fields.read()})

def end_commit(file, region):
    for column in file.columns:  # the index lists the chunks of the commit, which form a run of their column
        check({"R-6.2 a chunk is not in the index": column.listed == len(column.chunks)})
        chunks = column.chunks[sum(run[3] for run in column.runs):]
        counts = [chunk[3] for chunk in chunks]
        if counts:
            by = counts[0] if set(counts[:-1]) <= {counts[0]} and counts[-1] <= counts[0] else 0
            column.runs.append((column.run_offset, chunks[0][1], sum(counts), len(counts), by, 0))
    read_footer(file, region)
    commit, *flags, sample_count = region.fields
    pages = []  # start and end of the pages of each run of the file
    for column in file.columns:
        samples = chunks = 0
        for offset, first_sample, run_samples, run_chunks, by, _ in column.stated_runs:
            right = 1 <= run_chunks <= run_samples <= run_chunks << 24 and by <= 1 << 24
            right = right and (by == 0 or run_chunks == -(-run_samples // by))
            pages.append((offset, offset + 64 * -(-run_chunks // 126) + 32 * run_chunks))
            check({"R-7.3 first sample of a run": first_sample == samples, "R-7.3 chunks of a run": right,
                   "R-7.3 pages of a run": pages[-1][1] <= region.at})
            samples, chunks = samples + run_samples, chunks + run_chunks
        check({"R-7.3 sums of runs": (samples, chunks) == (sample_count, column.stated["chunk_count"])})
    pages.sort()
    check({"R-7.3 a page in two runs": all(end <= start for (_, end), (start, _) in zip(pages, pages[1:]))})
    check({f"R-7.5 commit {commit}": commit == file.commits < 65536,
           f"R-7.5 sample_count {sample_count}": file.sample_count <= sample_count < 1 << 63})
    for column in file.columns:
        name, seen = column.info["name"], {**column.sums, "encodings": sorted(column.encodings.items())}
        seen.update({key: column.stated[key] for key in ("null_count", "encodings") if column.unknown})
        check({f"R-7.4 {key} of {name!a}": value == seen.get(key, 0) for key, value in column.stated.items()})
        right = all(int.from_bytes(error, "little") <= 0x7FF0 << 48 for error in column.errors)
        check({f"R-7.4 runs of {name!a}": column.stated_runs == column.runs, "R-7.4 errors of a cast": right})
    check({"R-7.4 tables": file.tables == [table for column in file.columns for table in column.tables],
           "R-9.1 incompat_flags": flags[0] & ~NESTED == 0,
           "R-9.2 flags": all(old & ~new == 0 for old, new in zip(file.flags, flags)),
           "R-7.9 content_id": hashlib.sha256(file.content + region.body[16:]).digest()[:16] == file.stated_id})
    file.content = file.content_id = file.stated_id
    file.commits, file.sample_count, file.flags = commit + 1, sample_count, flags

def read_trailer(file, region):
    flags, footer_offset, reserved, previous = region.fields
    right = flags < 2 and (reserved, footer_offset, previous) == (0, file.previous.at, file.trailer)
    check({"R-7.7 trailer_flags, reserved or an offset": right})
    file.trailer, file.finished = region.at, flags == 1

def find_last_trailer(file):  # 7.3: the offset of the last valid trailer, and its footer
    for at in range(align(len(file.data), 64) - 64, 0, -64):
        if file.data.startswith(TRAILER, at):
            with suppress(Violation):
                trailer = read_region(file, at, (TRAILER,))
                flags, footer_offset, reserved, _ = trailer.fields
                footer = read_region(file, footer_offset, (FOOTER,), header_only=True)
                right = flags < 2 and reserved == 0 and trailer.previous == footer.header_crc
                if right and align(footer.end, 64) == at:
                    return at, read_region(file, footer_offset, (FOOTER,))
    return None, None
# ---- 10. Reading and verifying -----------------------------------------------------------------------------
READ = {CHUNK: read_chunk, TABLE: read_table, INDEX: read_page, FOOTER: end_commit, TRAILER: read_trailer}

def walk(data, requested=(), to_the_end=False):  # up to the last valid trailer; without one, up to a violation
    file = Record(data=data, requested=requested, at=0, file_id=None, commits=0, sample_count=0, trailer=0,
                  content=bytes(16))
    try:
        read_file_header(file)
        last, footer = find_last_trailer(file)
        if footer:  # unknown features are refused first
            file.at = footer.at
            with suppress(Violation):
                read_footer(file, footer)
            for column in file.columns:
                column.unknown = [e for e, _ in column.stated["encodings"] if e not in ENCODINGS]
                refused = to_the_end or requested is None or column.info["name"] in requested
                check({f"R-7.6 encoding {e} of column {column.info['name']!a}": not refused for e in column.unknown})
            check({"R-9.1 incompat_flags": footer.fields[1] & ~NESTED == 0})
        while not last or file.trailer != last:
            region = read_next(file)
            READ[region.kind](file, region)
            file.previous = region
        file.tail_bytes = len(data) - region.end
        check({"R-2.7 bytes after the last valid trailer": not to_the_end or file.tail_bytes == 0,
               "R-7.8 the last trailer is not finished": not to_the_end or file.finished})
    except Violation as violation:
        violation.offset = file.at
        raise
    return file

def read(data: bytes, requested=None, to_the_end=False) -> dict:  # with the samples of all or of the `requested` columns
    file = walk(data, (), to_the_end)  # first without samples: an invalid file must not make us allocate them
    file = file if requested == [] else walk(data, requested)
    for column in file.columns:
        names = {e: f"encoding-{e}" for e in column.unknown}
        column.info.update(column.stated, encodings={names.get(e) or ENCODINGS[e]: n for e, n in column.stated["encodings"]})
        if requested is None or column.info["name"] in requested:
            column.info["samples"] = column.samples if column.is_known else None  # 3.2
    names = "alignment", "finished", "tail_bytes", "commits", "sample_count", "metadata"
    return {"file_id": file.file_id.hex(), "content_id": file.content_id.hex(), **{name: getattr(file, name) for name in names},
            "columns": [column.info for column in file.columns]}

def verify(data: bytes):  # the first violation, or None
    try:
        walk(data, to_the_end=True)
    except Violation as violation:
        return violation

def main():
    parser = argparse.ArgumentParser(description="Prints the contents of a tensilo file, or verifies it.")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--no-samples", action="store_true")
    parser.add_argument("--columns", metavar="A,B", type=lambda names: names.split(","))
    parser.add_argument("FILE")
    options = parser.parse_args()
    requested = [] if options.verify or options.no_samples else options.columns
    try:
        with open(options.FILE, "rb") as stream:
            result = read(stream.read(), requested, options.verify)
        if not {column["name"] for column in result["columns"]}.issuperset(requested or ()):
            parser.error("no such column")
        print("ok" if options.verify else json.dumps(result, separators=(",", ":")), flush=True)
    except Violation as violation:
        print(violation, file=sys.stdout if options.verify else sys.stderr)
        return 1
    except (OSError, MemoryError, ImportError) as error:
        print(f"{options.FILE}: {error or 'out of memory'}", file=sys.stderr)
        return 3

if __name__ == "__main__":
    sys.exit(main())
