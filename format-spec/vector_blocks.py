"""The vectors of parts in blocks (SPEC.md, 5.12), for make_vectors.py. Bins occur only where the block index needs them."""
from vector_encoder import *

NUMBERS = el('H', *(i * i % 251 + 1000 * (i % 3) for i in range(200)))
ENDS = (64, 65, 129, 192, 200)  # a whole group, one element, a group and one, a group but one, eight elements
TIERS = dict(widths=(1, 1, 2), ranks=bytes([0, 3, 7, 4, 5]))


def raw(ends, **more):
    return blocks('raw', ends, lambda data, w: {'elements': data}, **more)


def shuffled_frames(ends, **more):
    return blocks('bitshuffle-zstd', ends, lambda data, w: {'frame': frame(bitshuffle(data, w))}, **more)


def frames(ends, table=VARIES, literals=(), **more):
    found = iter(literals)
    return blocks('zstd', ends, lambda data, w: {'frame': next(found, None) or frame(data)}, {'table': le(table, 4)}, **more)


def exponents(ends=ENDS, transform='rotate', **more):
    return exponent_tiers(transform, ends=ends, **{**TIERS, **more})


def residuals(ends=ENDS, transform='delta', **more):
    details = {} if transform == 'none' else dict(restart=50, stride=10)
    return residual_tiers(transform, ends=ends, **{**TIERS, **details, **more})


def pack(j, stream):
    """Packs streams with alternating packings (5.10)."""
    if len(set(stream)) == 1:
        return 1, stream[:1]
    return (2, frame(stream)) if j % 2 else (0, stream)


def planes(ends=ENDS, split=1, transform='rotate', **more):
    return planes_zstd(split, pack, transform, ends, **more)


def one(samples, enc, column=None, tweak=None, **parts):
    f = Tsl([column or col('x', 'u16', [len(samples[0]) // 2])])
    f.chunk(0, samples, enc, tweak=tweak, **parts)
    return f.commit()


def of_dtypes(encoding):
    """Returns a file with two chunks of 200 numbers of each width, one in blocks and one not."""
    f = Tsl([col('a', 'u8', [200]), col('b', 'bf16', [50, 4]), col('c', 'i32', [200]), col('d', 'f64', [200])])
    for c, column in enumerate(f.columns):
        data = (NUMBERS * 4)[:200 * column['w']]
        f.chunk(c, [data], encoding(ENDS))
        f.chunk(c, [data], encoding((200,)))
    return f.commit()


def valid_vectors():
    yield 'raw-in-blocks', 'encoding raw, in blocks of many lengths, and not; 1 to 8 element bytes', of_dtypes(raw)
    f = Tsl([col('x', 'u16', [None, 2], nullable=True), col('t', 'utf8', [None], nullable=True)])
    f.chunk(0, [NUMBERS[:8], None, NUMBERS[8:40], b'', NUMBERS[40:80]], raw((4, 20, 40)))
    f.chunk(1, ['one', None, '', 'two', 'three'], raw((3, 11)), validity=zstd())
    yield 'blocks-after-parts', 'blocks after validity and shape, which the checksum of the block index covers; zero bytes before it', f.commit()
    yield 'parts-in-blocks', 'validity and shape in blocks, of each encoding but bins; values in blocks too, and not', parts_in_blocks()
    yield 'bitshuffle-zstd-in-blocks', 'encoding bitshuffle-zstd, in blocks and not', of_dtypes(shuffled_frames)
    f = Tsl([col('t', 'utf8', [None])])
    f.table(0, ZSTD_DICTIONARY)
    f.chunk(0, ['a frame of each', ' without a dictionary'], frames((15, 36)))
    f.chunk(0, [ZSTD_DICTIONARY_TEXT, b'and another'], frames((len(ZSTD_DICTIONARY_TEXT), len(ZSTD_DICTIONARY_TEXT) + 11), 0, [ZSTD_DICTIONARY_FRAME]))
    f.chunk(0, [POEM, POEM], frames((len(POEM), 2 * len(POEM)), literals=[POEM_FRAME] * 2))
    yield 'zstd-in-blocks', 'encoding zstd in blocks, with and without a Zstandard dictionary', f.commit()
    yield 'zstd-in-blocks-of-numbers', 'encoding zstd of elements of 1 to 8 bytes, in blocks and not', of_dtypes(frames)
    yield 'exponent-tiers-in-blocks', 'encoding exponent-tiers, in blocks and not: groups that are cut, blocks without codes of a tier', of_dtypes(exponents)
    f = Tsl([col('x', 'u16', [200]), col('y', 'u8', [65]), col('z', 'f32', [3])])
    f.chunk(0, [NUMBERS], exponents(transform='none', widths=(3, 2, 1), ranks=bytes([0, 1, 2, 3, 4, 7, 9])))
    f.chunk(1, [b'\1' * 64 + b'\2'], exponents((64, 65), 'none', widths=(1, 1, 1), ranks=b'\1\2'))
    f.chunk(2, [el('f', 1.5, -2, 3)], exponents((1, 2, 3), widths=(3, 3, 4), ranks=bytes(range(29))))
    yield 'exponent-tiers-in-blocks-few', 'exponent-tiers of other widths, and of one element in each block', f.commit()
    yield 'residual-tiers-in-blocks', 'encoding residual-tiers, in blocks and not: prediction restarts with each block', of_dtypes(residuals)
    f = Tsl([col('x', 'i16', [20, 10]), col('y', 'u8', [66]), col('z', 'u64', [3])])
    f.chunk(0, [NUMBERS], residuals((70, 140, 200), 'lorenzo', restart=200))
    f.chunk(0, [NUMBERS], residuals((100, 200), restart=VARIES))
    f.chunk(1, [bytes(66), b'\1' * 66], residuals((64, 66, 132), 'none'))
    f.chunk(2, [le(1, 8) + le((1 << 64) - 1, 8) + le(1 << 63, 8)] * 2, residuals((1, 3, 6), 'none'))
    yield 'residual-tiers-in-blocks-few', 'residual-tiers in blocks: lorenzo over blocks that are not whole rows, floats, no extra bits, 63 of one element', f.commit()
    yield 'planes-zstd-in-blocks', 'encoding planes-zstd, in blocks and not: bit planes, tails, blocks of less than 8 elements', of_dtypes(planes)
    f = Tsl([col('x', 'i16', [20, 10]), col('y', 'u8', [66]), col('z', 'f64', [3])])
    f.chunk(0, [NUMBERS], planes(split=8, transform='lorenzo', restart=200, stride=10))
    f.chunk(0, [NUMBERS], planes((100, 200), 1, 'delta', restart=VARIES, stride=1))
    f.chunk(1, [bytes(66)] * 2, planes((1, 132), 8, 'none'))
    f.chunk(2, [el('d', 1, 2, 1)] * 2, planes((1, 2, 6), 1))
    yield 'planes-zstd-in-blocks-few', 'planes-zstd in blocks: byte planes, prediction that restarts with each block', f.commit()
    small = dict(transform='none', widths=(1, 1, 1), ranks=b'\0')
    for name, tiers in (('exponent', exponents), ('residual', residuals)):
        f = Tsl([col('x', 'u8', [None])])
        f.chunk(0, [bytes(65535)], tiers((65535,), **small))
        if name == 'exponent':
            f.chunk(0, [bytes(65536)], tiers((65535, 65536), **small))
        yield name + '-tiers-most', '%s-tiers of 65,535 elements without blocks%s' % (name, ', and in a block' * (name == 'exponent')), f.commit()
    f = Tsl([col('x', 'u8', [70000])])
    f.chunk(0, [bytes(70000)], planes((69999, 70000), 8, 'none'))
    yield 'blocks-long', 'a block of 69,999 elements of planes-zstd', f.commit()


def parts_in_blocks():
    f = Tsl([col('t', 'utf8', [None], nullable=True), col('n', 'i16', [None, None], nullable=True), col('l', 'u8', nullable=True, lists=[True])],
            flags=(1, 0, 0))
    f.table(0, ZSTD_DICTIONARY)
    texts = [None if i % 7 == 3 else 'abcde'[:i % 6] for i in range(40)]
    length = sum(len(text or '') for text in texts)
    f.chunk(0, texts, raw((length // 2, length)), validity=raw((1, 5)), shape=raw((10, 40)))
    f.chunk(0, texts, validity=frames((2, 5)), shape=frames((7, 40), 0))
    f.chunk(0, texts, zstd(), validity=residuals((2, 5), 'none'), shape=residuals((8, 9, 40), restart=40, stride=1))
    f.chunk(0, [texts[0], texts[3]], validity=CONSTANT, shape=shuffled_frames((1, 2)))
    pairs = [None if i % 9 == 8 else ((i % 3, 2), el('h', *[i] * (i % 3 * 2))) for i in range(27)]
    f.chunk(1, pairs, shuffled_frames((20, 42)), validity=shuffled_frames((3, 4)), shape=planes((27, 54, 81), 8, 'delta', restart=27, stride=1))
    f.chunk(1, pairs, exponents((24, 42)), validity=planes((1, 4)), shape=exponents((27, 81), 'none'))
    f.chunk(2, [[b'\1', None], None, [b'\2'] * 70, []], raw((3, 72)), validity=raw((1, 10)), shape=raw((1, 4)))
    f.chunk(2, [None, [b'\7'] * 9], validity=exponents((1, 3)))
    for c in (1, 2):
        f.chunk(c, [None] * (f.next[0] - f.next[c]))
    return f.commit()


def block_index_cases():
    samples, ends = [NUMBERS[:100], NUMBERS[100:200]], (25, 50, 100)

    def fault(name, what, tweak, also=(), enc=None):
        tweak = {'+values: ' + k[1:] if k[0] == '+' else 'values: ' + k: v for k, v in tweak.items()}
        return 'R-5.14', name, what, one(samples, enc or raw(ends), tweak=tweak), {'also': list(also)}

    stored = 64 + 200
    yield fault('index-beyond', 'a block index that reaches beyond the stored bytes', {'index_bytes': stored + 1})
    yield fault('index-huge', 'a block index of 2^32 - 1 bytes', {'index_bytes': VARIES})
    yield fault('index-short', 'a block index that ends within its entries', {'index_bytes': 47})
    yield fault('index-no-crc', 'a block index without room for its checksum', {'index_bytes': 11})
    yield fault('index-zero', 'a block index of no bytes', {'index_bytes': 0})
    yield fault('no-blocks', 'block_count 0', {'block_count': 0})
    for name, enc in (('raw', raw), ('zstd', frames), ('bitshuffle-zstd', shuffled_frames), ('exponent-tiers', exponents),
                      ('residual-tiers', residuals), ('planes-zstd', planes)):
        yield fault('one-block-' + name, '%s in blocks, of one block' % name, {}, enc=enc((100,), has_index=True))
    yield fault('blocks-huge', 'block_count 2^32 - 1', {'block_count': VARIES})
    yield fault('blocks-wrap', 'a block_count whose entries have a length that passes 2^32', {'block_count': (1 << 32) // 12 + 4})
    yield fault('fewer-blocks', 'one block fewer than there are entries', {'block_count': 2})
    yield fault('end-last', 'the last end is one element short', {'end 2': 99})
    yield fault('end-beyond', 'the last end is one element beyond', {'end 2': 101})
    yield fault('end-descends', 'ends that descend', {'end 1': 20})
    yield fault('end-equal', 'a block of no elements', {'end 1': 25})
    yield fault('first-end-zero', 'a first block of no elements', {'end 0': 0})
    yield fault('stored-end-last', 'the last stored_end is one byte short', {'stored_end 2': 199})
    yield fault('stored-end-beyond', 'the last stored_end is 2^32 - 1', {'stored_end 2': VARIES})
    yield fault('stored-end-descends', 'stored ends that descend', {'stored_end 0': 120}, ['R-5.3'])
    yield fault('stored-end-equal', 'a block of no stored bytes', {'stored_end 1': 50}, ['R-5.3'])
    for name, enc in (('exponent-tiers', exponents), ('residual-tiers', residuals)):
        stored = enc(ends)[1](b''.join(samples), 2)
        begin = int.from_bytes(stored['stored_end 0'], 'little')
        assert begin % 16 and sum(map(len, stored.values())) % 16
        yield fault('stored-end-in-padding-' + name, 'a stored_end of block 1 that lies within the padding after block 0, of ' + name, {
            'stored_end 1': begin + 1}, enc=enc(ends))
        yield fault('last-block-padded-' + name, 'zero bytes after the last block, up to a multiple of 16, of ' + name, {
            '+block 2: padding': bytes(-sum(map(len, stored.values())) % 16)}, enc=enc(ends))
    yield fault('filling', 'a byte of the filling is 1', {'filling': b'\0\1' + bytes(14)})
    yield fault('filling-long', '64 zero bytes more in a block index than alignment takes', {}, enc=raw(ends, filling=64))
    yield fault('filling-of-frames', 'a zero byte in a block index that needs no alignment', {}, enc=frames(ends, filling=1))
    for name, enc in (('raw', raw), ('exponent-tiers', exponents), ('residual-tiers', residuals)):
        yield fault('alignment-' + name, 'a block index of %s that is 8 bytes longer' % name, {}, enc=enc(ends, filling=8))
    yield fault('too-short', 'stored bytes that end within index_bytes', dict.fromkeys(raw(ends)[1](b''.join(samples), 2)) | {'index_bytes': b'\1\2\3'})
    for name, enc, before in (('zstd', frames, 'table'), ('exponent-tiers', exponents, 'ranks'), ('residual-tiers', residuals, 'ranks'),
                              ('planes-zstd', planes, 'reserved 3')):
        sections = enc(ends)[1](b''.join(samples), 2)
        size = sum(len(sections[name]) for name in list(sections)[:list(sections).index(before) + 1])
        yield fault('index-in-tables-' + name, 'a block index that ends within the tables of %s, followed by its checksum' % name, {
            'index_bytes': size + 3}, enc=enc(ends))
    small = dict(transform='none', widths=(1, 1, 1), ranks=b'\0')
    for name, tiers in (('exponent', exponents), ('residual', residuals)):
        for where, ends, what in (('part', (65536,), 'without blocks'), ('block', (65536, 65537), 'in the first of two blocks'),
                                  ('last-block', (1, 65537), 'in the last of two blocks')):
            yield 'R-5.14', '%s-tiers-%s-too-long' % (name, where), '%s-tiers of 65,536 elements %s' % (name, what), one(
                [bytes(ends[-1])], tiers(ends, **small), col('x', 'u8', [ends[-1]]))
    yield 'R-5.14', 'shape-index', 'the block index of a shape in blocks that ends within its entries', one(
        ['abc', 'd'], RAW, col('t', 'utf8', [None]), shape=raw((1, 2)), tweak={'shape: index_bytes': 35})
    yield 'R-5.14', 'validity-one-block', 'a validity in blocks, of one block', one(
        [b'\1', None] * 8, RAW, col('x', 'u8', nullable=True), validity=raw((2,), has_index=True))
    for name in ('raw', 'zstd', 'bins'):
        yield 'R-5.2', 'empty-%s-in-blocks' % name, 'values of no bytes that are %s in blocks' % name, one(
            ['', ''], RAW, col('t', 'utf8', [None]), tweak={'encoding': IDS[name] | 256, 'values.encoding': IDS[name] | 256})


def checksum_cases():
    samples, ends = [NUMBERS[:100], NUMBERS[100:200]], (25, 50, 100)
    yield 'R-5.15', 'index-crc', 'index_crc', one(samples, raw(ends), tweak={'values: index_crc': 0xDEADBEEF})
    for name, enc in (('zstd', frames), ('bitshuffle-zstd', shuffled_frames), ('exponent-tiers', exponents), ('residual-tiers', residuals),
                      ('planes-zstd', planes)):
        yield 'R-5.15', 'index-crc-' + name, 'index_crc of ' + name, one(samples, enc(ends), tweak={'values: index_crc': 0xDEADBEEF})
        yield 'R-5.16', 'block-crc-' + name, 'block_crc of block 1 of ' + name, one(samples, enc(ends), tweak={'values: block_crc 1': 0xDEADBEEF})
    f = Tsl([col('x', 'u16', nullable=True)])
    f.chunk(0, [None, b'\1\2', b'\3\4'], raw((1, 3)), tweak={'values: index_crc': zlib.crc32(b'')})
    yield 'R-5.15', 'index-crc-of-parts', 'index_crc of a chunk with parts', f.commit()
    alone = b''.join(list(raw((1, 3))[1](b'\0\0\1\2\3\4', 2).values())[:-3])
    f = Tsl([col('x', 'u16', nullable=True)])
    f.chunk(0, [None, b'\1\2', b'\3\4'], raw((1, 3)), tweak={'values: index_crc': zlib.crc32(alone)})
    yield 'R-5.15', 'index-crc-alone', 'index_crc without the bytes of the body before the block index', f.commit()
    for part, parts in (('validity', dict(validity=raw((1, 2)))), ('shape', dict(shape=raw((3, 16))))):
        for rule, field in (('R-5.15', 'index_crc'), ('R-5.16', 'block_crc 1')):
            yield rule, '%s-of-%s' % (field.replace('_', '-').replace(' ', '-'), part), '%s of a %s in blocks' % (field, part), one(
                ['ab', None] * 8, RAW, col('t', 'utf8', [None], nullable=True), tweak={'%s: %s' % (part, field): 0xDEADBEEF}, **parts)
    for b in range(3):
        yield 'R-5.16', 'block-crc-%d' % b, 'block_crc of block %d' % b, one(samples, raw(ends), tweak={'values: block_crc %d' % b: 1})
    yield 'R-5.16', 'blocks-swapped', 'the checksums of two blocks, swapped', one(samples, raw(ends), tweak={
        'values: block_crc 0': zlib.crc32(NUMBERS[50:100]), 'values: block_crc 1': zlib.crc32(NUMBERS[:50])})


def block_cases():
    e, r, p = exponents(), residuals(), planes()

    def of(rule, name, what, enc, tweak, also=(), sample=NUMBERS):
        tweak = {'values: ' + k: v.ljust(29, b'\0') if k == 'ranks' else v for k, v in tweak.items()}
        return rule, 'blocks-' + name, what, one([sample], enc, tweak=tweak), {'also': list(also)}

    shared = iter((NUMBERS[:42], NUMBERS[42:]))
    yield of('R-5.3', 'raw-longer', 'two blocks of raw whose stored bytes are shared otherwise', blocks(
        'raw', (20, 200), lambda data, w: {'elements': next(shared)}), {})
    yield of('R-5.5', 'frame', 'a block of two frames', frames((100, 200), literals=[
        frame(NUMBERS[:200]), frame(NUMBERS[200:300]) + frame(NUMBERS[300:])]), {})
    yield of('R-5.5', 'frame-length', 'a frame of a byte more than its block', frames((100, 200), literals=[frame(NUMBERS[:201])]), {})
    yield of('R-5.5', 'frame-of-two', 'a frame that is cut, and continues in the next block', frames((100, 200), literals=[
        frame(NUMBERS)[:300], frame(NUMBERS)[300:]]), {})
    yield of('R-5.5', 'shuffled-trailing', 'a byte after the frame of a block', blocks(
        'bitshuffle-zstd', ENDS, lambda data, w: {'frame': frame(bitshuffle(data, w)) + b'\0'}), {})
    yield of('R-5.5', 'shuffled-whole', 'the bit-shuffle of all elements, in two frames', blocks('bitshuffle-zstd', (100, 200), lambda data, w: {
        'frame': frame(bitshuffle(NUMBERS, 2)[:120] if data == NUMBERS[:200] else bitshuffle(NUMBERS, 2)[120:])}), {})
    yield of('R-5.7', 'transform', 'an unknown transform', e, {'transform': 4}, ['R-5.10'])
    yield of('R-5.7', 'restart', 'restart 0 with delta', r, {'restart': 0})
    yield of('R-5.7', 'separable', 'residuals of separable', residuals(transform='separable', weights=(5, 4)), {}, ['R-5.11'])
    yield of('R-5.7', 'planes', 'restart 1 with rotate, of planes', p, {'restart': 1})
    yield of('R-5.8', 'width', 'width_1 of 4', e, {'width_1': 4})
    yield of('R-5.8', 'reserved', 'the reserved field of the last block', e, {'block 4: reserved': 1})
    yield of('R-5.8', 'reserved-of-residuals', 'the reserved field of the first block of residuals', r, {'block 0: reserved': 1 << 15})
    yield of('R-5.8', 'padding-of-tier', 'the padding before tier 3', e, {'block 0: padding 3': b'\1'})
    yield of('R-5.16', 'padding', 'the padding after the first block', e, {'block 0: padding': b'\1' + bytes(11)})
    yield of('R-5.8', 'ranks', 'a rank that cannot be reached', e, {'ranks': TIERS['ranks'] + bytes(4) + b'\1'})
    yield of('R-5.10', 'exponents-delta', 'exponents that are predicted', exponents(transform='delta', restart=50, stride=10), {})
    yield of('R-5.11', 'residuals-rotate', 'residuals that are rotated', residuals(transform='rotate', restart=0, stride=0), {})
    yield of('R-5.11', 'rank', 'a rank of 17 for elements of two bytes', r, {'ranks': bytes([0, 3, 7, 4, 17])})
    yield of('R-5.17', 'long', 'a byte after the literals of the last block', longer(e, 'literals'), {})
    yield of('R-5.17', 'long-first', 'a byte after the literals of the first block', longer(e, 'literals', block=0), {})
    yield of('R-5.17', 'long-extra', 'a byte after the extra bits of the last block', longer(r, 'extra bits'), {})
    yield of('R-5.17', 'short-extra', 'extra bits that lack their last byte', longer(r, 'extra bits', -1), {})
    yield of('R-5.17', 'short-counts', 'a block that ends within its counts', rewritten(e, lambda block: {'count_2': bytes(2), 'count_3': bytes(2), 'count_4': b'\0'}), {})
    yield of('R-5.17', 'short-tier', 'a block that ends within its last tier, without literals', rewritten(r, lambda block: {
        **block, 'count_4': bytes(2), 'literals': b'', 'tier 3': b'', 'extra bits': b''}), {})
    yield of('R-5.9', 'count-2', 'count_2 of one more, and a code for it', recounted(e), {})
    yield of('R-5.9', 'count-2-of-residuals', 'count_2 of one more of residuals, and a code for it', recounted(r, 3), {}, ['R-5.17'])
    yield of('R-5.8', 'filling-codes', 'a padding code of a cut group', topped(e, 'tier 2'), {})
    yield of('R-5.11', 'filling-bits', 'a padding bit of the extra bits', topped(r, 'extra bits'), {})
    yield of('R-5.12', 'split', 'split 0', p, {'split': 0})
    yield of('R-5.12', 'planes-long', 'a byte after the tail of the last block', rewritten(p, lambda block: {**block, 'tail': b'\0'}), {})
    yield of('R-5.12', 'planes-cut', 'a block that ends within its last stream', rewritten(planes(split=8), lambda block: {
        **block, 'stream 1': block['stream 1'][:-1]}), {})
    yield of('R-5.12', 'planes-tail', 'a block of 65 elements without its tail', rewritten(planes((65, 130)), lambda block: {**block, 'tail': b''}, (65, 130)),
             {}, sample=NUMBERS[:260])
    for name, table in (('no-table', 0), ('no-table-huge', VARIES - 1)):
        f = Tsl([col('t', 'utf8', [None])])
        f.chunk(0, ['text in blocks'], frames((4, 14), table))
        yield 'R-5.13', 'blocks-' + name, 'table %d in blocks, of a column without tables' % table, f.commit()


def rewritten(enc, rewrite, ends=ENDS, number=None):
    """Returns the encoding with the sections of one block rewritten: block `number`, by default the last one."""
    name, sections = enc

    def changed(data, w):
        parts, todo = sections(data, w), iter(range(len(ends)))
        names = list(parts)
        tables = {k: parts[k] for k in names[2:names.index('end 0')]}
        at = len(ends) - 1 if number is None else number

        def block(data, w):
            prefix = 'block %d: ' % (b := next(todo))
            found = {k[len(prefix):]: v for k, v in parts.items() if k.startswith(prefix) and k != prefix + 'padding'}
            return rewrite(found) if b == at else found
        return blocks(name.replace(' in blocks', ''), ends, block, tables)[1](data, w)
    return name, changed


def longer(enc, section, by=1, block=None):
    return rewritten(enc, lambda block: {**block, section: block[section] + bytes(by) if by > 0 else block[section][:by]}, number=block)


def recounted(enc, number=None):
    def rewrite(block):
        count = int.from_bytes(block['count_2'], 'little')
        assert count % 8 != 0  # one more code fits in the existing bytes
        return {**block, 'count_2': le(count + 1, 2)}
    return rewritten(enc, rewrite, number=number)


def topped(enc, section):
    return rewritten(enc, lambda block: {**block, section: block[section][:-1] + bytes([block[section][-1] | 0x80])})


def invalid_vectors():
    for cases in (block_index_cases, checksum_cases, block_cases):
        for rule, name, what, f, *options in cases():
            yield rule, name, what, f, *options
