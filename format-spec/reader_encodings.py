"""Chapter 5 of the format (SPEC.md, TIERS.md, BINS.md) for reader.py: decodes the stored bytes of a part.
Like reader.py, it is written from the text alone. It also has the helpers from chapter 1 that both files need."""
import io, struct, zlib
from contextlib import suppress
from functools import partial
from itertools import accumulate

# ---- 1. Words and notation ---------------------------------------------------------------------------------
def align(x, a):
    return -(-x // a) * a

class Violation(Exception):
    def __init__(self, rule, message):
        self.rule, self.message, self.offset = rule, message, None  # walk() sets the offset
    def __str__(self):
        return f"{self.rule}: {self.message} (offset {self.offset})"

def check(conditions):  # {"rule, and what is wrong if the condition does not hold": condition, ...}
    for rule, holds in conditions.items():
        if not holds:
            raise Violation(*rule.split(" ", 1))

class Fields(io.BytesIO):  # reads the fields of a block; a field that reaches beyond it breaks `rule`
    def __init__(self, data, rule):
        super().__init__(data)
        self.rule = rule
    def take(self, size):
        field = self.read(size)
        check({f"{self.rule} a field reaches beyond the block": len(field) == size})
        return field
    def unpack(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
# ---- 5. Encodings ------------------------------------------------------------------------------------------
NAMES = ("raw", "constant", "zstd", "bitshuffle-zstd", "exponent-tiers", "residual-tiers", "bins", "planes-zstd")
RAW, CONSTANT, ZSTD, BITSHUFFLE_ZSTD, EXPONENT_TIERS, RESIDUAL_TIERS, BINS, PLANES_ZSTD = range(8)
BLOCKS = 1 << 8
ENCODINGS = {**dict(enumerate(NAMES)), **{BLOCKS | i: f"{name} in blocks" for i, name in enumerate(NAMES) if i != CONSTANT}}
TABLES = {ZSTD: (4, "R-5.13"), EXPONENT_TIERS: (48, "R-5.17"), RESIDUAL_TIERS: (48, "R-5.17"), BINS: (4, "R-5.18"),
          PLANES_ZSTD: (24, "R-5.12")}  # length of the tables (for bins of table_bytes), and the rule that breaks if they are cut off
ALIGNMENTS = {RAW: (64, 1), EXPONENT_TIERS: (16, 16), RESIDUAL_TIERS: (16, 16), BINS: (16, 16)}  # alignment of the block index, and of blocks

def decode(stored, length, encoding, before, w, tables=()):  # `before`: the bytes of the body before the part
    check({f"R-5.1 unknown {encoding}": encoding in ENCODINGS, "R-5.2 empty": length or encoding == RAW and not stored,
           "R-5.4 one element": encoding != CONSTANT or len(stored) == w})
    if encoding == CONSTANT or not length:
        return stored * (length // w)  # exact, because the caller has checked `length` with
    kind, n = encoding & 255, length // w
    (table_bytes, rule), (of_index, of_blocks) = TABLES.get(kind, (0, "")), ALIGNMENTS.get(kind, (1, 1))
    if encoding & BLOCKS:
        index_bytes, block_count = Fields(stored, "R-5.14").unpack("II")
        check({"R-5.14 the block index reaches beyond the stored bytes": index_bytes <= len(stored),
               "R-5.14 the block index is cut off": index_bytes >= 12, f"R-5.14 block_count {block_count}": block_count >= 2,
               "R-5.14 alignment of the block index": index_bytes % of_index == 0})
        fields = Fields(stored[8:index_bytes - 4], "R-5.14")
    else:
        fields = Fields(stored, rule)
    own_tables = fields.take(table_bytes)
    if kind == BINS:
        others = int.from_bytes(own_tables, "little") - 4  # table_bytes counts itself
        check({f"{fields.rule} table_bytes": others >= 0})
        own_tables = fields.take(others)
        table_bytes += others
    decode_block = DECODERS[kind](own_tables, w, tables)
    if encoding & BLOCKS:
        blocks = read_block_index(fields, block_count, n, stored, index_bytes, before, of_index, of_blocks)
    else:
        check({f"{rule} the bytes after the tables": not any(fields.take(align(table_bytes, of_blocks) - table_bytes))})
        blocks = [(n, fields.read())]
    is_long = any(n >> 16 for n, _ in blocks) and kind in (EXPONENT_TIERS, RESIDUAL_TIERS, BINS)
    check({"R-5.14 more than 65,535 elements": not is_long})
    return b"".join(decode_block(block, n) for n, block in blocks)
# ---- 5.1 to 5.5: for each encoding, a function of its tables that returns a decoder of blocks --------------
def raw_decoder(own_tables, w, tables):
    def decode_block(block, n):
        check({"R-5.3 stored length": len(block) == n * w})
        return block
    return decode_block

def zstd_decoder(own_tables, w, tables):
    zstd_dictionary = None if own_tables == b"\xff" * 4 else find_zstd_dictionary(int.from_bytes(own_tables, "little"), tables)
    return lambda block, n: unframe(block, n * w, zstd_dictionary)

def bitshuffle_decoder(own_tables, w, tables):
    return lambda block, n: unshuffle(unframe(block, n * w), w)

def unframe(stored, length, zstd_dictionary=None):
    import zstandard
    with suppress(zstandard.ZstdError):
        frame = zstandard.get_frame_parameters(stored)
        right = stored[:4] == b"\x28\xb5\x2f\xfd" and frame.content_size == length and frame.dict_id == 0
        window = frame.window_size <= 8 << 20  # the window of a single segment is its content size
        check({"R-5.5 magic, content size or dictionary id": right, "R-5.5 window": window})
        return zstandard.ZstdDecompressor(zstd_dictionary).decompress(stored, allow_extra_data=False)
    raise Violation("R-5.5", "not exactly one valid frame")

def find_zstd_dictionary(table, tables):  # `tables`: the bodies of the tables of the column before the chunk
    import zstandard
    check({f"R-5.13 no table {table}": table < len(tables)})
    body = tables[table]
    check({"R-5.13 magic or length": body[:4] == b"\x37\xa4\x30\xec" and 8 <= len(body) <= 1 << 20})
    zstd_dictionary = zstandard.ZstdCompressionDict(body)
    with suppress(zstandard.ZstdError):  # an empty frame shows whether the dictionary is valid
        zstandard.ZstdDecompressor(zstd_dictionary).decompress(bytes.fromhex("28b52ffd2000010000"))
        return zstd_dictionary
    raise Violation("R-5.13", "not a valid Zstandard dictionary")

def unshuffle(shuffled, w):
    m, result = len(shuffled) // w // 8, bytearray(shuffled)  # the last n mod 8 elements are stored unchanged
    ones = int.from_bytes(b"\1" * m, "little")
    for k in range(w):  # planes 8k to 8k + 7, as integers, have byte k of all elements
        planes = [int.from_bytes(shuffled[p * m:p * m + m], "little") for p in range(8 * k, 8 * k + 8)]
        for t in range(8):  # bit t of their bytes belongs to the elements 8i + t
            number = sum((plane >> t & ones) << bit for bit, plane in enumerate(planes))
            result[t * w + k:8 * m * w:8 * w] = number.to_bytes(m, "little")
    return bytes(result)
# ---- 5.6 Transforms ----------------------------------------------------------------------------------------
TRANSFORMS = NONE, ROTATE, DELTA, LORENZO = range(4)
SEPARABLE = 4  # in bins only

def read_transform(fields, known=TRANSFORMS):
    transform, reserved, *weights, restart, stride, reserved_2 = fields.unpack("BBBBIII")
    predicts = transform in (DELTA, LORENZO, SEPARABLE)
    right = restart and stride if predicts else restart == stride == 0
    check({"R-5.7 transform": transform in known, "R-5.7 restart or stride": right,
           "R-5.7 weights": max(weights) <= (8 if transform == SEPARABLE else 0), "R-5.7 reserved": reserved == reserved_2 == 0})
    return transform, restart, stride, weights

def undo(transform, restart, stride, weights, y, w):  # bytes of all y -> bytes of all x
    if transform == NONE:
        return y
    layout, top = f"<{len(y) // w}{'_BH_I___Q'[w]}", 1 << 8 * w - 1
    y = struct.unpack(layout, y)
    if transform == ROTATE:
        return struct.pack(layout, *(value >> 1 | (value & 1) * top for value in y))
    x, mask = [], 2 * top - 1

    def part(value, weight):
        value &= mask
        return (weight * (value - 2 * (value & top)) + 4) // 8

    def down(i):
        above = x[i - stride]
        return above if i % restart < 2 * stride else above + part(above - x[i - 2 * stride], weights[1])

    for i, value in enumerate(y):
        j = i % restart
        if j < stride:
            prediction = x[i - 1] if j else 0
        elif transform == SEPARABLE:
            prediction = down(i) + (part(x[i - 1] - down(i - 1), weights[0]) if j % stride else 0)
        elif transform == DELTA or j % stride == 0:
            prediction = x[i - stride]
        else:
            prediction = x[i - 1] + x[i - stride] - x[i - stride - 1]
        residual = ~(value >> 1) if value & 1 else value >> 1
        x.append(prediction + residual & mask)
    return struct.pack(layout, *x)
# ---- 5.7 Tiers ---------------------------------------------------------------------------------------------
def one_byte_each(bits):  # for each bit, the lowest first, a byte that is 0 or 1
    number = int.from_bytes(bits, "little")
    return f"{number:0{8 * len(bits)}b}".encode().translate(bytes(48) + b"\0\1" + bytes(206))[::-1] if bits else b""

def read_codes(fields, width, count):  # the codes of one tier, a byte each
    padding, words = fields.take(-fields.tell() % 8), fields.take(count // 64 * width * 8)
    check({"R-5.8 the bytes before a tier": not any(padding)})
    last = -(-(count % 64) // 8)  # the bytes of a word of the last group
    words = memoryview(words + b"".join(fields.take(last).ljust(8, b"\0") for _ in range(width) if last)).cast("Q")
    planes = [one_byte_each(words[j::width].tobytes()) for j in range(width)]
    number = sum(int.from_bytes(plane, "little") << j for j, plane in enumerate(planes))
    return number.to_bytes(-(-count // 64) * 64, "little")  # including the padding of the last group

def tier_decoder(own_tables, w, tables, has_extra_bits):
    fields, rule = Fields(own_tables, ""), "R-5.11" if has_extra_bits else "R-5.10"
    transform, *details = read_transform(fields)
    *widths, ranks = fields.unpack("3B29s")
    escapes = [(1 << width) - 1 for width in widths]  # also the number of symbols of a tier
    right = all(1 <= width <= max_width for width, max_width in zip(widths, (3, 3, 4)))
    check({f"{rule} transform": transform in ((NONE, DELTA, LORENZO) if has_extra_bits else (NONE, ROTATE)),
           "R-5.8 a width": right, "R-5.8 ranks": not any(ranks[sum(escapes):]),
           "R-5.11 ranks": not has_extra_bits or max(ranks) <= 8 * w})

    def decode_block(block, n):
        fields = Fields(block, "R-5.17")
        *counts, reserved = fields.unpack("4H")
        check({"R-5.8 the reserved field of a block": not reserved})
        low_bytes = [] if has_extra_bits else [fields.take(n) for _ in range(w - 1)]
        tiers = [read_codes(fields, width, count) for width, count in zip(widths, [n, *counts])]
        symbols, extra_bits = fields.take(counts[2]), fields.read()
        check({"R-5.17 the block is too long": has_extra_bits or not extra_bits,
               "R-5.8 padding codes of a tier": not any(any(codes[count:]) for codes, count in zip(tiers, [n, *counts]))})
        tiers = [codes[:count] for codes, count in zip(tiers, [n, *counts])]
        check({"R-5.9 counts": counts == [codes.count(escape) for codes, escape in zip(tiers, escapes)]})
        for k in (2, 1, 0):  # the symbols of the escapes of a tier are known before the tier itself
            escaped, of_code = iter(symbols), ranks[sum(escapes[:k]):]
            symbols = bytes(next(escaped) if code == escapes[k] else of_code[code] for code in tiers[k])
        if has_extra_bits:
            check({"R-5.11 a symbol": max(symbols) <= 8 * w})
            check({"R-5.17 length of the extra bits": len(extra_bits) == -(-count_extra_bits(symbols) // 8)})
            y = add_extra_bits(extra_bits, symbols, w)
        else:
            y = interleave(low_bytes + [symbols])
        return undo(transform, *details, y, w)
    return decode_block

def interleave(planes):  # byte 0 of all elements, byte 1 of all, ...
    result = bytearray(len(planes) * len(planes[0]))
    for j, plane in enumerate(planes):
        result[j::len(planes)] = plane
    return bytes(result)

def count_extra_bits(symbols):
    return sum(k - 1 for k in symbols if k)

def add_extra_bits(stored, symbols, w, rule="R-5.11"):  # the bytes of the y with these bit lengths
    n, total, y, at = len(symbols), count_extra_bits(symbols), [], 0
    bits = one_byte_each(stored)
    check({f"{rule} bits after the extra bits": not any(bits[total:])})
    for start in range(0, n, 64):
        symbols_here = symbols[start:start + 64]
        group = [1 << k >> 1 for k in symbols_here]  # the highest one bit of each
        for bit in range(max(symbols_here) - 1):
            having = [t for t, k in enumerate(symbols_here) if k - 1 > bit]
            for t, value in zip(having, bits[at:at + len(having)]):
                group[t] |= value << bit
            at += len(having)
        y += group
    return struct.pack(f"<{n}{'_BH_I___Q'[w]}", *y)

# ---- 5.10 planes-zstd --------------------------------------------------------------------------------------
def planes_decoder(own_tables, w, tables):
    fields = Fields(own_tables, "")
    transform, *details = read_transform(fields)
    split, reserved = fields.unpack("B7s")
    check({f"R-5.12 split {split}": split in (1, 8), "R-5.12 reserved": not any(reserved)})

    def decode_block(block, n):
        fields = Fields(block, "R-5.12")
        streams, size, planes = (8 * w, n // 8, []) if split == 1 else (w, n, [])
        for stored_bytes, packing, reserved in list(struct.iter_unpack("<IB3s", fields.take(8 * streams))):
            right = {0: stored_bytes == size, 1: stored_bytes == 1 and size > 0, 2: size > 0}.get(packing)
            check({f"R-5.12 packing {packing} or length": right, "R-5.12 reserved bytes of a stream": not any(reserved)})
            stream = fields.take(stored_bytes)
            planes.append(stream if packing == 0 else stream * size if packing == 1 else unframe(stream, size))
        tail = fields.take(n % 8 * w if split == 1 else 0)
        check({"R-5.12 the block is too long": not fields.read()})
        y = unshuffle(b"".join(planes) + tail, w) if split == 1 else interleave(planes)
        return undo(transform, *details, y, w)
    return decode_block
# ---- 5.12 Blocks -------------------------------------------------------------------------------------------
def read_block_index(fields, block_count, n, stored, index_bytes, before, of_index, of_blocks):  # number of elements and bytes of each block
    entries = list(struct.iter_unpack("<III", fields.take(12 * block_count)))
    filling, blocks = fields.read(), []
    starts = [(0, 0)] + [(end, align(stored_end, of_blocks)) for end, stored_end, _ in entries[:-1]]
    ascends = all(a < c and b < d for (a, b), (c, d, _) in zip(starts, entries))
    index_crc = zlib.crc32(stored[:index_bytes - 4], zlib.crc32(before))
    check({"R-5.14 filling": not any(filling) and len(filling) < of_index, "R-5.14 the entries do not ascend": ascends,
           "R-5.14 ends": entries[-1][:2] == (n, len(stored) - index_bytes),
           "R-5.15 index_crc": index_crc.to_bytes(4, "little") == stored[index_bytes - 4:index_bytes]})
    next_starts = [stored_start for _, stored_start in starts[1:]] + [entries[-1][1]]
    for (begin, stored_start), (end, stored_end, block_crc), next_start in zip(starts, entries, next_starts):
        block = stored[index_bytes + stored_start:index_bytes + next_start]
        length = stored_end - stored_start
        check({"R-5.16 block_crc": zlib.crc32(block) == block_crc, "R-5.16 padding": not any(block[length:])})
        blocks.append((end - begin, block[:length]))
    return blocks
# ---- 5.13 Bins ---------------------------------------------------------------------------------------------
def bin_decoder(own_tables, w, tables):  # `own_tables` begins after table_bytes
    fields = Fields(own_tables, "R-5.18")
    transform, *details = read_transform(fields, (NONE, DELTA, LORENZO, SEPARABLE))
    s, bin_count, class_count, mapping = fields.unpack("4B")
    has_gaps, has_outliers, has_filters, mapping = *(mapping & bit for bit in (16, 32, 64)), mapping & 143
    check({f"R-5.18 bin_count {bin_count}": 2 <= bin_count <= 64, f"R-5.18 class_count {class_count}": 1 <= class_count <= 4,
           f"R-5.18 mapping {mapping}": mapping <= 3})
    K = fields.take(bin_count)
    V = [0, *accumulate(1 << k for k in K)]  # the last entry is where the last bin ends
    check({"R-5.18 K": max(K) <= 15, "R-5.18 V": not any(v % (1 << k) for v, k in zip(V, K))})
    classes = [read_frequencies(fields, K, V) for _ in range(class_count)]
    v, detail_bits, to_elements = (read_no_mapping, read_dictionaries, read_float_multiple, read_int_multiple)[mapping](fields, w)
    filler, *gap_parameters = fields.unpack(f"{w}sBB") if has_gaps else (b"", 0, 0)
    check({"R-5.22 rice_unmarked or rice_marked": max(gap_parameters) <= 15})
    upper_bits, *outlier_parameters = fields.unpack("BBB") if has_outliers else (0, 0, 0)
    check({"R-5.22 upper_bits 0": upper_bits or not has_outliers, "R-5.22 rice_unmarked or rice_marked": max(outlier_parameters) <= 15})
    restart_segments, zero, filters = read_filters(fields) if has_filters else (1, 0, [()])
    window_bytes = min(v, 2)  # checked here because v comes with the last fields
    bytes_above = v - s - window_bytes
    check({"R-5.18 the tables are too long": not fields.read(), f"R-5.18 low_bytes {s}": bytes_above >= 0,
           "R-5.18 the last bin": V[-1] == 1 << 8 * window_bytes,
           f"R-5.22 upper_bits {upper_bits}": upper_bits <= 8 * bytes_above,
           "R-5.22 number bytes or transform of filters": not has_filters or v == 2 and transform == NONE})

    def decode_numbers(fields, n):  # the bytes of the numbers; without a mapping, numbers are the elements
        above = read_uppers(fields, n, outlier_parameters, upper_bits, bytes_above) if has_outliers else bytes(n * bytes_above)
        fields.rule = "R-5.23"
        filter_codes = read_class_codes(fields, -(-n // 128), len(filters))
        fields.rule, groups, m = "R-5.19", -(-n // 64), min(n, 64)
        codes = read_class_codes(fields, groups, class_count)
        low_bytes = [fields.take(n) for _ in range(s)]
        state = [lower | upper << 8 for lower, upper in zip(fields.take(m), fields.take(m))]
        check({"R-5.19 a state": min(state, default=256) >= 256})
        slots_of_groups = [classes[codes[g % len(codes)]] for g in range(groups)]
        windows = decode_windows(slots_of_groups, n, state, iter(fields.read()))
        windows = struct.pack(f"<{n}{'_BH'[window_bytes]}", *windows)
        planes = low_bytes + [windows[j::window_bytes] for j in range(window_bytes)]
        y = interleave(planes + [above[j::bytes_above] for j in range(bytes_above)])
        return (undo_filters(y, filter_codes, restart_segments, zero, filters) if has_filters else
                undo(transform, *details, y, v))

    def decode_elements(fields, n):
        if mapping == 0:
            return decode_numbers(fields, n)
        fields.rule = "R-5.21"
        e, = fields.unpack("H")
        base, = fields.unpack("q") if mapping > 1 else (0,)
        detail_bytes, = fields.unpack("I") if detail_bits else (0,)
        positions, patches, details = fields.unpack(f"{e}H"), fields.take(w * e), fields.take(detail_bytes)
        ascend = all(a < b for a, b in zip((-1, *positions), (*positions, n)))
        check({"R-5.21 the positions of patches": ascend})
        elements = bytearray(to_elements(decode_numbers(fields, n), base, details))
        for j, i in enumerate(positions):
            elements[w * i:w * i + w] = patches[w * j:w * j + w]
        return bytes(elements)

    def decode_block(block, n):
        fields = Fields(block, "R-5.23")
        if not has_gaps:
            return decode_elements(fields, n)
        marks = read_marks(fields, n, gap_parameters)
        elements = io.BytesIO(decode_elements(fields, marks.count(0)))
        return b"".join(filler if is_marked else elements.read(w) for is_marked in marks)
    return decode_block

def read_frequencies(fields, K, V):  # the meaning of each of the 256 slots of a class
    first, count = fields.unpack("BB")
    slots, frequencies = [], fields.take(count)
    for F, k, v in zip(frequencies, K[first:], V[first:]):
        slots += [(F, len(slots), k, v)] * F  # F, C, K and V of the bin
    check({"R-5.18 first and count": first + count <= len(K), "R-5.18 sum of frequencies": len(slots) == 256})
    return slots

def read_class_codes(fields, count, class_count):  # or filter codes; with one class, a single code that is repeated
    if class_count == 1:
        return b"\0"
    c = 1 if class_count == 2 else 2 if class_count <= 4 else 4
    codes = bytes(byte >> bit & (1 << c) - 1 for byte in fields.take(-(-c * count // 8)) for bit in range(0, 8, c))
    right = max(codes, default=0) < class_count and not any(codes[count:])
    check({f"{fields.rule} class or filter codes, or their padding bits": right})
    return codes[:count]

def decode_windows(slots_of_groups, n, state, stream):
    windows, k = [], 0
    with suppress(StopIteration):  # raised by next()
        for slots in slots_of_groups:
            k = min(n - len(windows), 64)
            bins, raw, is_last = [slots[x & 255] for x in state[:k]], [], len(windows) + k == n
            for i, (F, C, _, _) in enumerate(bins):
                state[i] = F * (state[i] >> 8) + (state[i] & 255) - C
            refill(state, stream)
            for i, (_, _, K, _) in enumerate(bins):
                bits = K - 8 if K >= 8 else 0 if is_last else K
                raw.append(state[i] & (1 << bits) - 1)
                state[i] >>= bits
            refill(state, stream)
            for i, (_, _, K, V) in enumerate(bins):
                low = state[i] & 255 if is_last else next(stream) if K >= 8 else 0
                check({"R-5.19 low bits": low < 1 << K})
                windows.append(V + (raw[i] << 8 if K >= 8 else raw[i]) + low)
        right = all(x >> 8 == 1 for x in state) and set(state[k:]) <= {256}
        check({"R-5.19 the stream is too long": next(stream, None) is None, "R-5.19 a final state": right})
        return windows
    raise Violation("R-5.19", "the stream is too short")

def refill(state, stream):  # states without an element in the group never need a byte
    state[:] = [x if x >= 256 else x << 8 | next(stream) for x in state]
# ---- 5.14 Mappings: v, D, and a function of the bytes of numbers, base and details that returns the bytes of elements --
def read_no_mapping(_, w):
    return w, 0, None

def read_dictionaries(fields, w):
    v, flags, dictionary_count, reserved = fields.unpack("4B")
    check({f"R-5.20 number_bytes {v}": v in (1, 2) and v <= w, "R-5.20 dictionary_flags or reserved": flags < 2 and reserved == 0,
           "R-5.20 dictionary_count": dictionary_count > 0})
    dictionaries, top = [], 1 << 8 * w - 1
    for _ in range(dictionary_count):
        steps = [read_step(fields, w) for _ in range(fields.unpack("H")[0] + 1)]
        sums = accumulate(accumulate(~(step >> 1) if step & 1 else step >> 1 for step in steps))
        m = [value & 2 * top - 1 for value in sums]
        dictionaries.append([(value ^ top - 1 if flags and value & top else value).to_bytes(w, "little") for value in m])

    def to_elements(numbers, *_):
        numbers = [(number, dictionaries[i % dictionary_count]) for i, number in enumerate(memoryview(numbers).cast("_BH"[v]))]
        check({"R-5.21 a number is greater than max_number": all(number < len(dictionary) for number, dictionary in numbers)})
        return b"".join(dictionary[number] for number, dictionary in numbers)
    return v, 0, to_elements

def read_step(fields, w):
    step, bits, byte = 0, 0, 128
    while byte & 128:
        byte, = fields.take(1)
        step, bits = step | (byte & 127) << bits, bits + 7
        check({"R-5.20 a step that is too large": step >> 8 * w == 0, "R-5.20 a step with too many bytes": byte or bits == 7})
    return step

def read_float_multiple(fields, w):
    v, float_type, D, reserved, divisor, exponent, reserved_2 = fields.unpack("4BIhH")
    is_f64 = float_type == 4
    check({f"R-5.20 float_type {float_type}": {1: 2, 2: 2, 3: 4, 4: 8}.get(float_type) == w,
           f"R-5.20 number_bytes {v}": v in (1, 2, 4, 8) and v <= w, f"R-5.20 divisor {divisor}": 1 <= divisor <= 1 << 24,
           f"R-5.20 detail_bits {D}": D <= 15 and 8 * v + D <= (64 if is_f64 else 32) and (D == 0 or divisor == 1),
           f"R-5.20 exponent {exponent}": abs(exponent) <= (1022 if is_f64 else 126), "R-5.20 reserved": reserved == reserved_2 == 0})
    P, layout = ((8, None), (11, "e"), (24, "f"), (53, "d"))[float_type - 1]
    calculating = "d" if is_f64 else "f"
    half = 1 << (64 if is_f64 else 32) - D - 1  # half of the modulus of `s`

    def to_elements(numbers, base, details):
        s = [(base + k + half) % (2 * half) - half for k in memoryview(numbers).cast("_BH_I___Q"[v])]
        f = [min(D, max(0, P - max(k, -1 - k).bit_length())) for k in s]
        symbols = [count + 1 for count in f]
        check({"R-5.21 detail_bytes": len(details) == -(-count_extra_bits(symbols) // 8)})
        with_top = memoryview(add_extra_bits(details, symbols, 2, "R-5.21")).cast("H")  # t, and the bit above it
        return b"".join(element((k << D) + (t - (1 << count) << D - count)) for k, t, count in zip(s, with_top, f))

    def element(N):  # f64 has enough bits for f32 results to stay correct although they are rounded twice
        q = round_to(calculating, float(N))
        q = round_to(calculating, round_to(calculating, q / divisor) * 2.0 ** -exponent)
        if layout:
            return struct.pack("<" + layout, round_to(layout, q))
        bits, = struct.unpack("<I", struct.pack("<f", q))
        return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")
    return v, D, to_elements

def read_int_multiple(fields, w):
    v, reserved, factor = fields.unpack("B3sQ")
    check({f"R-5.20 number_bytes {v}": v in (1, 2, 4, 8) and v <= w, "R-5.20 reserved": not any(reserved), "R-5.20 factor": factor > 0})

    def to_elements(numbers, base, _):
        sums = (base + k * factor for k in memoryview(numbers).cast("_BH_I___Q"[v]))
        return b"".join((value % (1 << 8 * w)).to_bytes(w, "little") for value in sums)
    return v, 0, to_elements

def round_to(layout, value):
    with suppress(OverflowError):
        return struct.unpack("<" + layout, struct.pack("<" + layout, value))[0]
    return value * float("inf")
# ---- 5.15 Gaps, outliers and filters ------------------------------------------------------------------------
def to_number(bits):  # one byte per bit, the lowest first
    return sum(bit << j for j, bit in enumerate(bits))

def read_marks(fields, n, parameters):  # for each element 1 if it is marked, and 0 otherwise
    start, fields.rule, marks = fields.tell(), "R-5.23", bytearray()
    bits = Fields(one_byte_each(fields.read()), fields.rule)
    for stretch in range(n + 1):  # only the first stretch may be empty, so n + 1 suffice
        parameter, quotient = parameters[stretch % 2], 0
        while quotient < 16 and bits.take(1) == b"\1":
            quotient += 1
        value = to_number(bits.take(parameter)) | quotient << parameter if quotient < 16 else to_number(bits.take(16))
        length = value + (stretch > 0)
        check({"R-5.23 a code is too long": quotient < 16 or value >> parameter >= 16,
               "R-5.23 marks beyond the elements": length <= n - len(marks)})
        marks += bytes([stretch % 2]) * length
        if len(marks) == n:
            break
    check({"R-5.23 bits after the marks": not any(bits.read(-bits.tell() % 8))})
    fields.seek(start + bits.tell() // 8)
    return marks

def read_uppers(fields, n, parameters, upper_bits, bytes_above):  # the bytes above the windows of all elements
    marks = read_marks(fields, n, parameters)
    count = marks.count(1) * upper_bits
    bits = one_byte_each(fields.take(-(-count // 8)))
    check({"R-5.23 bits after the uppers": not any(bits[count:])})
    uppers = (to_number(bits[at:at + upper_bits]) for at in range(0, count, upper_bits))
    return b"".join((next(uppers) if is_marked else 0).to_bytes(bytes_above, "little") for is_marked in marks)

def read_filters(fields):
    taps, filter_count, restart_segments, zero = fields.unpack("BBHH")
    check({f"R-5.22 taps {taps}": 1 <= taps <= 16, f"R-5.22 filter_count {filter_count}": 1 <= filter_count <= 16,
           "R-5.22 restart_segments 0": restart_segments > 0})
    return restart_segments, zero, [fields.unpack(f"{taps}h") for _ in range(filter_count)]

def undo_filters(y, codes, restart_segments, zero, filters):  # bytes of all y -> bytes of all k
    k = []
    for i, value in enumerate(struct.unpack(f"<{len(y) // 2}H", y)):
        a = filters[codes[i // 128 % len(codes)]]
        before = range(min(len(a), i % (128 * restart_segments)))
        total = 2048 + sum(a[q] * ((k[i - 1 - q] - zero + 32768) % 65536 - 32768) for q in before)
        k.append((zero + total // 4096 + (~(value >> 1) if value & 1 else value >> 1)) % 65536)
    return struct.pack(f"<{len(k)}H", *k)
# ---- 5. Encodings ------------------------------------------------------------------------------------------
DECODERS = {RAW: raw_decoder, ZSTD: zstd_decoder, BITSHUFFLE_ZSTD: bitshuffle_decoder, BINS: bin_decoder, PLANES_ZSTD: planes_decoder,
            EXPONENT_TIERS: partial(tier_decoder, has_extra_bits=False), RESIDUAL_TIERS: partial(tier_decoder, has_extra_bits=True)}
