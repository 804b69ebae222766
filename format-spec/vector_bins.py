"""A small encoder of bins (BINS.md, 5.13) and the vectors of bins, for make_vectors.py."""
from bisect import bisect
from itertools import cycle

from vector_blocks import NUMBERS, of_dtypes, one
from vector_encoder import *
from vector_tiers import blocks, elements, in_form, transform_sections, transformed


# ---- the encoder -----------------------------------------------------------------------------------------------------

def scaled(counts):
    """Returns frequencies that add up to 256: 1 to 255 for each bin that occurs, and for one other bin if only one occurs."""
    frequencies = [max(1, 256 * count // sum(counts)) if count else 0 for count in counts]
    while frequencies.count(0) > len(counts) - 2:
        frequencies[frequencies.index(0)] = 1
    while sum(frequencies) != 256:
        frequencies[frequencies.index(max(frequencies))] += 1 if sum(frequencies) < 256 else -1
    return frequencies


def class_bits(class_count):
    return 0 if class_count < 2 else 1 if class_count == 2 else 2 if class_count <= 4 else 4


def packed(codes, bits):
    return le(sum(code << bits * i for i, code in enumerate(codes)), (bits * len(codes) + 7) // 8)


def coded(groups, K, V, F, start, early, ends_in):
    """Returns the states and the stream of a block. `groups` has the windows, and `F` the frequencies, of each group.
    For faults, `start` has initial states, the states `early` write a byte that they need not, and the stream ends in the step
    `ends_in` ('refill 1', 'refill 2' or 'low'): the last such step that takes several bytes lacks its last byte."""
    states = [256] * len(groups[0] if groups else ())
    for i, state in start.items():
        states[i] = state
    stream = []  # in reverse order

    def move(i, limit, step):
        if states[i] >= limit:
            stream.append((states[i] & 255, step))
            states[i] >>= 8

    for g in reversed(range(len(groups))):
        is_last, elements_of_group = g == len(groups) - 1, []
        for i, window in enumerate(groups[g]):
            b = bisect(V, window) - 1
            elements_of_group.insert(0, (i, b, window - V[b]))
        for i, b, rest in elements_of_group:
            if is_last:
                states[i] += rest & 255
            elif K[b] >= 8:
                stream.append((rest & 255, (g, 'low')))
        for i, b, rest in elements_of_group:
            if K[b] >= 8 or not is_last:
                move(i, 1 << 16 - K[b] % 8, (g, 'refill 2'))
                states[i] = (states[i] << K[b] % 8) + (rest >> 8 if K[b] >= 8 else rest)
        for i, b, rest in elements_of_group:
            if g == 0 and i in early:
                assert states[i] < F[g][b] << 8
                move(i, 0, (g, 'refill 1'))
            move(i, F[g][b] << 8, (g, 'refill 1'))
            states[i] = (states[i] // F[g][b] << 8) + states[i] % F[g][b] + sum(F[g][:b])
    if ends_in:
        steps = [step for _, step in stream]
        last = next(step for step in steps if step[1] == ends_in and steps.count(step) > 1)
        stream = stream[steps.index(last) + 1:]
    return {'lower': bytes(state & 255 for state in states), 'upper': bytes(state >> 8 for state in states),
            'stream': bytes(byte for byte, _ in stream[::-1])}


def bins(ends, K=None, transform='none', low_bytes=0, class_count=1, classes=(0,), frequencies=None, filling=0,
         mapping=None, tables=None, rewrite=None, start=None, early=(), ends_in=None, has_index=None, **details):
    """Returns an encoding with bins. `K` is the K of each bin; by default there is a bin for each bit length. `classes` are
    the classes of the groups of all blocks, repeated as needed. `frequencies` has *first* and a list for each class; by
    default they follow from the data. `mapping` has its code, the bytes of a number, its fields, and the numbers and
    first sections of each block; see vector_mappings.py.
    For faults, `tables` replaces or adds fields of the tables, `rewrite` replaces sections of the last block, and
    `start`, `early` and `ends_in` change its states and its stream; see `coded`."""
    def sections(data, w):
        code, v, fields, mapped = mapping or (0, w, {}, None)
        widths, code_bits = tuple(K or (0, *range(8 if v == 1 else 16))), class_bits(class_count)
        V, turns = [sum(1 << k for k in widths[:b]) for b in range(len(widths))], cycle(classes)
        coded_blocks, counts = [], [[0] * len(widths) for _ in range(class_count)]  # of each block: mapping, low bytes, groups, class codes, classes
        for b, (begin, end) in enumerate(zip((0, *ends), ends)):
            x, of_mapping = mapped[b] if mapping else (elements(data[begin * w:end * w], w), {})
            y = transformed(x, v, transform, **details)
            assert not any(n >> 8 * low_bytes + 16 for n in y)
            windows = [n >> 8 * low_bytes for n in y]
            groups = [windows[at:at + 64] for at in range(0, len(y), 64)]
            of_groups = [next(turns) for _ in groups]
            used = [c if c < class_count else 0 for c in of_groups]
            for group, c in zip(groups, used):
                for window in group:
                    counts[c][bisect(V, window) - 1] += 1
            coded_blocks.append((of_mapping, [bytes(n >> 8 * k & 255 for n in y) for k in range(low_bytes)], groups, of_groups, used))

        stated, class_frequencies = [], []  # of each class
        for c in range(class_count):
            F = scaled(counts[c] if any(counts[c]) else [1] * len(widths))
            first = next(b for b, frequency in enumerate(F) if frequency)
            if frequencies:
                first, F = frequencies[c][0], [0] * frequencies[c][0] + list(frequencies[c][1])
            else:
                F = F[:max(b for b, frequency in enumerate(F) if frequency) + 1]
            stated.append((first, F[first:]))
            class_frequencies.append(F)
        own_tables = {'table_bytes': bytes(4), **transform_sections(transform, **details), 'low_bytes': le(low_bytes, 1),
               'bin_count': le(len(widths), 1), 'class_count': le(class_count, 1), 'mapping': le(code, 1),
               'K': bytes(widths)}
        for c, (first, F) in enumerate(stated):
            own_tables.update({'first %d' % c: le(first, 1), 'count %d' % c: le(len(F), 1), 'frequencies %d' % c: bytes(F)})
        own_tables.update(fields)
        own_tables.update({name: le(value, len(own_tables[name])) if isinstance(value, int) else value for name, value in (tables or {}).items()})
        if 'table_bytes' not in (tables or {}):
            own_tables['table_bytes'] = le(sum(map(len, own_tables.values())), 4)

        todo = list(coded_blocks)

        def block(data, w):
            of_mapping, low, groups, of_groups, used = todo.pop(0)
            found = {**of_mapping, 'classes': packed(of_groups, code_bits)}
            found.update({'low bytes %d' % k: section for k, section in enumerate(low)})
            found.update(coded(groups, widths, V, [class_frequencies[c] for c in used], *(({}, (), None) if todo else (start or {}, early, ends_in))))
            return rewrite(found) if rewrite and not todo else found
        return blocks('bins', ends, block, own_tables, filling, has_index)[1](data, w)
    return in_form('bins', ends, has_index), sections


# ---- the vectors -----------------------------------------------------------------------------------------------------

WEIGHTS = (13, 12, 11, 10, 8, 8, 8, 8, 14, 15)  # for two-byte floats: one bin each for 3C00, 3D00, 3E00 and 3F00
LENGTHS = (1, 63, 64, 65, 128, 129, 200)
PREDICTED = dict(restart=50, stride=10)


def ends_of(lengths):
    return tuple(sum(lengths[:b + 1]) for b in range(len(lengths)))


def little(n, limit, w=1):
    """Returns n elements below `limit`, smaller in some groups than in others."""
    return b''.join(le(a % limit >> a % 5 + i // 64 % 3, w) for i, a in enumerate(mixed(n)))


def valid_vectors():
    yield 'bins', 'encoding bins: 1 to 8 element bytes, a bin for each bit length', of_dtypes(
        lambda ends: (in_form('bins', ends), lambda data, w: bins(ends, low_bytes=max(0, w - 2))[1](data, w)))
    n = sum(LENGTHS)
    yield 'bins-lengths', 'blocks of bins of 1, 63, 64, 65, 128, 129 and 200 elements', of_many(
        ('u16', little(n, 50, 2), bins(ends_of(LENGTHS))), ('u8', little(n, 12), bins(ends_of(LENGTHS[::-1]), (1, 1, 2, 3, 4, 5, 6, 7))))
    yield 'bins-transforms', 'blocks of bins with each transform, which restarts with each block', of_many(
        ('bf16', floats(2, 150), bins((70, 150), WEIGHTS)), ('bf16', floats(2, 150), bins((64, 150))),
        ('bf16', floats(2, 150), bins((63, 150), (12,) * 16, 'delta', **PREDICTED)),
        ('bf16', floats(2, 150), bins((65, 150), (11,) * 32, 'lorenzo', **PREDICTED)),
        ('f32', floats(4, 70), bins((70,), WEIGHTS, low_bytes=2)), ('f32', floats(4, 70), bins((7, 70), low_bytes=2)),
        ('f64', floats(8, 20), bins((20,), transform='lorenzo', low_bytes=6, **PREDICTED)),
        ('i8', little(90, 40), bins((80, 90), transform='delta', restart=40, stride=1)), ('i8', little(90, 250), bins((90,))),
        ('i32', little(70, 2000, 4), bins((66, 70), transform='delta', restart=VARIES, stride=1)),
        ('i32', little(70, 30000, 4), bins((70,), transform='lorenzo', low_bytes=1, restart=30, stride=7)))
    yield 'bins-separable', ('blocks of bins of separable: all element bytes, weights 0 to 8, '
                                     'stride 1, restart not a multiple of stride, stride >= restart, restart over n'), of_many(*(
        (dtype, little(n, 3000 if w > 1 else 90, w), bins((n // 2, n), low_bytes=max(0, w - 2), transform='separable',
                                                          restart=restart, stride=stride, weights=weights))
        for dtype, w, n, restart, stride, weights in (
            ('u8', 1, 90, 40, 7, (4, 2)), ('i16', 2, 150, 60, 10, (5, 4)), ('bf16', 2, 150, 60, 10, (8, 2)),
            ('u16', 2, 100, 33, 1, (8, 8)), ('i16', 2, 100, 35, 10, (0, 8)), ('i16', 2, 64, 9, 9, (3, 0)),
            ('u16', 2, 70, 8, 11, (1, 1)), ('i32', 4, 80, VARIES, 16, (7, 3)), ('f32', 4, 80, 30, 6, (6, 5)),
            ('i64', 8, 60, 30, 6, (5, 7)))))
    yield 'bins-low-bytes', 'blocks of bins with 0 to 6 low bytes', of_many(*(
        ('u%d' % (8 * w), b''.join(le(a >> 48 - 8 * s + a % 8, w) for a in mixed(9)), bins((2, 9), low_bytes=s))
        for w in (4, 8) for s in range(w - 1)))
    every_width = el('H', *(a % (1 << a % 17) for a in mixed(200)))
    yield 'bins-widths', ('bins of 2^0 to 2^15 values; 2 and 64 bins; frequencies of 0, of 1 and 255; a frequent bin of frequency 1, '
                                  'states that move a byte each time'), of_many(
        ('u16', every_width, bins((130, 200))), ('u16', every_width, bins((140, 200), (15, 15))),
        ('u16', every_width, bins((200,), (10,) * 64)), ('u16', every_width[:140], bins((70,), (14, 14, 15), frequencies=[(0, (1, 1, 254))])),
        ('u16', bytes(260), bins((130,), (15, 15), frequencies=[(0, (1, 255))])),
        ('u16', el('H', *(5 + 30 * (a % 5 == 0) for a in mixed(70))), bins((70,), frequencies=[(1, (0, 0, 200, 0, 0, 56, 0, 0, 0))])),
        ('u8', bytes(range(256)), bins((130, 256), (2,) * 64)), ('u8', bytes(range(1, 150)), bins((149,), (7, 7), frequencies=[(0, (255, 1))])),
        ('u8', little(150, 99), bins((150,), (0, 0, 1, 2, 2, 1, 1, 4, 5, 6, 7))), ('u8', b'\1' * 65, bins((65,), frequencies=[(0, (1, 255))])))
    yield 'bins-classes', '1, 2, 3 and 4 classes; blocks with other classes than those before', of_many(*(
        ('u8', little(230, 90), bins((30, 230), class_count=count, classes=classes))
        for count, classes in ((1, (0,)), (2, (1, 0, 0)), (3, (2, 0, 1, 0)), (4, (3, 0, 2)))))
    rare = bytes(i % 997 == 600 for i in range(5000))
    yield 'bins-long', 'a block of 5,000 elements that takes few bytes', one(
        [rare], bins((5000,), class_count=2, classes=(0, 1, 0), frequencies=[(0, (255, 1)), (0, (253, 3))]), col('x', 'u8', [5000]))
    f, flat = Tsl([col('x', 'u8', [None])]), dict(K=(0, 0, 1, 2, 3, 4, 5, 6, 7), frequencies=[(0, (255, 1))])
    f.chunk(0, [bytes(65535)], bins((65535,), **flat))
    yield 'bins-most', 'bins of 65,535 elements without blocks', f.commit()
    f = Tsl([col('t', 'utf8', [None], nullable=True)])
    texts = [None if i % 7 == 3 else 'abcde'[:i % 6] for i in range(40)]
    steps = dict(transform='delta', restart=40, stride=1)
    f.chunk(0, texts, bins((40, sum(len(text or '') for text in texts))), validity=bins((2, 5)), shape=bins((10, 40), low_bytes=2, **steps))
    f.chunk(0, texts, validity=bins((5,)), shape=bins((40,), low_bytes=2, **steps))
    yield 'bins-of-parts', 'validity and shape of bins, in blocks and not', f.commit()
    f = Tsl([col('x', 'u16', [None, 2], nullable=True), col('t', 'utf8', [None], nullable=True), col('b', 'bool', [3])])
    f.chunk(0, [NUMBERS[:8], None, NUMBERS[8:40], b'', NUMBERS[40:80]], bins((4, 20, 40)))
    f.chunk(1, ['one', None, '', 'two', 'three'], bins((3, 11), (5, 5, 5, 3, 3, 3, 3, 7)), validity=zstd())
    f.chunk(2, [b'\0\1\1', b'\1\0\1'] * 2 + [b'\0\0\0'], bins((6, 15)))
    yield 'bins-parts', 'blocks of bins after validity and shape; zero bytes before the checksum; text, bools', f.commit()


FEW = el('H', 0x3F80, 0x3F00, 0x4000, 0xBF80, 0x3F80, 0)
THREE = dict(ends=(6,), K=(14, 14, 15))
MANY = el('H', *(a % (1 << a % 17) for a in mixed(150)))  # its last group has 22 elements


def fault(rule, name, what, here=(), data=FEW, dtype='u16', also=(), **enc):
    """Returns a vector with one chunk, in which the sections `here` are marked."""
    f = one([data], bins(**{**THREE, **enc}), col('x', dtype, [len(data) // DTYPES[dtype][1]]))
    r, = (r for r in f.regions if r.kind == 'chunk')
    r.tweak.update({'values: ' + section: r.body['values: ' + section] for section in ([here] if isinstance(here, str) else here)})
    return rule, 'bins-' + name, what, f, {'also': list(also)}


def table_cases():
    def table(name, what, here, value=None, also=(), tables=None, rule='R-5.18', **enc):
        return fault(rule, name, what, here, also=also, tables=tables if value is None else {here: value, **(tables or {})}, **enc)

    two = dict(class_count=2, classes=(1,), frequencies=[(0, (128, 64, 64)), (0, (128, 64, 64))])
    size = 4 + 16 + 4 + 3 + 2 * 5  # length of the tables with these options
    shifted = ['R-5.14']  # the entries are not where the tables end
    yield table('short', 'table_bytes of one less than the tables have', 'table_bytes', size - 1, **two)
    yield table('short-cut', 'tables without their last byte, as table_bytes says', 'table_bytes', size - 1, tables={'frequencies 1': b'\x80\x40'}, **two)
    yield table('short-fields', 'tables that end within their first 24 bytes', 'table_bytes', 23)
    yield table('short-zero', 'table_bytes 0', 'table_bytes', 0)
    yield table('long', 'table_bytes of one more than the tables have', 'table_bytes', size + 1, **two)
    yield table('long-byte', 'a byte after the frequencies, inside the tables', ['table_bytes', '+more'], tables={'+more': b'\0'}, **two)
    yield table('beyond', 'tables that reach beyond the stored bytes', 'table_bytes', 200, **two)
    yield table('huge', 'tables of 2^32 - 1 bytes', 'table_bytes', VARIES)

    yield table('low-bytes-2', 'one low byte of elements of two bytes', 'low_bytes', data=el('H', 3, 300, 5, 7, 0xFF00, 9), low_bytes=1)
    yield table('low-bytes-4', 'three low bytes of elements of four bytes', 'low_bytes', data=el('I', 3, 300, 5, 7, VARIES, 9), dtype='u32', low_bytes=3)
    yield table('low-bytes-8', 'seven low bytes of elements of eight bytes', 'low_bytes', data=el('Q', 3, 5, 7, 1 << 63, 9, 1), dtype='u64', low_bytes=7)
    yield table('low-bytes-1', 'one low byte of elements of one byte', 'low_bytes', data=b'abcdef', dtype='u8', K=(6, 6, 7), low_bytes=1)
    yield table('low-bytes-255', '255 low bytes', 'low_bytes', 255)

    yield table('none', 'bin_count 0', 'bin_count', tables={
        'bin_count': 0, 'K': b'', 'count 0': 0, 'frequencies 0': b''})
    yield table('one', 'one bin of 2^16 values, whose frequency is 255', 'bin_count', tables={
        'bin_count': 1, 'K': b'\x10', 'count 0': 1, 'frequencies 0': b'\xFF'})
    yield table('65', '65 bins', 'bin_count', K=(10,) * 63 + (9, 9))
    yield table('no-class', 'class_count 0', 'class_count', tables={
        'class_count': 0, 'first 0': b'', 'count 0': b'', 'frequencies 0': b''})
    yield table('5-classes', 'five classes', 'class_count', class_count=5)
    yield table('mapping', 'a dictionary, without its fields', 'mapping', 1)

    yield table('K-17', 'a bin of 2^17 values', 'K', b'\x11\x0E\x0F')
    yield table('K-64', 'a bin of 2^64 values, which has one if that wraps', 'K', bytes([64, *range(16)]), K=(0, *range(16)))
    yield table('K-16', 'a bin of 2^16 values, and one of a value beyond the window', 'K', b'\x10\0', K=(15, 15))
    yield table('K-255', 'a bin of 2^255 values', 'K', b'\x0E\x0E\xFF')
    yield table('multiple', 'a bin of 2^15 values at 2^14', 'K', K=(14, 15, 14))
    yield table('multiple-1', 'a bin of 2 values at 1', 'K', data=b'\1\2\3\4\5\xFF', dtype='u8', K=(0, 1, 0, *range(2, 8)))
    yield table('before', 'bins that end before the window ends, though no element is there', 'K', K=(14, 14, 14), data=FEW[:6] + FEW[:6])
    yield table('after', 'a bin of one value beyond the window', 'K', K=(14, 14, 15, 0))
    yield table('before-1', 'bins that end before a window of 8 bits', 'K', data=b'abcdef', dtype='u8', K=(6, 6, 6))
    yield table('after-1', 'bins that end after a window of 8 bits', 'K', data=b'abcdef', dtype='u8', K=(7, 7, 8))
    yield table('window-1', 'bins of a window of 16 bits of elements of one byte', 'K', data=b'abcdef', dtype='u8', K=(14, 14, 15))

    yield table('first', 'first + count of one more than there are bins; that one has frequency 0', ['first 0', 'count 0'], frequencies=[
        (0, (128, 64, 64, 0))])
    yield table('first-of-last', 'the same, in the second of two classes', ['first 1', 'count 1'], class_count=2, frequencies=[
        (0, (128, 64, 64)), (1, (128, 64, 64))])
    yield table('first-255', 'first + count is 258, which is 2 modulo 256', 'first 0', 255)
    yield table('sum-255', 'frequencies that add up to 255', 'frequencies 0', frequencies=[(0, (128, 64, 63))])
    yield table('sum-257', 'frequencies that add up to 257', 'frequencies 0', frequencies=[(0, (128, 64, 65))], data=FEW[:4] * 3)
    yield table('sum-512', 'frequencies that add up to 512, which is 0 modulo 256', 'frequencies 0', b'\xFF\xFF\2')
    yield table('sum-0', 'a class without frequencies', ['count 1', 'frequencies 1'], class_count=2, frequencies=[(0, (128, 64, 64)), (0, ())])
    yield table('sum-of-last', 'frequencies of the third class that add up to 255', 'frequencies 2', class_count=3, frequencies=[
        (0, (128, 64, 64)), (1, (128, 128)), (0, (128, 127))])

    def transform(name, what, here, value, **more):
        return table(name, what, here, value, rule='R-5.7', **more)

    yield transform('transform', 'separable with restart and stride 0', 'transform', 4)
    yield transform('transform-5', 'an unknown transform', 'transform', 5, transform='separable', restart=6, stride=1)
    for index, weights in enumerate(((9, 0), (8, 255))):
        yield transform('weight-%d' % index, 'a weight greater than 8', 'weights', bytes(weights), transform='separable', restart=6, stride=2)
    yield transform('weights', 'a weight with lorenzo', 'weights', b'\1\0', transform='lorenzo', restart=6, stride=2)
    yield transform('separable-restart', 'restart 0 with separable', 'restart', 0, transform='separable', restart=6, stride=2)
    yield transform('separable-stride', 'stride 0 with separable', 'stride', 0, transform='separable', restart=6, stride=2)
    yield transform('restart', 'restart 0 with delta', 'restart', 0, transform='delta', restart=6, stride=1)
    yield transform('stride', 'stride 0 with lorenzo', 'stride', 0, transform='lorenzo', restart=6, stride=1)
    yield transform('float', 'a flag of earlier versions: floats', 'reserved 0', 1, transform='delta', restart=6, stride=1)
    yield transform('rotate', 'rotate, which is not for bins', 'transform', 1)
    yield transform('transform-reserved', 'reserved bytes of a transform', 'reserved 2', 1 << 31)

    in_blocks = dict(ends=(3, 6))
    yield table('blocks-short', 'table_bytes of one less than the tables have, in blocks', 'table_bytes', 31, shifted, **in_blocks)
    yield table('blocks-zero', 'table_bytes 0, in blocks', 'table_bytes', 0, rule='R-5.14', **in_blocks)
    yield table('blocks-long', 'a byte after the frequencies, inside the tables, in blocks', ['table_bytes', '+more'], tables={'+more': b'\0'}, **in_blocks)
    yield table('blocks-beyond', 'tables that reach beyond the block index', 'table_bytes', 32 + 24 + 12 + 1, rule='R-5.14', **in_blocks)
    yield table('blocks-huge', 'tables of 2^32 - 1 bytes, in blocks', 'table_bytes', VARIES, rule='R-5.14', **in_blocks)
    yield table('blocks-low-bytes', '255 low bytes, in blocks', 'low_bytes', 255, **in_blocks)
    yield table('blocks-K', 'a bin of 2^17 values, in blocks', 'K', b'\x11\x0E\x0F', **in_blocks)
    yield table('blocks-sum', 'frequencies that add up to 255, in blocks', 'frequencies 0', frequencies=[(0, (128, 64, 63))], **in_blocks)
    yield transform('blocks-rotate', 'rotate, which is not for bins, in blocks', 'transform', 1, **in_blocks)
    for name, size, what in (('index-short', 38, 'within the tables'), ('index-shorter', 8 + 2 + 4, 'within table_bytes')):
        yield 'R-5.14', 'bins-' + name, 'a block index that ends %s' % what, one(
            [FEW], bins(**{**THREE, **in_blocks}), tweak={'values: index_bytes': size})
    yield 'R-5.18', 'bins-padding', 'a byte between the tables and the block', one(
        [FEW], bins(**{**THREE, **two}), tweak={'values: padding': bytes(10) + b'\1'})
    yield 'R-5.14', 'bins-one-block', 'bins in blocks, of one block', one([FEW], bins(**THREE, has_index=True))
    yield 'R-5.15', 'index-crc-bins', 'index_crc of bins', one([FEW], bins(**{**THREE, **in_blocks}), tweak={'values: index_crc': 1})
    yield 'R-5.16', 'block-crc-bins', 'block_crc of the second block of bins', one(
        [FEW], bins(**{**THREE, **in_blocks}), tweak={'values: block_crc 1': 1})
    for name, ends, what in (('part', (65536,), 'without blocks'), ('block', (65536, 65537), 'in a block')):
        yield 'R-5.14', 'bins-%s-too-long' % name, 'bins of 65,536 elements ' + what, one(
            [bytes(ends[-1])], bins(ends, (0, 0, 1, 2, 3, 4, 5, 6, 7), frequencies=[(0, (255, 1))]), col('x', 'u8', [ends[-1]]))
    for name, size, what in (('nothing', 0, 'no stored bytes'), ('table-bytes', 3, 'stored bytes that end within table_bytes'),
                             ('tables', 20, 'stored bytes that end within the tables')):
        sections = bins(**THREE)[1](FEW, 2)
        yield 'R-5.18', 'bins-cut-' + name, 'bins of ' + what, one([FEW], bins(**THREE), tweak={
            **{'values: ' + k: None for k in sections}, 'values: table_bytes': b''.join(sections.values())[:size]})


def cut(block, section, size):
    """Returns the block up to the first `size` bytes of the section."""
    names = list(block)
    return {name: block[name][:size] if name == section else block[name] for name in names[:names.index(section) + 1]}


def block_cases():
    def block(name, what, here, rewrite=None, data=MANY, **enc):
        there = 'block %d: ' % (len(enc.get('ends', (150,))) - 1)
        return fault('R-5.19', name, what, [there + here], data, rewrite=rewrite, **{'ends': (150,), 'K': None, **enc})

    def first(value):
        return lambda section: bytes([value]) + section[1:]

    def within(section, size, **enc):
        return block('cut-' + section.replace(' ', '-'), 'a block that ends within its %s' % section, section,
                     lambda found: cut(found, section, size), **enc)

    classes = dict(class_count=4, classes=(3, 0, 1), data=MANY + MANY, ends=(300,))
    yield within('classes', 1, **classes)
    yield within('low bytes 1', 149, data=b''.join(le(a >> 32, 4) for a in mixed(150)), dtype='u32', low_bytes=2)
    yield within('lower', 63)
    yield within('upper', 63)
    yield block('no-states', 'a block that ends before its states', 'classes', lambda found: cut(found, 'classes', 2), **classes)
    yield block('few-states', 'a block of 3 elements with 2 bytes for their states', 'lower', lambda found: {
        'classes': b'', 'lower': found['lower'][:2]}, data=MANY[:6], ends=(3,))
    yield block('class', 'a code of 3 of three classes', 'classes', class_count=3, classes=(2, 0, 3))
    yield block('class-last', 'a code of 3 of three classes, in the last of three blocks', 'classes', class_count=3, classes=(0, 2, 3), ends=(64, 100, 150))
    for bits, count in ((1, 2), (2, 3)):
        yield block('filling-%d' % bits, 'a padding bit of the class codes of a block, of %d bits each' % bits, 'classes',
                    lambda found: {**found, 'classes': found['classes'][:-1] + bytes([found['classes'][-1] | 0x80])}, class_count=count, classes=(1, 0))
    yield block('state', 'state 0 is below 256: it has moved a byte that it need not', 'upper', early=(0,))
    yield block('state-last', 'the last state is below 256', 'upper', early=(63,), data=b'\1\0' * 150)
    yield block('state-few', 'the last state of a block of 3 elements is below 256', 'upper', data=MANY[:6], ends=(3,), early=(2,))
    yield block('state-0', 'a state of 0', 'upper', lambda found: {
        **found, 'lower': first(0)(found['lower']), 'upper': first(0)(found['upper'])})
    yield block('stream-short', 'a stream without its last byte', 'stream', lambda found: {**found, 'stream': found['stream'][:-1]})
    yield block('stream-ends-in-refill', 'a stream that ends within the second refill of a group', 'stream', ends_in='refill 2')
    yield block('stream-ends-in-low', 'a stream that ends within the bytes `low` of a group', 'stream', ends_in='low')
    yield block('stream-long', 'a byte after the stream', 'stream', lambda found: {**found, 'stream': found['stream'] + b'\0'})
    yield block('no-stream', 'a block without its stream, which is one byte', 'upper', lambda found: {**found, 'stream': found['stream'][1:]},
                data=FEW[:8], **{
                    **THREE, 'ends': (4,), 'frequencies': [(0, (192, 32, 32))]})
    yield block('stream-of-one', 'a byte after the states of a block of one element, which need none', 'stream', lambda found: {
        **found, 'stream': b'\0'}, data=b'\1\0', ends=(1,))
    small = dict(data=b'\1\2\3' * 25, dtype='u8', ends=(75,))
    yield block('low-bits', 'low bits of 2 in a bin of 2 values', 'lower', start={0: 256 + 2}, **small)
    yield block('low-bits-0', 'low bits of 1 in a bin of one value', 'lower', start={2: 256 + 1}, **small)
    yield block('low-bits-7', 'low bits of 128 in a bin of 128 values', 'lower', start={10: 256 + 128 - 5}, data=bytes([133]) * 75, dtype='u8', ends=(75,))
    yield block('final', 'a final state of 512', 'lower', start={0: 512}, **small)
    yield block('final-high', 'a final state of 65,280', 'lower', start={3: 65280}, **small)
    yield block('final-absent', 'a final state of 512, in a state that the last group does not use', 'lower', start={63: 512}, **small)
    yield block('final-bits', 'a final state of 257, in a state that the last group does not use', 'lower', start={11: 257}, **small)
    yield block('final-second', 'a final state of 512, in the second of two blocks', 'lower', start={0: 512}, **{
        **small, 'ends': (3, 75)})


def invalid_vectors():
    for cases in (table_cases, block_cases):
        yield from cases()
