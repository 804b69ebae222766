"""An encoder of gaps and outliers in blocks of bins (BINS.md, 5.15) and their vectors, for make_vectors.py."""
from functools import partial
from itertools import groupby

from vector_bins import bins, cut, ends_of, little
from vector_encoder import *
from vector_mappings import BINS, fault, few_of_int_multiple, few_of_dictionary, few_of_float_multiple, int_multiples, packed_bits, dictionaries, patterns, float_multiples
from vector_tiers import elements, in_form, transform_sections, transformed

PREDICTION = ('restart', 'stride', 'weights')


# ---- the encoder -----------------------------------------------------------------------------------------------------

def sequence(text):
    """Returns the bytes of bits that are written as in the text."""
    return packed_bits([bit == '1' for bit in text.replace(' ', '')])


def marks(stretches, parameters):
    """Returns marks. `stretches` has the lengths of unmarked and marked stretches in turn, `parameters` the parameter of each kind."""
    text = ''
    for t, length in enumerate(stretches):
        value, parameter = length - (t > 0), parameters[t % 2]
        ones, size = (value >> parameter, parameter) if value >> parameter < 16 else (16, 16)
        text += '1' * ones + '0' * (ones < 16) + ''.join('01'[value >> i & 1] for i in range(size))
    return sequence(text)


def stretches_of(marked):
    lengths = [len(list(equal)) for _, equal in groupby(marked)]
    return lengths if lengths and not marked[0] else [0, *lengths]


def with_options(ends, mapping=None, gaps=None, outliers=None, filters=None, transform='none', low_bytes=0, tables=None,
                 **more):
    """Returns an encoding like `bins`, with options. `ends` do not count gaps. `gaps` has the filler, both parameters, and
    the stretches of each block. `outliers` has upper_bits, both parameters, and the indices of elements that are marked
    although their uppers are 0. `filters` has the fields of the option, and a function from the numbers of a block to y
    and filter codes; see vector_filters.py."""
    details = {name: more.pop(name) for name in PREDICTION if name in more}

    def sections(data, w):
        code, v, fields, mapped = mapping or (0, w, {}, None)
        fields, blocks, all_ends = dict(fields), [], ends_of(list(map(sum, gaps[3]))) if gaps else ends
        if gaps:
            fields.update({'filler': le(gaps[0], w), 'rice_unmarked of gaps': le(gaps[1], 1), 'rice_marked of gaps': le(gaps[2], 1)})
        if outliers:
            fields.update(zip(('upper_bits', 'rice_unmarked of outliers', 'rice_marked of outliers'), (le(n, 1) for n in outliers)))
        fields.update(filters[0] if filters else {})
        for b, (begin, end) in enumerate(zip((0, *all_ends), all_ends)):
            x, found = elements(data[begin * w:end * w], w), {}
            if gaps:
                found['gap marks'] = marks(gaps[3][b], gaps[1:3])
                is_gap = [t % 2 for t, length in enumerate(gaps[3][b]) for _ in range(length)]
                x = [element for element, gap in zip(x, is_gap) if not gap]
            if mapping:
                x, of_mapping = mapped[b]
                found.update(of_mapping)
            x, codes = filters[1](x, v, b) if filters else (x, None)
            y = transformed(x, v, transform, **details)
            if outliers:
                uppers = [n >> 8 * low_bytes + 16 for n in y]
                marked = [upper > 0 or i in outliers[3:] for i, upper in enumerate(uppers)]
                found['outlier marks'] = marks(stretches_of(marked), outliers[1:3])
                found['uppers'] = packed_bits([upper >> k & 1 for upper, mark in zip(uppers, marked) if mark for k in range(outliers[0])])
                y = [n & (1 << 8 * low_bytes + 16) - 1 for n in y]
            if filters:
                found['filter codes'] = codes
            blocks.append((y, found))
        options = 16 * bool(gaps) + 32 * bool(outliers) + 64 * bool(filters)
        return bins(all_ends, mapping=(code | options, v, fields, blocks), low_bytes=low_bytes,
                    tables={**transform_sections(transform, **details), **(tables or {})}, **more)[1](data, w)
    return in_form('bins', gaps[3] if gaps else ends), sections


def plain(dtype, ends, x=None, **more):
    """Returns a chunk of bytes or integers for `of_many`, pseudo-random by default."""
    w = DTYPES[dtype][1]
    data = little(ends[-1], 200, w) if x is None else x if isinstance(x, bytes) else b''.join(le(n, w) for n in x)
    return dtype, data, with_options(ends, **more)


dictionaries, float_multiples, int_multiples = (partial(of, encode=with_options) for of in (dictionaries, float_multiples, int_multiples))


def gapped(stretches, filler, parameters, of, dtype, *rest, **more):
    """Returns a chunk with gaps for `of_many`. `of` makes the chunk of the other elements."""
    ends, w, at, data = ends_of([sum(lengths[::2]) for lengths in stretches]), DTYPES[dtype][1], 0, b''
    _, others, enc = of(dtype, ends, *rest, gaps=(filler, *parameters, stretches), **more)
    for lengths in stretches:
        for t, length in enumerate(lengths):
            if t % 2:
                data += le(filler, w) * length
            else:
                data += others[at * w:(at + length) * w]
                at += length
    assert at * w == len(others)
    return dtype, data, enc


# ---- the examples of the text ----------------------------------------------------------------------------------------

OF_TEXT = gapped([[0, 2, 5, 3, 2]], 0, (2, 0), plain, 'u8', b'abcdefg')
assert OF_TEXT[1] == b'\0\0abcde\0\0\0fg' and OF_TEXT[2][1](OF_TEXT[1], 1)['block 0: gap marks'] == bytes.fromhex('2826')
assert sequence('0001 0100 0110 010') == bytes.fromhex('2826')


# ---- the vectors -----------------------------------------------------------------------------------------------------

SPEECH = [[4, 3, 20, 9, 41], [0, 5, 30, 1, 1, 30], [7, 60]]  # 103 unmarked elements, in blocks of 65, 31 and 7
EDGES = [[5], [0, 5], [1], [0, 1], [0, 1, 1], [1, 1], [64], [0, 64, 64], [65, 1], [3, 2, 70, 1, 1]]
PITCHES = [220 + i % 40 * (1 - 2 * (i % 80 > 39)) for i in range(103)]
PREDICTED = dict(restart=50, stride=10)
PAUSES = [0, *(10 + a % 3 + (a >> 8) % 7 // 6 * (a >> 16) % (1 << 20) for a in mixed(150))]
TIMES = [sum(PAUSES[:i + 1]) for i in range(150)]


def halves(values):
    """Returns f32 values as bf16, truncated."""
    return [n >> 16 for n in patterns('f', *values)]


def gap_vectors():
    yield 'bins-options-of-text', 'the example of gaps in 5.15', of_many(OF_TEXT)
    yield 'bins-gaps', (
        'gaps in blocks of bins: 1 to 8 element bytes; first stretches that are empty and not, last ones that are marked and not; blocks '
        'with all elements marked, with none, with one; elements that equal the filler and are not marked'), of_many(
        gapped(SPEECH, 0, (3, 2), plain, 'bf16', halves(PITCHES)), gapped(EDGES, 0x7FC0, (2, 1), plain, 'bf16', halves(PITCHES * 3)[:275]),
        gapped([[0, 9]], 0x8000, (0, 3), plain, 'bf16', b''), gapped([[0, 70], [0, 3]], 0x8000, (0, 3), plain, 'bf16', b'', class_count=4, classes=(3,)),
        gapped(SPEECH, 1 << 31, (4, 2), plain, 'f32', patterns('f', *PITCHES), low_bytes=2), gapped(EDGES, 7, (1, 4), plain, 'f32', low_bytes=1),
        gapped(SPEECH, (1 << 64) - 2, (3, 3), plain, 'i64'), gapped([[20]], 5, (4, 4), plain, 'i64', low_bytes=6),
        gapped(SPEECH, 3, (2, 2), plain, 'u8', [i % 5 for i in range(103)]), gapped(EDGES, 255, (5, 0), plain, 'u8'),
        gapped([[70, 70, 70]], 1, (6, 6), plain, 'bool', [i % 3 // 2 for i in range(140)]),
        gapped(SPEECH[::-1], 32, (1, 1), plain, 'utf8', b'abcdef' * 17 + b'g'))
    yield 'bins-gaps-parameters', (
        'parameters of 0, 1, 5, 6, 11, 12 and 15; stretches just below what takes 16 bits 1, and from there on'), of_many(*(
        gapped(stretches, 0, parameters, plain, 'u8', b'\1' * sum(sum(lengths[::2]) for lengths in stretches)) for stretches, parameters in (
            ([[15, 16, 16, 17, 17, 300, 1], [16, 15], [0, 70, 31, 18]], (0, 0)), ([[31, 32, 32, 33, 33, 34, 1], [32, 1]], (1, 1)),
            ([[0, 512, 2, 513, 1, 600], [512, 1]], (0, 5)), ([[5, 1024, 3, 1025]], (15, 6)), ([[3, 2, 1, 65], [0, 40]], (5, 15)),
            ([[0, 2049, 9, 1]], (12, 11)), ([[9, 9, 9, 9]], (15, 15)), ([[2, 3]], (12, 13)))))
    yield 'bins-gaps-transforms', (
        'gaps with each transform, which continues across them and restarts with each block; class codes; low bytes'), of_many(
        gapped(SPEECH, 0, (3, 2), plain, 'bf16', halves(PITCHES), transform='delta', restart=VARIES, stride=1),
        gapped(SPEECH, 0, (3, 2), plain, 'bf16', halves(PITCHES), class_count=3, classes=(2, 0)),
        gapped(SPEECH, 9, (3, 2), plain, 'u8', transform='lorenzo', class_count=2, classes=(1, 0), **PREDICTED),
        gapped(EDGES, 9, (3, 2), plain, 'u8', transform='delta', restart=7, stride=1),
        gapped(EDGES, 4, (0, 3), plain, 'i16', transform='separable', weights=(5, 3), **PREDICTED),
        gapped(SPEECH, VARIES, (3, 2), plain, 'i32', low_bytes=1, class_count=2, classes=(1,)),
        gapped(SPEECH, 1, (3, 2), plain, 'f32', patterns('f', *PITCHES), transform='delta', low_bytes=2, restart=30, stride=1),
        gapped(SPEECH, 1, (3, 2), plain, 'i64', low_bytes=3, transform='lorenzo', restart=VARIES, stride=10))
    bases = [-3, 0, 1 << 62, 5]
    some = [[2, 3, 30, 1, 5], [0, 9], [1], [0, 4, 64]]  # 37, 0, 1 and 64 unmarked elements
    yield 'bins-gaps-dictionaries', (
        'gaps with dictionaries, which take turns without the gaps; positions of patches that do not count gaps; blocks without numbers; '
        'all transforms'), of_many(
        gapped(some, 0, (2, 1), dictionaries, 'u8', [[3, 200, 9], [0], [255, 128, 1]], patches={0: 0, 36: 7, 37: 8, 101: 9}),
        gapped(some, 77, (2, 1), dictionaries, 'u8', [[3, 9, 77]]),
        gapped(some, 77, (2, 1), dictionaries, 'u8', [[*range(50)], [*range(90, 40, -1)]], transform='lorenzo', class_count=3, classes=(2, 1), **PREDICTED),
        gapped(some, 0x7FC0, (2, 1), dictionaries, 'bf16', [[0x3F80, 0xBF80, 0]], is_float=True, patches={5: 0x7FC0}),
        gapped(some, 500, (2, 1), dictionaries, 'u16', [[i * 7 % 512 for i in range(300)]], v=2, transform='delta', **PREDICTED),
        gapped(some, 0, (2, 1), dictionaries, 'f32', [patterns('f', 1.5, 2.5), patterns('f', *range(9))], v=2, is_float=True, transform='separable',
               weights=(4, 4), **PREDICTED),
        gapped(some, (1 << 64) - 1, (2, 1), dictionaries, 'f64', [patterns('d', 0.25, -7)], patches={i: i for i in range(30, 40)}))
    cents = [(i * 37 % 90 - 20) * 8 for i in range(102)]
    yield 'bins-gaps-float-multiples', 'gaps with float multiples: a filler that is NaN; details and patches, in blocks without elements too', of_many(
        gapped(some, 0x7FC0, (2, 1), float_multiples, 'bf16', cents, 2, 4, exponent=5, bases=[-30] * 4, patches={0: 0x7FC1, 37: 0x8000, 50: 0x7FC0}),
        gapped(some, 0, (2, 1), float_multiples, 'bf16', cents, 2, divisor=25, exponent=2, bases=[-160] * 4, transform='delta', **PREDICTED),
        gapped(some, 0x7E00, (2, 1), float_multiples, 'f16', cents, 1, 15, exponent=9, bases=[-1] * 4, patches={101: 1}),
        gapped(some, 0x7FC00000, (2, 1), float_multiples, 'f32', [n * 99 for n in cents], 4, divisor=3, bases=[-9] * 4, low_bytes=2),
        gapped(some, 0x7FF8 << 48, (2, 1), float_multiples, 'f64', [n << 16 for n in cents], 4, 15, bases=[-999] * 4, transform='lorenzo', low_bytes=2, **PREDICTED))
    yield 'bins-gaps-int-multiples', 'gaps with int multiples: 1 to 8 bytes of elements and of numbers', of_many(
        gapped(some, 1, (2, 1), int_multiples, 'u8', [i % 9 for i in range(102)], 1, 3, bases),
        gapped(some, 0, (2, 1), int_multiples, 'i16', [300 + i for i in range(102)], 2, 10, bases, transform='delta', restart=VARIES, stride=1),
        gapped(some, 0, (2, 1), int_multiples, 'u32', TIMES[:102], 4, 5, bases, low_bytes=2, patches={0: 1, 36: 2, 37: 3, 38: 4}),
        gapped(some, 1 << 63, (2, 1), int_multiples, 'i64', TIMES[:102], 4, 1000, bases, low_bytes=2, transform='separable', weights=(3, 8), **PREDICTED),
        gapped(some, 0, (2, 1), int_multiples, 'i64', TIMES[:102], 8, (1 << 64) - 1, bases, low_bytes=6, transform='lorenzo', **PREDICTED))


def outlier_vectors():
    rare = [a % 900 | (0 if i % 9 else a >> 20) % (1 << 48) << 16 for i, a in enumerate(mixed(150))]
    edges = [1 << 16, 5, VARIES, VARIES, 9, 1 << 31, 0, 1 << 17, 65535]
    yield 'bins-outliers', (
        'outliers in blocks of bins: 4 and 8 element bytes, 0 to 5 low bytes, uppers of 1 to 48 bits, and of 0; blocks without outliers, of '
        'nothing else, of one element; parameters of 0, 5 and 15, stretches that take 16 bits'), of_many(
        plain('u32', (9,), edges, outliers=(16, 1, 0)), plain('u32', (9,), edges, outliers=(8, 2, 1), low_bytes=1),
        plain('u32', (64, 65, 66, 150), [n % (1 << 17) for n in rare], outliers=(1, 3, 0)),
        plain('u32', (70, 150), [n % (1 << 23) for n in rare], outliers=(7, 15, 15)), plain('u32', (6,), [1, 2, 3, 4, 5, 6], outliers=(16, 0, 0)),
        plain('u32', (6,), [1, 2, 70000, 4, 5, 6], outliers=(1, 2, 0, 0, 3, 5)),
        plain('u32', (3, 4, 5), [1 << 16, 1 << 20, VARIES, 7, 1 << 19], outliers=(16, 0, 5)),
        plain('f32', (70,), floats(4, 70), outliers=(16, 0, 0)), plain('f32', (9, 70), floats(4, 70), outliers=(8, 1, 2), low_bytes=1),
        plain('u32', (40,), [1 << 20] * 20 + [3] * 20, outliers=(5, 0, 0)), plain('u64', (150,), rare, outliers=(48, 3, 0)),
        plain('u64', (64, 130, 150), rare, outliers=(40, 3, 0), low_bytes=1, class_count=2, classes=(0, 1)),
        plain('u64', (150,), rare, outliers=(8, 5, 5), low_bytes=5), plain('u64', (2,), [(1 << 64) - 1, 1 << 63], outliers=(48, 1, 0)),
        plain('u64', (9, 150), [n % (1 << 32) for n in rare], outliers=(16, 3, 1), class_count=4, classes=(3, 0)))
    coarse = [n * 3 - 40 for n in TIMES]
    yield 'bins-outliers-transforms', 'outliers of times, which are predicted: residuals of pauses', of_many(
        plain('u32', (80, 150), TIMES, outliers=(16, 5, 0), transform='delta', restart=VARIES, stride=1),
        plain('u32', (66, 150), TIMES, outliers=(8, 4, 0), low_bytes=1, transform='lorenzo', **PREDICTED),
        plain('i64', (64, 150), [n << 20 for n in TIMES], outliers=(41, 3, 1), transform='delta', restart=VARIES, stride=1),
        plain('i64', (150,), [n << 20 for n in TIMES], outliers=(32, 3, 1), low_bytes=2, transform='separable', weights=(8, 1), **PREDICTED),
        plain('f64', (90,), floats(8, 90), outliers=(48, 0, 2), transform='delta', restart=40, stride=1))
    yield 'bins-outliers-mapped', 'outliers of float multiples and int multiples whose numbers have 4 or 8 bytes, with details and patches', of_many(
        float_multiples('f32', (70, 150), coarse, 4, divisor=25, exponent=2, outliers=(16, 2, 0), patches={0: 1 << 31, 149: 0x7FC00000}),
        float_multiples('f32', (150,), TIMES, 4, exponent=4, outliers=(8, 3, 0), low_bytes=1, transform='delta', restart=VARIES, stride=1),
        float_multiples('f64', (70, 150), coarse, 4, 15, exponent=9, outliers=(1, 2, 1, 40), low_bytes=1, patches={71: 7}),
        float_multiples('f64', (150,), coarse, 8, divisor=3, outliers=(48, 2, 1), transform='lorenzo', **PREDICTED),
        int_multiples('u32', (70, 150), TIMES, 4, 7, outliers=(12, 2, 5), transform='delta', restart=VARIES, stride=1, patches={69: 8, 70: 9}),
        int_multiples('i64', (150,), TIMES, 4, 86400, [-99], outliers=(11, 2, 1)),
        int_multiples('i64', (70, 150), [n << 30 for n in TIMES], 8, 3, [5, -5], outliers=(40, 2, 5), low_bytes=1))


def mixed_vectors():
    stretches = [[3, 9, 60, 2, 8], [0, 12], [2, 1, 77, 5]]  # 71, 0 and 79 unmarked elements
    steps, slow = dict(transform='delta', restart=VARIES, stride=1), [n // 9 for n in TIMES]
    yield 'bins-options', (
        'gaps and outliers, without a mapping and with int multiples and float multiples; blocks without elements, whose outliers have marks'), of_many(
        gapped(stretches, 0, (3, 2), plain, 'u32', TIMES, outliers=(16, 4, 0), **steps),
        gapped(stretches, 9, (3, 2), plain, 'u32', TIMES, outliers=(8, 7, 8), low_bytes=1),
        gapped(stretches, 0, (3, 2), plain, 'i64', [n << 9 for n in TIMES], outliers=(32, 4, 0), class_count=2, classes=(0, 1), **steps),
        gapped([[0, 5]], 8, (3, 2), plain, 'i64', b'', outliers=(1, 15, 0)), gapped([[0, 5]], 8, (3, 2), plain, 'u32', b'', outliers=(1, 0, 0)),
        gapped(stretches, 0, (3, 2), int_multiples, 'u32', slow, 4, 90, [7, 8, 9], outliers=(16, 4, 0), patches={2: 5, 149: 6}, **steps),
        gapped(stretches, 0, (3, 2), int_multiples, 'i64', TIMES, 8, 1000, [7, 8, 9], outliers=(40, 4, 0), low_bytes=1, transform='lorenzo', **PREDICTED),
        gapped(stretches, 0x7FC00000, (3, 2), float_multiples, 'f32', slow, 4, divisor=100, bases=[-3, 0, 1], outliers=(15, 4, 0, 2), patches={5: 1}, **steps),
        gapped(stretches, 0, (3, 2), float_multiples, 'f64', TIMES, 4, 4, exponent=6, bases=[-3, 0, 1], outliers=(16, 4, 1), patches={71: 2}, **steps))
    f = Tsl([col('x', 'u32', [None, 2], nullable=True), col('y', 'f32', [4])])
    rows = [b''.join(le(n, 4) for n in pair) for pair in ((1, 7), (7, 7), (70000, 2), (3, 7))]
    f.chunk(0, [rows[0], None, rows[1] + rows[2], b'', rows[3]], with_options(
        (1, 4), gaps=(7, 1, 1, [[1, 1], [0, 2, 3, 1]]), outliers=(3, 1, 0)))
    f.chunk(0, [rows[1] * 2, None], with_options((0,), gaps=(7, 1, 1, [[0, 4]])), validity=zstd())
    f.chunk(1, [el('f', 0, 1.5, 0, 0)] + [bytes(16)] * 6, with_options((1,), gaps=(0, 0, 2, [[0, 1, 1, 26]]), low_bytes=2))
    yield 'bins-options-parts', 'options after validity and shape; zero bytes before the checksum; blocks that are whole samples and not', f.commit()


def valid_vectors():
    for vectors in (gap_vectors, outlier_vectors, mixed_vectors):
        yield from vectors()


THREE = (14, 14, 15)
OF_OUTLIERS = (5, 0x10007, 9, 1, 2, 0x30000)
FIELDS = {'gaps': ('filler', 'rice_unmarked of gaps', 'rice_marked of gaps'), 'outliers': ('upper_bits', 'rice_unmarked of outliers', 'rice_marked of outliers')}


def few_of_gaps(stretches=((0, 2, 5, 3, 2),), parameters=(2, 0), dtype='u8', **more):
    x = [97 + i for i in range(sum(sum(lengths[::2]) for lengths in stretches))]
    return gapped(stretches, 0, parameters, plain, dtype, x, K=BINS[1] if dtype == 'u8' else THREE, **more)


def few_of_outliers(x=OF_OUTLIERS, upper_bits=7, parameters=(1, 0), also=(), dtype='u32', ends=(6,), **more):
    return plain(dtype, ends, x, outliers=(upper_bits, *parameters, *also), K=BINS[1] if dtype == 'u8' else THREE, **more)


def few_of_both(stretches=((1, 2, 4, 3, 1),), **more):
    return gapped(stretches, 7, (2, 0), lambda dtype, ends, **own: few_of_outliers(OF_OUTLIERS[:ends[-1]], ends=ends, **own), 'u32', **more)


def gapped_dictionary(stretches=((2, 3, 4, 1),), values=([5, 7, 5],), numbers=(0, 1, 2, 1, 0, 2), **more):
    return gapped(stretches, 0, (2, 0), dictionaries, 'u8', values, list(numbers), K=BINS[1], **more)


FEW = {'gaps': few_of_gaps, 'outliers': few_of_outliers}


def table_cases():
    """Vectors of the end of the tables, and of `mapping`."""
    def of(option, name, what, here, tables=None, also=(), **more):
        return fault('R-5.18', '%s-%s' % (option, name), what, here, FEW[option](tables=tables, **more), also)

    for option, low, what in (('gaps', 4, '4'), ('gaps', 8, '8'), ('outliers', 7, '7'), ('gaps', 128, '0, and an unknown option')):
        bit = {'gaps': 16, 'outliers': 32}[option]
        yield of(option, 'mapping-%d' % low, '%s and a mapping of %s' % (option, what), 'mapping', {'mapping': bit + low})
    for option, fields in FIELDS.items():
        yield of(option, 'no-fields', 'tables that end before the fields of %s' % option, 'mapping', dict.fromkeys(fields, b''))
        yield of(option, 'short', 'tables that end before the last byte of %s' % option, 'mapping', {fields[-1]: b''})
        yield of(option, 'long', 'a byte after the fields of %s, inside the tables' % option, '+more', {'+more': b'\0'})
    yield of('gaps', 'short-filler', 'tables that end within the filler', 'filler', {
        'filler': bytes(3), **dict.fromkeys(FIELDS['gaps'][1:], b'')}, dtype='u32')
    yield of('gaps', 'short-parameters', 'tables that end after the filler', 'filler', dict.fromkeys(FIELDS['gaps'][1:], b''))
    yield fault('R-5.18', 'gaps-number-filler', 'a filler of the bytes of a number, not of an element', 'filler', gapped(
        ((2, 3, 4, 1),), 9, (2, 0), dictionaries, 'u16', [[500, 7, 500]], [0, 1, 2, 1, 0, 2], K=BINS[1], tables={'filler': b'\x09'}))
    yield of('outliers', 'short-parameters', 'tables that end after upper_bits', 'upper_bits', dict.fromkeys(FIELDS['outliers'][1:], b''))
    yield fault('R-5.18', 'gaps-without', 'the fields and marks of gaps, without their bit', 'mapping', few_of_gaps(tables={'mapping': 0}), ['R-5.19'])
    yield fault('R-5.18', 'options-one-missing', 'gaps and outliers, and the fields of gaps', 'mapping', few_of_both(
        tables=dict.fromkeys(FIELDS['outliers'], b'')))


def field_cases():
    def of(option, name, what, here, *tables, **more):
        return fault('R-5.22', '%s-%s' % (option, name), what, here, FEW[option](tables=dict(zip((here,), tables)), **more))

    yield of('gaps', 'unmarked-16', 'rice_unmarked 16', 'rice_unmarked of gaps', parameters=(16, 0))
    yield of('gaps', 'marked-16', 'rice_marked 16', 'rice_marked of gaps', parameters=(2, 16))
    yield of('gaps', 'blocks-marked-16', 'rice_marked 16, in blocks', 'rice_marked of gaps', parameters=(2, 16), stretches=((3, 2), (2, 3, 2)))
    yield of('gaps', 'marked-255', 'rice_marked 255', 'rice_marked of gaps', 255)
    yield of('outliers', 'unmarked-16', 'rice_unmarked 16', 'rice_unmarked of outliers', parameters=(16, 0))
    yield of('outliers', 'unmarked-64', 'rice_unmarked 64', 'rice_unmarked of outliers', 64)
    yield of('outliers', 'marked-16', 'rice_marked 16', 'rice_marked of outliers', parameters=(1, 16))
    few = range(6)
    yield of('outliers', 'upper-0', 'upper_bits 0, of outliers whose uppers are 0', 'upper_bits', x=few, also=(1, 5), upper_bits=0)
    yield of('outliers', 'upper-0-none', 'upper_bits 0, and no outlier', 'upper_bits', x=few, upper_bits=0)
    for upper_bits, dtype, low_bytes, what in (
            (17, 'u32', 0, 'four bytes'), (9, 'u32', 1, 'four bytes, one of them low'), (1, 'u32', 2, 'four bytes, two of them low'),
            (49, 'u64', 0, 'eight bytes'), (1, 'u64', 6, 'eight bytes, six of them low'), (255, 'u64', 0, 'eight bytes'),
            (1, 'u16', 0, 'two bytes'), (1, 'u8', 0, 'one byte')):
        name, elements_of = 'upper-%d-%s-%d' % (upper_bits, dtype, low_bytes), 'upper_bits %d, of elements of %s' % (upper_bits, what)
        yield of('outliers', name, elements_of, 'upper_bits', x=few, also=(1, 5), upper_bits=upper_bits, dtype=dtype, low_bytes=low_bytes)
    yield fault('R-5.22', 'outliers-number-2', 'outliers of int multiples of two bytes, of elements of four', 'upper_bits', few_of_int_multiple(
        numbers=few, v=2, outliers=(1, 1, 0, 2), encode=with_options))
    yield fault('R-5.22', 'outliers-number-1', 'outliers of a dictionary, of elements of eight bytes', 'upper_bits', few_of_dictionary(
        'u64', outliers=(1, 1, 0, 2), encode=with_options))
    yield fault('R-5.22', 'outliers-number-4', 'upper_bits 17, of float multiples of four bytes of elements of eight', 'upper_bits', few_of_float_multiple(
        'f64', few, v=4, outliers=(17, 1, 0, 2), encode=with_options))


def block_cases():
    def marked(name, what, text=None, rule='R-5.23', rewrite=None, *, option, here, of, **more):
        """Returns a fault of marks: `text` has their bits; by default they are correct, or `rewrite` replaces sections."""
        section = option + ' marks'
        change = rewrite or text and (lambda found: {**found, section: sequence(text)})
        there = 'block %d: ' % (len(more.get('stretches', '1')) - 1)
        return fault(rule, '%ss-%s' % (option, name), what, there + (here or section), of(rewrite=change, **more))

    gaps = partial(marked, option='gap', here=None, of=few_of_gaps)
    outliers = partial(marked, option='outlier', here=None, of=few_of_outliers)

    def cut_at(section, size):
        return lambda found: cut(found, section, size)

    def topped(section):
        return lambda found: {**found, section: found[section][:-1] + bytes([found[section][-1] | 128])}

    def only(section, data):
        return lambda found: {section: data}

    yield gaps('cut', 'a block that ends within its gap marks', rewrite=cut_at('gap marks', 1))
    yield gaps('cut-quotient', 'a block that ends within a quotient', rewrite=only('gap marks', b'\xFF'))
    yield gaps('cut-parameter', 'a block that ends within the bits after a quotient', rewrite=only('gap marks', b'\0'), parameters=(15, 0))
    yield gaps('cut-16', 'a block that ends within the 16 bits of a value', rewrite=only('gap marks', b'\xFF\xFF\x40'))
    yield gaps('cut-all', 'a block that ends before its last stretch; all elements are marked', rewrite=only('gap marks', b'\0'), stretches=((0, 9),),
               parameters=(7, 0))
    yield gaps('beyond', 'a last stretch of one element more than there are', '0 00 10 10 00 110 0 01')
    yield gaps('beyond-first', 'a first stretch of one element more than there are', '110 01', stretches=((5, 2, 2),))
    yield gaps('beyond-gap', 'a marked stretch of one element more than there are', '0 00 1111 1111 1111 0')
    yield gaps('beyond-second', 'marks of both blocks in the second', '0 11 10 0 10 110 0 00', stretches=((3, 2), (2, 3, 1)))
    yield gaps('beyond-wrap', 'a stretch of 65,536 elements, or 0 modulo 2^16', '0 00' + '1' * 32 + '110 11')
    yield gaps('beyond-sum', 'a stretch of 65,535 elements after two, which end at 1 modulo 2^16', '0 01' + '1' * 16 + '0' + '1' * 15 + '110 01')
    yield gaps('16-bits', 'a value of 0 in 16 bits', '1' * 16 + '0' * 16 + '10 10 00 110 0 10')
    yield gaps('16-bits-15', 'a value of 15 in 16 bits, with a parameter of 0', '0 01 ' + '1' * 16 + ' 1111 0000 0000 0000 0 11', stretches=((2, 16, 4),))
    yield gaps('16-bits-last', 'the last value, of 1, in 16 bits', '0 00 10 10 00 110 ' + '1' * 16 + ' 1000 0000 0000 0000')
    yield gaps('16-bits-12', 'a value in 16 bits with a parameter of 12, which none needs', '1' * 16 + '0' * 16 + '10 0 0010 0000 0000 110 0 1000 0000 0000',
               parameters=(12, 0))
    yield gaps('filling', 'a padding bit of the gap marks', rewrite=topped('gap marks'))
    yield gaps('filling-second', 'a padding bit of the gap marks of the second block', rewrite=topped('gap marks'), stretches=((3, 2), (2, 3, 2)))
    yield gaps('filling-all', 'a padding bit of the gap marks of a block; all of its elements are marked', rewrite=topped('gap marks'), stretches=((0, 9),))
    yield gaps('no-states', 'a block that ends after its gap marks', rule='R-5.19', rewrite=cut_at('gap marks', 2))
    yield gaps('all-long', 'a byte after the gap marks, which mark all elements', here='stream', rule='R-5.19', stretches=((0, 9),),
               rewrite=lambda found: {**found, 'stream': b'\0'})
    yield gaps('class', 'a code of 3 of three classes, of the group that is left', here='classes', rule='R-5.19', stretches=((60, 9, 4),), class_count=3,
               classes=(3,))
    yield gaps('no-patches', 'a block that ends between its gap marks and the sections of a dictionary', rule='R-5.21', of=gapped_dictionary,
               rewrite=cut_at('gap marks', 9))
    yield gaps('position', 'a position that equals the number of elements without those in gaps', here='positions', rule='R-5.21', of=gapped_dictionary,
               rewrite=lambda found: {**found, 'positions': le(6, 2)}, patches={5: 9})
    yield gaps('number', 'a number of 2 in the second of two dictionaries, which has one value; in the first, if gaps counted', here='lower', rule='R-5.21',
               of=gapped_dictionary, values=([1, 2, 3], [4]), numbers=(0, 2, 0), stretches=((1, 1, 2),))
    yield gaps('all-patches', 'a patch, and no element that is not marked', here='positions', rule='R-5.21', of=gapped_dictionary, numbers=(),
               stretches=((0, 6),), rewrite=lambda found: {**found, 'patch_count': le(1, 2), 'positions': le(0, 2), 'patches': b'\5'})

    yield outliers('cut', 'a block that ends within its outlier marks', rewrite=cut_at('outlier marks', 3), parameters=(9, 9))
    yield outliers('none', 'a block that ends before its outlier marks', rewrite=cut_at('outlier marks', 0), of=few_of_both, here='gap marks')
    yield outliers('none-all', 'gaps that mark all elements, and no outlier marks', rewrite=cut_at('outlier marks', 0), of=few_of_both, here='gap marks',
                   stretches=((0, 4),))
    yield outliers('all-beyond', 'gaps that mark all elements, and an outlier mark', '0 1', of=few_of_both, stretches=((0, 4),))
    yield outliers('all-filling', 'gaps that mark all elements, and a padding bit of the outlier marks', of=few_of_both, stretches=((0, 4),),
                   rewrite=topped('outlier marks'))
    yield outliers('beyond', 'a last stretch of one element more than there are', '0 1 0 10 0 10')
    yield outliers('beyond-gaps', 'a stretch that counts the elements in gaps', '10 1 0 110 1 0', of=few_of_both)
    yield outliers('16-bits', 'a value of 1 in 16 bits', '1' * 16 + '1000 0000 0000 0000 0 10 0 0')
    yield outliers('filling', 'a padding bit of the outlier marks', rewrite=topped('outlier marks'))
    yield outliers('cut-uppers', 'a block that ends within its uppers', here='uppers', rewrite=cut_at('uppers', 1))
    yield outliers('no-uppers', 'a block that ends after its outlier marks', rewrite=cut_at('uppers', 0))
    yield outliers('filling-uppers', 'a padding bit of the uppers', here='uppers', rewrite=topped('uppers'))
    yield outliers('filling-upper', 'a padding bit of an upper of one bit, which would be its second', here='uppers', upper_bits=1,
                   x=(1, 2, 65536 + 3, 4, 5, 6), rewrite=lambda found: {**found, 'uppers': b'\3'})
    yield outliers('no-states', 'a block that ends after its uppers', here='uppers', rule='R-5.19', rewrite=cut_at('uppers', 2))


def order_cases():
    """Vectors with two faults each: the rule is the first one in the order of 10.5."""
    def gaps(rule, name, what, here, tables=None, of=few_of_gaps, **more):
        return fault(rule, 'order-' + name, what, here, of(tables=tables, **more))

    yield gaps('R-5.18', 'first-gaps', 'frequencies from bin 255 on, and rice_marked 16', ['first 0', 'rice_marked of gaps'], {
        'rice_marked of gaps': 16, 'first 0': 255})
    yield gaps('R-5.20', 'dictionary-gaps', 'the reserved byte of a dictionary, and rice_marked 16', ['reserved 4', 'rice_marked of gaps'], {
        'reserved 4': 1, 'rice_marked of gaps': 16}, gapped_dictionary)
    yield gaps('R-5.22', 'gaps-low-bytes', 'rice_unmarked 16, and one low byte of elements of one byte', ['rice_unmarked of gaps', 'low_bytes'], {
        'rice_unmarked of gaps': 16}, low_bytes=1)
    yield gaps('R-5.22', 'upper-low-bytes', 'upper_bits 0, and three low bytes of elements of four', ['upper_bits', 'low_bytes'], {
        'upper_bits': 0}, few_of_outliers, low_bytes=3, x=range(6))
    yield gaps('R-5.18', 'low-bytes-upper', 'three low bytes of elements of four, and so upper_bits 1 is too many', [
        'low_bytes', 'upper_bits'], None, few_of_outliers, low_bytes=3, x=range(6), upper_bits=1)

    yield gaps('R-5.22', 'gaps-short', 'rice_marked 16, and tables that end before the fields of outliers', 'rice_marked of gaps', {
        'rice_marked of gaps': 16, **dict.fromkeys(FIELDS['outliers'], b'')}, few_of_both)
    yield gaps('R-5.18', 'long-upper', 'a byte after the fields, and upper_bits 17 of elements of four bytes', ['+more', 'upper_bits'], {
        '+more': b'\0'}, few_of_outliers, x=range(6), also=(1,), upper_bits=17)

    def block(rule, name, what, here, rewrite, chunk, **more):
        return fault(rule, 'order-' + name, what, ['block 0: ' + section for section in here], chunk(rewrite=rewrite, **more))

    def topped(*names, **sections):
        return lambda found: {**{name: section[:-1] + bytes([section[-1] | 128]) if name in names else section for name, section in found.items()}, **sections}

    yield block('R-5.23', 'gaps-positions', 'a padding bit of gap marks, and a position beyond', ['gap marks', 'positions'],
                topped('gap marks', positions=le(9, 2)), gapped_dictionary, patches={0: 9})
    detailed = partial(few_of_float_multiple, 'f64', range(6), v=4, D=2, outliers=(7, 1, 0, 2), encode=with_options)
    yield block('R-5.21', 'positions-outliers', 'a position beyond, and a padding bit of outlier marks', ['positions', 'outlier marks'],
                topped('outlier marks', positions=le(9, 2)), detailed, patches={0: 9})
    yield block('R-5.23', 'uppers-details', 'a padding bit of uppers, and one of details', ['uppers', 'details'],
                topped('uppers', 'details'), detailed)
    yield block('R-5.23', 'uppers-states', 'a padding bit of uppers, and a state of 0', ['uppers', 'upper'],
                topped('uppers', upper=bytes(6)), few_of_outliers)


def invalid_vectors():
    for cases in (table_cases, field_cases, block_cases, order_cases):
        yield from cases()
