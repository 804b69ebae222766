"""Encodings 4 to 6 (SPEC.md, 5.6 to 5.10) for vector_encoder.py, element by element and bit by bit as the text defines it.

An encoding is a pair: its name, and a function of the decoded bytes and the element bytes that gives the stored bytes
as named pieces, in order.
"""

TRANSFORMS = ['none', 'rotate', 'delta', 'lorenzo', 'separable']


def le(n, size):
    return n.to_bytes(size, 'little')


def elements(data, w):
    return [int.from_bytes(data[i:i + w], 'little') for i in range(0, len(data), w)]


def transformed(x, w, transform, restart=0, stride=0, weights=(0, 0)):
    """The coded integers y of the elements x."""
    bits = 8 * w
    top, every = 1 << bits - 1, (1 << bits) - 1
    if transform == 'none':
        return x
    if transform == 'rotate':
        return [(n << 1 | n >> bits - 1) & every for n in x]
    y = []

    def eighths(n, weight):
        n &= every
        return (weight * (n - (n & top) * 2) + 4) // 8

    def missed(i):
        """What the prediction down misses in element i, which has a row above."""
        above = x[i - stride]
        step = above - x[i - 2 * stride] if i % restart >= 2 * stride else 0
        return x[i] - above - eighths(step, weights[1])

    for i in range(len(x)):
        row, place = divmod(i % restart, stride)
        left, above = x[i - 1] if i else 0, x[i - stride] if i >= stride else 0
        if row == 0:
            p = left if place else 0
        elif transform == 'separable':
            p = x[i] - missed(i) + (eighths(missed(i - 1), weights[0]) if place else 0)
        elif transform == 'delta' or place == 0:
            p = above
        else:
            p = left + above - x[i - stride - 1]
        r = (x[i] - p) & every
        y.append(every ^ 2 * r & every if r & top else 2 * r)
    return y


def transform_pieces(transform, restart=0, stride=0, weights=(0, 0)):
    return {'transform': le(TRANSFORMS.index(transform), 1), 'reserved 0': bytes(1), 'weights': bytes(weights),
            'restart': le(restart, 4), 'stride': le(stride, 4), 'reserved 2': bytes(4)}


def words_of(bits):
    """Words of 64 bits, the first bit lowest."""
    return b''.join(le(sum(b << t for t, b in enumerate(bits[at:at + 64])), 8) for at in range(0, len(bits), 64))


def tier_of(codes, width):
    return b''.join(words_of([c >> j & 1 for c in codes[at:at + 64]]) for at in range(0, len(codes), 64) for j in range(width))


def tier_stream(symbols, widths=(1, 1, 1), ranks=None, spacing=12, extra=None, tier_of=tier_of):
    """The pieces of the head, and the five others. `ranks`: the symbols that have codes; else the most frequent ones.
    `extra`: the number of extra bits of each symbol, in an encoding that has them."""
    escapes = [(1 << width) - 1 for width in widths]
    if ranks is None:
        ranks = sorted(set(symbols), key=lambda s: (-symbols.count(s), s))[:sum(escapes)]
    tiers, points = [[], [], [], []], b''
    for i, symbol in enumerate(symbols):
        if i and i % (1 << spacing) == 0:
            points += b''.join(le(len(tier), 4) for tier in tiers[1:]) + (le(sum(extra[:i]), 8) if extra else b'')
        rank = ranks.index(symbol) if symbol in ranks else sum(escapes)
        for codes, escape in zip(tiers, escapes):
            codes.append(min(rank, escape))
            rank -= escape
            if rank < 0:
                break
        else:
            tiers[3].append(symbol)
    head = {'width_%d' % k: le(width, 1) for k, width in enumerate(widths, 1)}
    head['spacing'] = le(spacing, 1)
    head.update({'count_%d' % k: le(len(tiers[k - 1]), 4) for k in (2, 3, 4)}, ranks=bytes(ranks) + bytes(32 - len(ranks)))
    rest = {'tier %d' % k: tier_of(codes, width) for k, (codes, width) in enumerate(zip(tiers, widths), 1)}
    return head, {'checkpoints': points, **rest, 'literals': bytes(tiers[3])}


def cut_tier_of(codes, width):
    """The words of the last group have only the bytes that have codes."""
    whole, m = len(codes) // 64 * 64, len(codes) % 64
    words = tier_of(codes[whole:], width)
    return tier_of(codes[:whole], width) + b''.join(words[8 * j:8 * j + (m + 7) // 8] for j in range(width if m else 0))


def exponent_tiers(transform='none', widths=(1, 1, 1), ranks=None, spacing=12):
    def pieces(data, w):
        y = transformed(elements(data, w), w, transform)
        head, rest = tier_stream([n >> 8 * w - 8 for n in y], widths, ranks, spacing)
        low = {'low bytes %d' % k: bytes(n >> 8 * k & 255 for n in y) for k in range(w - 1)}
        return {**transform_pieces(transform), **head, **low, **rest}
    return 'exponent-tiers', pieces


def extra_bits(y):
    """In the order of the text: by group, then by position of the bit, then by element."""
    return [n >> k & 1 for at in range(0, len(y), 64) for k in range(64) for n in y[at:at + 64] if n >> k > 1]


def residual_tiers(transform='none', widths=(1, 1, 1), ranks=None, spacing=12, **details):
    def pieces(data, w):
        y = transformed(elements(data, w), w, transform, **details)
        head, rest = tier_stream([n.bit_length() for n in y], widths, ranks, spacing, [len(extra_bits([n])) for n in y])
        return {**transform_pieces(transform, **details), **head, **rest, 'filling': bytes(-sum(map(len, rest.values())) % 8),
                'extra bits': words_of(extra_bits(y)), 'last word': bytes(8)}
    return 'residual-tiers', pieces


def tier_block(y, w, widths, ranks, is_exponents):
    """The pieces of a block of tiers."""
    symbols = [n >> 8 * w - 8 if is_exponents else n.bit_length() for n in y]
    head, rest = tier_stream(symbols, widths, ranks, 31, tier_of=cut_tier_of)
    del rest['checkpoints']
    counts = {'count_%d' % k: head['count_%d' % k][:2] for k in (2, 3, 4)}
    if is_exponents:
        return {**counts, **{'low bytes %d' % k: bytes(n >> 8 * k & 255 for n in y) for k in range(w - 1)}, **rest}
    bits = extra_bits(y)
    total = sum(b << t for t, b in enumerate(bits))
    return {**counts, **rest, 'extra bits': le(total, (len(bits) + 7) // 8)}


def blocked_tiers(name, ends, transform='none', widths=(1, 1, 1), ranks=b'', **details):
    """Tables and blocks for `blocked`. `ranks` are the symbols that have codes, in all blocks."""
    tables = {**transform_pieces(transform, **details), **{'width_%d' % k: le(width, 1) for k, width in enumerate(widths, 1)},
              'reserved 3': bytes(1), 'ranks': bytes(ranks) + bytes(32 - len(ranks))}

    def block(data, w):
        y = transformed(elements(data, w), w, transform, **details)
        return tier_block(y, w, widths, list(ranks), name == 'blocked-exponent-tiers')
    return blocked(name, ends, block, tables)


def blocked(name, ends, block, tables=None, filling=0):
    """Encodings 8 to 13 (5.12). `block`: a function of the bytes of a block and the element bytes that gives its pieces by
    name. The checksums are computed when the chunk is put together: see `seal` in vector_encoder.py."""
    def pieces(data, w):
        starts, front, blocks = [0] + list(ends[:-1]), {}, {}
        own = dict(tables or {})
        front_bytes = 8 + sum(map(len, own.values())) + 12 * len(ends) + filling + 4
        stored_end = 0
        for b, (start, end) in enumerate(zip(starts, ends)):
            named = {'block %d: %s' % (b, k): v for k, v in block(data[start * w:end * w], w).items()}
            stored_end += sum(map(len, named.values()))
            front.update({'end %d' % b: le(end, 4), 'stored_end %d' % b: le(stored_end, 4), 'block_crc %d' % b: bytes(4)})
            blocks.update(named)
        return {'front_bytes': le(front_bytes, 4), 'block_count': le(len(ends), 4), **own, **front,
                'filling': bytes(filling), 'front_crc': bytes(4), **blocks}
    return name, pieces


def planes_zstd(split, pack, transform='none', **details):
    """`pack`: a function of the number of a stream and its bytes that gives its packing and its stored bytes."""
    def pieces(data, w):
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
        return {**transform_pieces(transform, **details), 'split': le(split, 1), 'reserved 3': bytes(7), **table, **stored,
                'tail': b''.join(le(n, w) for n in tail)}
    return 'planes-zstd', pieces


# ---- the examples of the text ----------------------------------------------------------------------------------------

assert transformed([0x3F80, 0x3F90, 0xBF80], 2, 'delta', 3, 1) == [0x7F00, 0x0020, 0xFFE0]
assert transformed(list(bytes.fromhex('101214202326')), 1, 'lorenzo', 6, 3) == list(bytes.fromhex('200404200202'))
EXAMPLE = tier_stream(bytes.fromhex('0707050709AA'), (1, 1, 1))
assert EXAMPLE[0]['ranks'] == bytes.fromhex('070509') + bytes(29) and EXAMPLE[1] == {
    'checkpoints': b'', 'tier 1': le(0x34, 8), 'tier 2': le(0x06, 8), 'tier 3': le(0x02, 8), 'literals': b'\xAA'}
EXAMPLE = residual_tiers()[1](bytes.fromhex('00000100020007000400'), 2)
assert EXAMPLE['extra bits'] + EXAMPLE['last word'] == le(0xA, 16)
