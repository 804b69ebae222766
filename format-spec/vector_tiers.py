"""Encoders of blocks, tiers and planes (SPEC.md, 5.12; TIERS.md) for vector_encoder.py.

They follow the text element by element and bit by bit. An encoding is a pair: its name, which ends with "in blocks" if
it is in blocks, and a function of the decoded bytes and the element bytes, which returns the stored bytes as named
sections, in order.
"""

# The alignment of the block index and of blocks, by the name of the encoding.
ALIGNMENTS = {'raw': (64, 1), 'exponent-tiers': (16, 16), 'residual-tiers': (16, 16), 'bins': (16, 16)}
TRANSFORMS = ['none', 'rotate', 'delta', 'lorenzo', 'separable']


def le(n, size):
    return n.to_bytes(size, 'little')


def elements(data, w):
    return [int.from_bytes(data[i:i + w], 'little') for i in range(0, len(data), w)]


def transformed(x, w, transform, restart=0, stride=0, weights=(0, 0)):
    """Returns the coded integers y of the elements x."""
    bits = 8 * w
    top, mask = 1 << bits - 1, (1 << bits) - 1
    if transform == 'none':
        return x
    if transform == 'rotate':
        return [(n << 1 | n >> bits - 1) & mask for n in x]
    y = []

    def eighths(n, weight):
        n &= mask
        return (weight * (n - (n & top) * 2) + 4) // 8

    def missed(i):
        """Returns the error of the prediction down the column in element i, which has a row above."""
        above = x[i - stride]
        step = above - x[i - 2 * stride] if i % restart >= 2 * stride else 0
        return x[i] - above - eighths(step, weights[1])

    for i in range(len(x)):
        row, position = divmod(i % restart, stride)
        left, above = x[i - 1] if i else 0, x[i - stride] if i >= stride else 0
        if row == 0:
            p = left if position else 0
        elif transform == 'separable':
            p = x[i] - missed(i) + (eighths(missed(i - 1), weights[0]) if position else 0)
        elif transform == 'delta' or position == 0:
            p = above
        else:
            p = left + above - x[i - stride - 1]
        r = (x[i] - p) & mask
        y.append(mask ^ 2 * r & mask if r & top else 2 * r)
    return y


def transform_sections(transform, restart=0, stride=0, weights=(0, 0)):
    return {'transform': le(TRANSFORMS.index(transform), 1), 'reserved 0': bytes(1), 'weights': bytes(weights),
            'restart': le(restart, 4), 'stride': le(stride, 4), 'reserved 2': bytes(4)}


def words_of(bits):
    """Packs bits into words of 64 bits, the first bit lowest."""
    return b''.join(le(sum(b << t for t, b in enumerate(bits[at:at + 64])), 8) for at in range(0, len(bits), 64))


def tier_of(codes, width):
    """Returns the words of a tier; words of the last group have only the bytes that contain codes."""
    found = b''
    for at in range(0, len(codes), 64):
        group = codes[at:at + 64]
        found += b''.join(words_of([c >> j & 1 for c in group])[:(len(group) + 7) // 8] for j in range(width))
    return found


def tier_stream(symbols, widths, ranks, low_bytes):
    """Returns the first fields of a block with `low_bytes` bytes before its tiers, and its tiers and literals."""
    escapes, tiers = [(1 << width) - 1 for width in widths], [[], [], [], []]
    for symbol in symbols:
        rank = ranks.index(symbol) if symbol in ranks else sum(escapes)
        for codes, escape in zip(tiers, escapes):
            codes.append(min(rank, escape))
            rank -= escape
            if rank < 0:
                break
        else:
            tiers[3].append(symbol)
    found, at = {}, 8 + low_bytes
    for k, (codes, width) in enumerate(zip(tiers, widths), 1):
        found['padding %d' % k] = bytes(-at % 8)
        found['tier %d' % k] = tier_of(codes, width)
        at += -at % 8 + len(found['tier %d' % k])
    fields = {**{'count_%d' % k: le(len(tiers[k - 1]), 2) for k in (2, 3, 4)}, 'reserved': bytes(2)}
    return fields, {**found, 'literals': bytes(tiers[3])}


def extra_bits(y):
    """Returns the extra bits in the order of the text: by group, then by position of the bit, then by element."""
    return [n >> k & 1 for at in range(0, len(y), 64) for k in range(64) for n in y[at:at + 64] if n >> k > 1]


def tiers(name, transform, widths, ranks, ends=None, has_index=None, filling=0, **details):
    """Returns an encoding with tiers. `ranks` are the symbols that have codes, by default the most frequent ones of all blocks."""
    is_exponents = name == 'exponent-tiers'

    def sections(data, w):
        def coded(block):
            y = transformed(elements(block, w), w, transform, **details)
            return y, [n >> 8 * w - 8 if is_exponents else n.bit_length() for n in y]

        def block(data, w):
            y, symbols = coded(data)
            counts, codes = tier_stream(symbols, widths, list(stated), (w - 1) * len(y) * is_exponents)
            if is_exponents:
                return {**counts, **{'low bytes %d' % k: bytes(n >> 8 * k & 255 for n in y) for k in range(w - 1)}, **codes}
            bits = extra_bits(y)
            return {**counts, **codes, 'extra bits': le(sum(b << t for t, b in enumerate(bits)), (len(bits) + 7) // 8)}

        stated = ranks
        if ranks is None:
            symbols = coded(data)[1]
            stated = sorted(set(symbols), key=lambda s: (-symbols.count(s), s))[:sum((1 << width) - 1 for width in widths)]
        tables = {**transform_sections(transform, **details), **{'width_%d' % k: le(width, 1) for k, width in enumerate(widths, 1)},
                  'ranks': bytes(stated) + bytes(29 - len(stated))}
        return blocks(name, ends, block, tables, filling, has_index)[1](data, w)
    return in_form(name, ends, has_index), sections


def exponent_tiers(transform='none', widths=(1, 1, 1), ranks=None, **more):
    return tiers('exponent-tiers', transform, widths, ranks, **more)


def residual_tiers(transform='none', widths=(1, 1, 1), ranks=None, **more):
    return tiers('residual-tiers', transform, widths, ranks, **more)


def in_form(name, ends, has_index=None):
    """Returns the name with "in blocks" if there are several blocks. `has_index` overrides the choice for any number of blocks."""
    return name + ' in blocks' * (has_index if has_index is not None else ends is not None and len(ends) > 1)


def blocks(name, ends, block, tables=None, filling=0, has_index=None):
    """Returns an encoding of blocks. `ends` has the ends of the blocks; None means one block. `block` is a function of the
    bytes of a block and the element bytes, which returns its sections by name. `filling` adds zero bytes to the block
    index beyond what alignment needs. The checksums are computed when the chunk is assembled: see `seal` in
    vector_encoder.py."""
    def sections(data, w):
        all_ends, own_tables, entries, found, stored_end = ends or (len(data) // w,), dict(tables or {}), {}, {}, 0
        of_index, of_blocks = ALIGNMENTS.get(name, (1, 1))
        for b, (start, end) in enumerate(zip((0, *all_ends), all_ends)):
            if b:
                padding = -stored_end % of_blocks
                stored_end += padding
                found['block %d: padding' % (b - 1)] = bytes(padding)
            named = {'block %d: %s' % (b, k): v for k, v in block(data[start * w:end * w], w).items()}
            stored_end += sum(map(len, named.values()))
            entries.update({'end %d' % b: le(end, 4), 'stored_end %d' % b: le(stored_end, 4), 'block_crc %d' % b: bytes(4)})
            found.update(named)
        if in_form(name, ends, has_index) == name:
            assert filling == 0
            return {**own_tables, 'padding': bytes(-sum(map(len, own_tables.values())) % of_blocks), **found}
        index_bytes = 8 + sum(map(len, own_tables.values())) + 12 * len(all_ends) + 4
        filling_bytes = -index_bytes % of_index + filling
        index_bytes += filling_bytes
        return {'index_bytes': le(index_bytes, 4), 'block_count': le(len(all_ends), 4), **own_tables, **entries,
                'filling': bytes(filling_bytes), 'index_crc': bytes(4), **found}
    return in_form(name, ends, has_index), sections


def planes_zstd(split, pack, transform='none', ends=None, has_index=None, **details):
    """Returns planes-zstd. `pack` is a function of the number of a stream and its bytes, which returns packing and stored bytes."""
    def block(data, w):
        y = transformed(elements(data, w), w, transform, **details)
        m = len(y) // 8
        if split == 8:
            streams, tail = [bytes(n >> 8 * j & 255 for n in y) for j in range(w)], []
        else:
            tail = y[8 * m:]
            streams = [bytes(sum((y[8 * i + t] >> p & 1) << t for t in range(8)) for i in range(m)) for p in range(8 * w)]
        table, stored = {}, {}
        for j, stream in enumerate(streams):
            packing, stored['stream %d' % j] = pack(j, stream) if stream else (0, b'')
            table.update({'stored_bytes %d' % j: le(len(stored['stream %d' % j]), 4), 'packing %d' % j: le(packing, 1),
                          'reserved of stream %d' % j: bytes(3)})
        return {**table, **stored, 'tail': b''.join(le(n, w) for n in tail)}
    return blocks('planes-zstd', ends, block, {**transform_sections(transform, **details), 'split': le(split, 1), 'reserved 3': bytes(7)},
                  has_index=has_index)


# ---- the examples of the text ----------------------------------------------------------------------------------------

assert transformed([0x3F80, 0x3F90, 0xBF80], 2, 'delta', 3, 1) == [0x7F00, 0x0020, 0xFFE0]
assert transformed(list(bytes.fromhex('101214202326')), 1, 'lorenzo', 6, 3) == list(bytes.fromhex('200404200202'))
EXAMPLE = exponent_tiers()[1](bytes.fromhex('0707050709AA'), 1)
assert EXAMPLE['ranks'] == bytes.fromhex('070509') + bytes(26)
assert [EXAMPLE['block 0: ' + section].hex() for section in ('tier 1', 'tier 2', 'tier 3', 'literals')] == ['34', '06', '02', 'aa']
assert residual_tiers()[1](bytes.fromhex('00000100020007000400'), 2)['block 0: extra bits'] == b'\x0A'
