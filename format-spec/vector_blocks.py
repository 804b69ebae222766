"""The vectors of chunks in blocks (SPEC.md, 5.12), for make_vectors.py."""
from vector_encoder import *
from vector_tiers import blocked, blocked_tiers

NUMBERS = el('H', *(i * i % 251 + 1000 * (i % 3) for i in range(200)))
ENDS = (64, 65, 129, 192, 200)  # a whole group, one element, a group and one, a group but one, eight elements
TIERS = dict(widths=(1, 1, 2), ranks=bytes([0, 3, 7, 4, 5]))


def raw(ends, **more):
    return blocked('blocked-raw', ends, lambda data, w: {'elements': data}, **more)


def shuffled_frames(ends, **more):
    return blocked('blocked-bitshuffle-zstd', ends, lambda data, w: {'frame': frame(bitshuffle(data, w))}, **more)


def frames(ends, table=VARIES, literals=(), **more):
    found = iter(literals)
    return blocked('blocked-zstd', ends, lambda data, w: {'frame': next(found, None) or frame(data)}, {'table': le(table, 4)}, **more)


def exponents(ends=ENDS, transform='rotate', **more):
    return blocked_tiers('blocked-exponent-tiers', ends, transform, **{**TIERS, **more})


def residuals(ends=ENDS, transform='delta', **more):
    details = {} if transform == 'none' else dict(restart=50, stride=10)
    return blocked_tiers('blocked-residual-tiers', ends, transform, **{**TIERS, **details, **more})


def one(samples, enc, column=None, tweak=None, **parts):
    f = Tsl([column or col('x', 'u16', [len(samples[0]) // 2])])
    f.chunk(0, samples, enc, tweak=tweak, **parts)
    return f.commit()


def of_dtypes(encoding):
    """A chunk of 200 numbers of each width; and one of one block."""
    f = Tsl([col('a', 'u8', [200]), col('b', 'bf16', [50, 4]), col('c', 'i32', [200]), col('d', 'f64', [200])])
    for c, column in enumerate(f.columns):
        data = (NUMBERS * 4)[:200 * column['w']]
        f.chunk(c, [data], encoding(ENDS))
        f.chunk(c, [data], encoding((200,)))
    return f.commit()


def valid_vectors():
    yield 'blocked-raw', 'encoding blocked-raw: blocks of many lengths, and one; 1 to 8 element bytes', of_dtypes(raw)
    f = Tsl([col('x', 'u16', [None, 2], nullable=True), col('t', 'utf8', [None], nullable=True)])
    f.chunk(0, [NUMBERS[:8], None, NUMBERS[8:40], b'', NUMBERS[40:80]], raw((4, 20, 40), filling=8))
    f.chunk(1, ['one', None, '', 'two', 'three'], raw((3, 11)), validity=zstd())
    yield 'blocked-parts', 'blocks behind validity and shape, which the checksum of the front covers; zero bytes before it', f.commit()
    f = Tsl([col('x', 'u8', [5])], A=4096)
    f.chunk(0, [bytes(range(5))], raw((2, 5), filling=4095))
    yield 'blocked-filling', 'a front with 4,095 zero bytes', f.commit()
    yield 'blocked-bitshuffle-zstd', 'encoding blocked-bitshuffle-zstd', of_dtypes(shuffled_frames)
    f = Tsl([col('t', 'utf8', [None])])
    f.table(0, DICTIONARY)
    f.chunk(0, ['a frame of each', ' without a dictionary'], frames((15, 36)))
    f.chunk(0, [DICTIONARY_TEXT, b'and another'], frames((len(DICTIONARY_TEXT), len(DICTIONARY_TEXT) + 11), 0, [DICTIONARY_FRAME]))
    f.chunk(0, [POEM], frames((len(POEM),), literals=[POEM_FRAME]))
    yield 'blocked-zstd', 'encoding blocked-zstd, with and without a dictionary', f.commit()
    yield 'blocked-exponent-tiers', 'encoding blocked-exponent-tiers: groups that are cut, blocks without codes of a tier', of_dtypes(exponents)
    f = Tsl([col('x', 'u16', [200]), col('y', 'u8', [65]), col('z', 'f32', [3])])
    f.chunk(0, [NUMBERS], exponents(transform='none', widths=(3, 2, 1), ranks=bytes([0, 1, 2, 3, 4, 7, 9])))
    f.chunk(1, [b'\1' * 64 + b'\2'], exponents((64, 65), 'none', widths=(1, 1, 1), ranks=b'\1\2'))
    f.chunk(2, [el('f', 1.5, -2, 3)], exponents((1, 2, 3), widths=(3, 3, 4), ranks=bytes(range(29))))
    yield 'blocked-exponents', 'blocked-exponent-tiers of other widths, and of one element in each block', f.commit()
    yield 'blocked-residual-tiers', 'encoding blocked-residual-tiers: prediction begins anew with each block', of_dtypes(residuals)
    f = Tsl([col('x', 'i16', [20, 10]), col('y', 'u8', [66]), col('z', 'u64', [3])])
    f.chunk(0, [NUMBERS], residuals((70, 140, 200), 'lorenzo', restart=200))
    f.chunk(0, [NUMBERS], residuals((100, 200), restart=VARIES))
    f.chunk(1, [bytes(66), b'\1' * 66], residuals((64, 66, 132), 'none'))
    f.chunk(2, [le(1, 8) + le((1 << 64) - 1, 8) + le(1 << 63, 8)] * 2, residuals((1, 3, 6), 'none'))
    yield 'blocked-residuals', 'blocked-residual-tiers: lorenzo over blocks that are no whole rows, floats, no extra bits, 63 of one element', f.commit()
    most = residuals((65535, 65536), 'none', widths=(1, 1, 1), ranks=b'\0')
    yield 'blocked-most', 'a block of 65,535 elements', one([bytes(65536)], most, col('x', 'u8', [65536]))


def front_cases():
    samples, ends = [NUMBERS[:100], NUMBERS[100:200]], (25, 50, 100)

    def front(name, what, tweak, also=(), enc=None):
        tweak = {k if k == '+more' else 'values: ' + k: v for k, v in tweak.items()}
        return 'R-5.14', name, what, one(samples, enc or raw(ends), tweak=tweak), {'also': list(also)}

    stored = 12 + 36 + 200
    yield front('front-beyond', 'a front that reaches beyond the stored bytes', {'front_bytes': stored + 1})
    yield front('front-huge', 'a front of 2^32 - 1 bytes', {'front_bytes': VARIES})
    yield front('front-short', 'a front that ends within its directory', {'front_bytes': 47})
    yield front('front-no-crc', 'a front without room for its checksum', {'front_bytes': 11})
    yield front('front-zero', 'a front of no bytes', {'front_bytes': 0})
    yield front('no-blocks', 'block_count 0', {'block_count': 0})
    yield front('blocks-huge', 'block_count 2^32 - 1', {'block_count': VARIES})
    yield front('blocks-wrap', 'a block_count whose directory has a length that passes 2^32', {'block_count': (1 << 32) // 12 + 4})
    yield front('fewer-blocks', 'one block fewer than the directory has', {'block_count': 2})
    yield front('end-last', 'the last end is one element short', {'end 2': 99})
    yield front('end-beyond', 'the last end is one element beyond', {'end 2': 101})
    yield front('end-descends', 'ends that descend', {'end 1': 20})
    yield front('end-equal', 'a block of no elements', {'end 1': 25})
    yield front('first-end-zero', 'a first block of no elements', {'end 0': 0})
    yield front('stored-end-last', 'the last stored_end is one byte short', {'stored_end 2': 199})
    yield front('stored-end-beyond', 'the last stored_end is 2^32 - 1', {'stored_end 2': VARIES})
    yield front('stored-end-descends', 'stored ends that descend', {'stored_end 0': 120}, ['R-5.3'])
    yield front('stored-end-equal', 'a block of no stored bytes', {'stored_end 1': 50}, ['R-5.3'])
    yield front('filling', 'a byte of the filling is 1', {'filling': b'\0\1\0'}, enc=raw(ends, filling=3))
    yield front('filling-long', '4,096 zero bytes in a front', {}, enc=raw(ends, filling=4096))
    yield front('too-short', 'stored bytes that end within front_bytes', dict.fromkeys(raw(ends)[1](b''.join(samples), 2)) | {'front_bytes': b'\1\2\3'})
    most = residuals((65536,), 'none', widths=(1, 1, 1), ranks=b'\0')
    yield 'R-5.14', 'block-too-long', 'a block of 65,536 elements', one([bytes(65536)], most, col('x', 'u8', [65536]))
    yield 'R-5.14', 'shape', 'a shape in blocks', one(['abc', 'd'], RAW, col('t', 'utf8', [None]), shape=raw((1, 2)))
    yield 'R-5.14', 'validity', 'a validity in blocks', one([b'\1', None] * 8, RAW, col('x', 'u8', nullable=True), validity=raw((1, 2)))
    yield 'R-5.2', 'empty-blocks', 'values of no bytes in blocks', one(
        ['', ''], RAW, col('t', 'utf8', [None]), tweak={'encoding': 8, 'values.encoding': 8})


def checksum_cases():
    samples, ends = [NUMBERS[:100], NUMBERS[100:200]], (25, 50, 100)
    yield 'R-5.15', 'front-crc', 'front_crc', one(samples, raw(ends), tweak={'values: front_crc': 0xDEADBEEF})
    f = Tsl([col('x', 'u16', nullable=True)])
    f.chunk(0, [None, b'\1\2', b'\3\4'], raw((1, 3)), tweak={'values: front_crc': zlib.crc32(b'')})
    yield 'R-5.15', 'front-crc-of-parts', 'front_crc of a chunk with parts', f.commit()
    alone = b''.join(list(raw((1, 3))[1](b'\0\0\1\2\3\4', 2).values())[:-3])
    f = Tsl([col('x', 'u16', nullable=True)])
    f.chunk(0, [None, b'\1\2', b'\3\4'], raw((1, 3)), tweak={'values: front_crc': zlib.crc32(alone)})
    yield 'R-5.15', 'front-crc-alone', 'front_crc without the bytes of the body before the front', f.commit()
    for b in range(3):
        yield 'R-5.16', 'block-crc-%d' % b, 'block_crc of block %d' % b, one(samples, raw(ends), tweak={'values: block_crc %d' % b: 1})
    yield 'R-5.16', 'blocks-swapped', 'the checksums of two blocks, swapped', one(samples, raw(ends), tweak={
        'values: block_crc 0': zlib.crc32(NUMBERS[50:100]), 'values: block_crc 1': zlib.crc32(NUMBERS[:50])})


def block_cases():
    e, r = exponents(), residuals()

    def of(rule, name, what, enc, tweak, also=(), sample=NUMBERS):
        tweak = {'values: ' + k: v.ljust(32, b'\0') if k == 'ranks' else v for k, v in tweak.items()}
        return rule, 'blocked-' + name, what, one([sample], enc, tweak=tweak), {'also': list(also)}

    yield of('R-5.3', 'raw-longer', 'two blocks of blocked-raw whose stored bytes are shared otherwise', raw((20, 200)), {'stored_end 0': 42}, ['R-5.16'])
    yield of('R-5.5', 'frame', 'a block of two frames', frames((200,), literals=[frame(NUMBERS[:200]) + frame(NUMBERS[200:])]), {})
    yield of('R-5.5', 'frame-length', 'a frame of a byte more than its block', frames((200,), literals=[frame(NUMBERS + b'\0')]), {})
    yield of('R-5.5', 'shuffled-trailing', 'a byte after the frame of a block', shuffled_frames(ENDS), {
        'block 4: frame': frame(bitshuffle(NUMBERS[384:], 2))[:-1]}, ['R-5.14'])
    yield of('R-5.7', 'transform', 'an unknown transform', e, {'transform': 4})
    yield of('R-5.7', 'restart', 'restart 0 with delta', r, {'restart': 0})
    yield of('R-5.7', 'separable', 'residuals of separable', blocked_tiers(
        'blocked-residual-tiers', ENDS, 'separable', restart=50, stride=10, weights=(5, 4), **TIERS), {}, ['R-5.11'])
    yield of('R-5.8', 'width', 'width_1 of 4', e, {'width_1': 4})
    yield of('R-5.8', 'reserved', 'the reserved byte of the tables', e, {'reserved 3': 1})
    yield of('R-5.8', 'ranks', 'a rank that cannot be reached', e, {'ranks': TIERS['ranks'] + b'\1'})
    yield of('R-5.10', 'exponents-delta', 'exponents that are predicted', blocked_tiers(
        'blocked-exponent-tiers', ENDS, 'delta', restart=50, stride=10, **TIERS), {})
    yield of('R-5.11', 'residuals-rotate', 'residuals that are rotated', blocked_tiers('blocked-residual-tiers', ENDS, 'rotate', **TIERS), {})
    yield of('R-5.11', 'rank', 'a rank of 17 for elements of two bytes', r, {'ranks': bytes([0, 3, 7, 4, 17])})
    yield of('R-5.17', 'long', 'a byte after the literals of the last block', *longer(e, 'literals'))
    yield of('R-5.17', 'long-extra', 'a byte after the extra bits of the last block', *longer(r, 'extra bits'))
    yield of('R-5.17', 'short-extra', 'extra bits that lack their last byte', *longer(r, 'extra bits', -1))
    yield of('R-5.17', 'short-head', 'a block that ends within its head', blocked('blocked-exponent-tiers', (200,), lambda data, w: {
        'head': bytes(5)}, {k: v for k, v in e[1](NUMBERS, 2).items() if k in TABLES}), {})
    yield of('R-5.9', 'count-2', 'count_2 of one more, and a code for it', *recounted(e))
    yield of('R-5.8', 'filling-codes', 'a code that fills up a cut group', *filled(e))
    yield of('R-5.11', 'filling-bits', 'a bit that fills up the extra bits', *filled_bits(r))
    f = Tsl([col('t', 'utf8', [None])])
    f.chunk(0, ['text'], frames((4,), 0))
    yield 'R-5.13', 'blocked-no-table', 'a table that the column has not', f.commit()


TABLES = ('transform', 'reserved 0', 'weights', 'restart', 'stride', 'reserved 2', 'width_1', 'width_2', 'width_3', 'reserved 3', 'ranks')


def rewritten(enc, rewrite):
    """The encoding with the pieces of its last block rewritten."""
    name, pieces = enc
    tables = {k: v for k, v in pieces(NUMBERS, 2).items() if k in TABLES}
    last = 'block %d: ' % (len(ENDS) - 1)
    parts = pieces(NUMBERS, 2)

    def block(data, w):
        number = next(b for b, end in enumerate(ENDS) if NUMBERS[2 * end - len(data):2 * end] == data)
        found = {k.split(': ', 1)[1]: v for k, v in parts.items() if k.startswith('block %d: ' % number)}
        return rewrite(found) if last == 'block %d: ' % number else found
    return blocked(name, ENDS, block, tables), {}


def longer(enc, section, by=1):
    return rewritten(enc, lambda block: {**block, section: block[section] + bytes(by) if by > 0 else block[section][:by]})


def recounted(enc):
    def rewrite(block):
        count = int.from_bytes(block['count_2'], 'little')
        assert count % 8 != 0  # the code fits in the bytes there are
        return {**block, 'count_2': le(count + 1, 2)}
    return rewritten(enc, rewrite)


def filled(enc):
    def rewrite(block):
        count = int.from_bytes(block['count_2'], 'little')
        assert count % 8 != 0
        return {**block, 'tier 2': block['tier 2'][:-1] + bytes([block['tier 2'][-1] | 0x80])}
    return rewritten(enc, rewrite)


def filled_bits(enc):
    return rewritten(enc, lambda block: {**block, 'extra bits': block['extra bits'][:-1] + bytes([block['extra bits'][-1] | 0x80])})


def invalid_vectors():
    for cases in (front_cases, checksum_cases, block_cases):
        for rule, name, what, f, *options in cases():
            yield rule, name, what, f, *options
