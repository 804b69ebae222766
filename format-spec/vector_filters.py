"""An encoder of *filters* in blocks of bins (BINS.md, 5.15) and the vectors of filters, for make_vectors.py."""

from vector_bins import class_bits, cut, ends_of, packed
from vector_encoder import *
from vector_mappings import BINS, fault, few_of_int_multiple, few_of_dictionary, few_of_float_multiple
from vector_options import THREE, gapped, halves, int_multiples, dictionaries, patterns, plain, float_multiples, with_options

LINE = (8192, -4096)  # the line through the last two numbers
CURVE = (6000, -3000)


# ---- the encoder -----------------------------------------------------------------------------------------------------

def residuals(k, v, coefficients, codes, segments, zero):
    """Returns y for the numbers k of a block. `codes` has its filter codes; codes without a filter stand for filter 0."""
    def signed(m):
        m %= 65536
        return m - 65536 if m >= 32768 else m

    mask, y = (1 << 8 * v) - 1, []
    for i, number in enumerate(k):
        code = codes[i // 128]
        F, total = coefficients[code if code < len(coefficients) else 0], 2048
        for q in range(min(len(F), i % (128 * segments or 1 << 32))):
            total += F[q] * signed(k[i - 1 - q] - zero)
        r = (number - zero - total // 4096) & mask
        y.append(mask ^ 2 * r & mask if r >> 8 * v - 1 else 2 * r)
    return y


def filters(*coefficients, codes=(0,), segments=1, zero=32768):
    """Returns the option for `with_options`. `coefficients` has a sequence for each filter. `codes` has the codes of
    segments, repeated as needed; each block begins one code later."""
    fields = {'taps': le(len(coefficients[0]), 1), 'filter_count': le(len(coefficients), 1), 'restart_segments': le(segments, 2),
              'zero': le(zero, 2)}
    fields.update({'coefficients %d' % f: el('h', *F) for f, F in enumerate(coefficients)})

    def coded(k, v, b):
        of_segments = [codes[(t + b) % len(codes)] for t in range((len(k) + 127) // 128)]
        return residuals(k, v, coefficients, of_segments, segments, zero), packed(of_segments, class_bits(len(coefficients)))
    return fields, coded


# ---- the example of the text -----------------------------------------------------------------------------------------

OF_TEXT = [0x8000, 0x8006, 0x7FF7, 0x8004]
assert residuals(OF_TEXT, 2, [CURVE], [0], 1, 32768) == [0, 0x000C, 0x0023, 0x002C]
assert [(n - 32768) for n in OF_TEXT] == [0, 6, -9, 4]
assert b''.join(filters(CURVE)[0].values()) == bytes.fromhex('02 01 01 00 00 80 70 17 48 F4')


# ---- the vectors -----------------------------------------------------------------------------------------------------

ENDS = ends_of((1, 127, 128, 129, 300))
STRETCHES = [[100, 30, 25, 1, 4, 90, 131], [0, 40], [0, 3, 127], [128, 1],
             [129, 2, 1, 1]]  # 260, 0, 127, 128 and 130 unmarked elements
OF_STRETCHES = sum(sum(lengths[::2]) for lengths in STRETCHES)


def some(taps, count, seed=0):
    """Returns filters: the first predicts no change or a line; the others are similar, with different last coefficients."""
    found = []
    for f in range(count):
        F = [4096] if taps == 1 else [*LINE, *[0] * (taps - 2)]
        found.append([c + (f > 0) * (a % 801 - 400) for c, a in zip(F, mixed((f + seed + 1) * 16)[-16:])])
        found[-1][-1] -= 7 * f
    return found


def sound(n, loudness, zero=0):
    """Returns n numbers of 16 bits: a tone with pseudo-random noise, around `zero`."""
    a, b, found = loudness << 8, 0, []
    for noise in mixed(n):
        b += a * 3 >> 5
        a -= b * 3 >> 5
        found.append((zero + (a >> 8) + noise % (loudness // 8 + 1)) % 65536)
    return found


def extremes(n, low, high, rare=0):
    """Returns n numbers that are `low` or `high`, first in stretches, then at random. Every `rare`-th number, if set, is arbitrary."""
    turns = [i // 20 % 2 if i < 100 else a >> 40 & 1 for i, a in enumerate(mixed(n))]
    return [a % 65536 if rare and i % rare == 0 else (low, high)[turn] for i, (a, turn) in enumerate(zip(mixed(n), turns))]


def plain_vectors():
    yield 'bins-filters-of-text', 'the example of filters in 5.15', of_many(
        plain('u16', (4,), OF_TEXT, filters=filters(CURVE)), plain(
            'u16', (4,), OF_TEXT, filters=filters(CURVE), K=THREE))
    yield 'bins-filters', (
        'filters in blocks of bins: 1 to 16 taps, 1 to 16 filters, codes of 0 to 4 bits, prediction that restarts after 1 '
        'and 2 segments and never, zeros at both ends of the numbers and between; '
        'blocks of 1, 127, 128, 129 and 300 elements'), of_many(*(
        plain(dtype, ENDS, sound(ENDS[-1], loudness, zero), filters=filters(
            *some(taps, count), codes=[(5 * t + 3) % count for t in range(count)], segments=segments, zero=zero))
        for dtype, loudness, taps, count, segments, zero in (
            ('u16', 900, 1, 1, 1, 32768), ('i16', 9000, 2, 2, 2, 0), ('bf16', 60, 7, 3, 65535, 0x3F80), ('i16', 300, 8, 4, 1, 0),
            ('u16', 30000, 9, 5, 2, 32767), ('f16', 5, 15, 16, 65535, 65535), ('i16', 2000, 16, 16, 1, 0x8001))))
    yield 'bins-filters-long', (
        'blocks of 5 and 17 segments: prediction that continues across segments with other filters, and restarts after 3 of '
        'them, 16, 257, 512 or 513; taps 1 and 16 filters, taps 16 and 1, 16 and 3'), of_many(
        plain('i16', (640, 1280), sound(1280, 500), filters=filters(*some(1, 16), codes=range(15, -1, -1), segments=3, zero=0)),
        plain('u16', (600,), sound(600, 8000, 32768), filters=filters(*some(16, 1), segments=65535)),
        plain('u16', (2049,), sound(2049, 300, 500), filters=filters(*some(16, 3, 5), codes=(2, 0, 1, 1), segments=16, zero=500)),
        *(plain('i16', (300,), sound(300, 70), filters=filters(LINE, segments=segments, zero=0)) for segments in (257, 512, 513)),
        plain('i16', (130, 131, 388), sound(388, 70), filters=filters(*some(3, 15), codes=(14, 1, 9), segments=2, zero=3)))
    low, high, one_sided = -32768, 32767, dict(low=32768, high=0)
    yield 'bins-filters-wrap', (
        'coefficients of -32768 and 32767, and numbers at both ends: sums of up to 2^34, of both signs, that are 2^31 or -2^31 and '
        'just beside; numbers that are less than zero only modulo 2^16'), of_many(
        *(plain('u16', (150, 300), extremes(300, *ends), filters=filters([F] * 16, segments=2, zero=0))
          for F in (low, high) for ends in ((32768, 32768), (32767, 32767), (32768, 32767))),
        *(plain('i16', (270,), extremes(270, 32768, 32767, 7), filters=filters([low, high] * half, [high, low] * half, codes=(1, 0),
                                                                                      segments=3, zero=zero))
          for half, zero in ((1, 0), (4, 65535), (8, 32768))),
        *(plain('i16', (130,), extremes(130, **one_sided), filters=filters(F, segments=2, zero=0)) for F in (
            [low], [low] * 2, [low, low, 1], [low, low, -1], [low, low, high], [high, high, 2], [high, high, 3], [high, high, 1])),
        plain('u16', (260,), [a % 65536 for a in mixed(260)], filters=filters([low] * 16, [high] * 16, codes=(0, 1, 1),
                                                                        segments=65535, zero=12345)),
        plain('u16', (200,), extremes(200, 0, 65535), filters=filters([low] * 15, segments=2)),
        plain('u16', (3,), [0, 65535, 1], filters=filters([high, 0])))


def mapped_vectors():
    wide, steep = some(16, 4), [[12288, -12288, 4096], [8192, -4096, 0]]
    loud = [n - 32768 for n in sound(300, 9000, 32768)]
    yield 'bins-filters-float-multiples', (
        'filters and float multiples of two bytes: sound of 16 bits as floats of each type, details, divisors; '
        'patches, whose numbers are predicted from'), of_many(
        float_multiples('f32', (130, 300), loud, 2, exponent=15, bases=[-32768] * 2, filters=filters(*wide, codes=(0, 3, 1), zero=32768)),
        float_multiples('f32', (300,), loud, 2, divisor=32767, bases=[-32768], filters=filters(LINE, segments=65535),
                  patches={0: 1 << 31, 128: 0x7FC00000, 299: 1}),
        float_multiples('f32', (129,), [n * 999 for n in loud[:129]], 2, 15, exponent=20, bases=[-900],
                  filters=filters(*steep, codes=(1, 0), zero=900)),
        float_multiples('bf16', (128, 300), [n * 5 for n in loud], 2, 4, exponent=15, bases=[-16384, -20000],
                  filters=filters(*wide, codes=(2, 1), zero=16384),
                  patches={i: 0x7FC0 for i in (0, 1, 127, 128, 130, 299)}),
        float_multiples('bf16', (129,), loud[:129], 2, divisor=25, exponent=-3, bases=[-16384], 
                  filters=filters(*some(7, 5), codes=(4, 2), zero=7)),
        float_multiples('f16', (260,), [n << 2 for n in loud[:260]], 2, 2, exponent=15, 
                  filters=filters(*some(8, 2), codes=(0, 1), segments=2, zero=0)),
        float_multiples('f16', (3,), [1, 2, 3], 2, filters=filters([4096]), patches={0: 1, 1: 2, 2: 3}),
        float_multiples('f64', (128, 257), [n << 15 for n in loud[:257]], 2, 15, exponent=20, bases=[-32768, -9999],
                  filters=filters(*wide, codes=(3,))),
        float_multiples('f64', (257,), [n + (1 << 62) for n in loud[:257]], 2, divisor=1000, bases=[(1 << 62) - 32768],
                  filters=filters(LINE, zero=1),
                  patches={i: i for i in range(120, 140)}))
    tones, samples = [any_values(300, w) for w in (2, 4, 8)], sound(300, 20000, 32768)
    yield 'bins-filters-int-multiples', (
        'filters and int multiples of two bytes: 2 to 8 element bytes, factors and bases, sums that wrap, patches'), of_many(
        int_multiples('i16', (140, 300), samples, 2, 3, [-5, 9], filters=filters(*wide, codes=(1, 2, 3))),
        int_multiples('i32', (300,), samples, 2, 256, [-32768 * 256], filters=filters(*some(9, 3), codes=(2, 1, 0), segments=2),
                  patches={0: 7, 127: 8, 128: 9, 299: VARIES}),
        int_multiples('u32', (129,), [n % 9 for n in samples[:129]], 2, filters=filters(LINE, zero=4)),
        int_multiples('i64', (128, 256), samples[:256], 2, (1 << 63) + 1, [5, -5], 
                  filters=filters(*some(15, 2), codes=(0, 1), segments=65535, zero=0)),
        int_multiples('f64', (200,), samples[:200], 2, 1 << 48, filters=filters(*some(2, 16), codes=(15, 8)),
                  patches={i: i for i in range(200)}))
    slow = [n % 300 for n in sound(300, 140, 150)]
    yield 'bins-filters-dictionaries', (
        'filters and dictionaries with numbers of two bytes: 2 to 8 element bytes, one dictionary and several; patches'), of_many(
        dictionaries('u16', (129, 300), tones[:1], slow, 2, filters=filters(*some(8, 3), codes=(0, 2, 1), zero=150)),
        dictionaries('bf16', (260,), [tones[0][:290], tones[0], tones[0][5:]], [min(n, 289) for n in slow[:260]], 2, is_float=True,
                 filters=filters(LINE, zero=150, segments=65535), patches={0: 0x7FC0, 128: 1, 259: 2}),
        dictionaries('f32', (127, 300), [patterns('f', *(n / 8 for n in range(300)))], slow, 2, is_float=True,
                 filters=filters(*wide, codes=(3, 1), zero=0)),
        dictionaries('f64', (130,), [tones[2]], slow[:130], 2, filters=filters(*some(1, 5), codes=(4, 3), zero=299)),
        dictionaries('u32', (9,), [[7]], [0] * 9, 2, filters=filters([-4096], zero=1), patches={8: 6}))


def any_values(n, w):
    return [a % (1 << 8 * w) for a in mixed(n)]


def mixed_vectors():
    quiet, three = sound(OF_STRETCHES, 400), dict(codes=(2, 0, 1))
    yield 'bins-filters-options', (
        'filters with gaps, with classes, and with both; blocks whose elements are all in gaps, segments and '
        'predictions that do not count gaps; each mapping'), of_many(
        gapped(STRETCHES, 0, (4, 2), plain, 'i16', quiet, filters=filters(*some(8, 3), zero=0, **three)),
        gapped(STRETCHES, 0x7FC0, (4, 2), plain, 'bf16', halves(range(OF_STRETCHES)), filters=filters(LINE, segments=2, zero=0x4480)),
        gapped([[0, 300]], 9, (4, 2), plain, 'i16', b'', filters=filters(*some(2, 16))), 
        gapped([[0, 3], [0, 1]], 9, (0, 2), plain, 'i16', b'', filters=filters(LINE)),
        plain('i16', (129, 429), sound(429, 3000), class_count=3, classes=(2, 0, 1), filters=filters(
            *some(9, 2), codes=(1, 0), zero=0)),
        plain('i16', (129, 429), sound(429, 3000), class_count=4, classes=(3, 1), filters=filters(
            *some(9, 5), codes=(4, 0, 2), zero=0)),
        gapped(STRETCHES, 5, (3, 3), plain, 'u16', sound(OF_STRETCHES, 99, 5), class_count=2, classes=(0, 1, 1),
               filters=filters(*some(7, 4), codes=(3, 1, 2), segments=2, zero=5)),
        gapped(STRETCHES, 0x7FC00000, (3, 3), float_multiples, 'f32', [n - 32768 for n in sound(OF_STRETCHES, 999, 32768)], 2, exponent=15,
               bases=[-32768] * 5, class_count=4, classes=(3, 2, 0), filters=filters(*some(16, 3), **three),
               patches={0: 1 << 31, 259: 1, 260: 2, OF_STRETCHES - 1: 3}),
        gapped(STRETCHES, 0, (3, 3), float_multiples, 'f32', [n << 4 for n in sound(OF_STRETCHES, 70, 4096)], 2, 4, exponent=9,
               bases=[3900] * 5, filters=filters(*some(2, 3), zero=0, **three), patches={261: 2}),
        gapped(STRETCHES, 1 << 40, (3, 3), int_multiples, 'i64', sound(OF_STRETCHES, 999, 32768), 2, 1000, [5, 6, 7, 8, 9], class_count=2,
               classes=(1, 0), filters=filters(*some(1, 3), **three)),
        gapped(STRETCHES, 0, (3, 3), dictionaries, 'u16', [list(range(9, 409)), list(range(900, 100, -2))],
               [n % 400 for n in sound(OF_STRETCHES, 150, 200)], 2, filters=filters(LINE, zero=200),
               patches={0: 0, 388: 1}))
    f, samples = Tsl([col('x', 'i16', [None], nullable=True), col('y', 'f32', [60])]), sound(300, 50)
    parts = [el('H', *samples[:127]), None, el('H', *samples[127:131]), b'', el('H', *samples[131:])]
    f.chunk(0, parts, with_options((131, 300), filters=filters(*some(3, 2), codes=(1, 0), zero=0)))
    _, data, enc = float_multiples('f32', (100, 300), [n - 32768 for n in sound(300, 50, 32768)], 2, exponent=15, bases=[-32768] * 2,
                             filters=filters(LINE))
    f.chunk(1, [data[at:at + 240] for at in range(0, 1200, 240)], enc)
    yield 'bins-filters-parts', 'filters after validity and shape; zero bytes before the checksum; fixed samples', f.commit()


def valid_vectors():
    for vectors in (plain_vectors, mapped_vectors, mixed_vectors):
        yield from vectors()


FIELDS = ('taps', 'filter_count', 'restart_segments', 'zero', 'coefficients 0')
NOTHING = dict(coefficients=((0, 0),), zero=0)  # predicts 0, whatever the width of a number
FEW = (32000, 32010, 32021, 32030, 32042, 50000)
NUMBERS = dict(x=(1, 2, 3, 4, 5, 6), **NOTHING)


def few(coefficients=(LINE,), codes=(0,), segments=1, zero=32768, of=plain, dtype='u16', ends=(6,), x=FEW, K=None, **more):
    """Returns a chunk of six elements, for `of_many`."""
    return of(dtype, ends, list(x), filters=filters(*coefficients, codes=codes, segments=segments, zero=zero),
              K=K or BINS.get(DTYPES[dtype][1], THREE), **more)


def many(codes, filter_count, n=300, **more):
    """Returns a chunk of a few segments, for `of_many`."""
    return few(some(2, filter_count), codes, ends=(n,), x=sound(n, 90, 32768), **more)


def few_mapped(of, coefficients=(LINE,), zero=0, codes=(0,), segments=1, **more):
    with_filters = filters(*coefficients, zero=zero, codes=codes, segments=segments)
    return of(v=more.pop('v', 2), encode=with_options, filters=with_filters, **more)


def gapped_few(stretches=((2, 3, 4, 1),), x=FEW, **more):
    return few(of=lambda dtype, _, x, **own: gapped(stretches, 7, (2, 1), plain, dtype, x, **own), x=x, **more)


def table_cases():
    def of(name, what, here, tables=None, also=(), chunk=few, **more):
        return fault('R-5.18', 'filters-' + name, what, here, chunk(tables=tables, **more), also)

    for low in (4, 8, 15):
        yield of('mapping-%d' % low, 'filters and a mapping of %d' % low, 'mapping', {'mapping': 64 + low})
    yield of('without', 'the fields of filters, without their bit', 'mapping', {'mapping': 0})
    yield of('no-fields', 'tables that end before the fields of filters', 'mapping', dict.fromkeys(FIELDS, b''))
    for field, name, what in (('taps', 'filter-count', 'filter_count'), ('filter_count', 'restart', 'restart_segments'),
                              ('restart_segments', 'zero', 'zero'),
                              ('zero', 'coefficients', 'the coefficients')):
        yield of('no-' + name, 'tables that end before ' + what, field, dict.fromkeys(FIELDS[FIELDS.index(field) + 1:], b''))
    for field in ('restart_segments', 'zero'):
        yield of('short-' + field, 'tables that end within ' + field, field, {
            field: b'\1', **dict.fromkeys(FIELDS[FIELDS.index(field) + 1:], b'')})
    last, five = 'coefficients 4', dict(coefficients=some(2, 5))
    yield of('short', 'tables that end before the last byte of the coefficients', FIELDS[4], {FIELDS[4]: el('h', *LINE)[:3]})
    yield of('fewer', 'tables that end before the last coefficient', FIELDS[4], {FIELDS[4]: el('h', LINE[0])})
    yield of('fewer-last', 'tables that end before the last coefficient of the last of five filters', last, {last: el('h', LINE[0])},
             **five)
    yield of('fewer-filters', 'tables that end before the coefficients of the last of five filters', 'coefficients 3', {last: b''},
             **five)
    yield of('fewer-bytes', 'coefficients of one byte', FIELDS[4], {FIELDS[4]: b'\x40\xF0'})
    yield of('fewer-16', '16 filters of 16 coefficients, and one coefficient too few', 'coefficients 15',
             {'coefficients 15': bytes(30)}, coefficients=some(16, 16))
    yield of('long', 'a byte after the coefficients, inside the tables', '+more', {'+more': b'\0'})
    yield of('more', 'a coefficient more than there are, inside the tables', '+more', {'+more': bytes(2)})
    yield of('more-filters', 'the coefficients of a filter more than there are, inside the tables', '+more', {'+more': bytes(4)},
             **five)
    yield of('taps-more', 'a field taps of one more than there are coefficients', 'taps', {'taps': 3})
    yield of('taps-fewer', 'a field taps of one less than there are coefficients', 'taps', {'taps': 1}, coefficients=[(4096, 0)])
    yield of('count-more', 'filter_count of one more than there are', 'filter_count', {'filter_count': 2})
    yield of('count-fewer', 'filter_count of one less than there are', 'filter_count', {'filter_count': 3}, coefficients=some(2, 4))
    size = 4 + 16 + 4 + 3 + 2 + 3 + 6 + 4  # length of the tables of `few`
    yield of('short-table-bytes', 'table_bytes of one less than there are', 'table_bytes', {'table_bytes': size - 1})
    yield of('one-missing', 'gaps and filters, and the fields of gaps', 'mapping', dict.fromkeys(FIELDS, b''), chunk=gapped_few)
    yield of('low-bytes', 'one low byte of numbers of two bytes, with filters', 'low_bytes', low_bytes=1)
    yield of('window', 'bins of a window of 8 bits, with filters', 'K', K=BINS[1], **NUMBERS)


def field_cases():
    def of(name, what, here, tables=None, chunk=few, also=(), **more):
        return fault('R-5.22', 'filters-' + name, what, here, chunk(tables=tables, **more), also)

    yield of('taps-0', 'taps 0', 'taps', coefficients=((),))
    yield of('taps-0-of-three', 'taps 0, of three filters', 'taps', coefficients=((),) * 3)
    yield of('taps-17', 'taps 17', 'taps', coefficients=[[4096] + [0] * 16])
    yield of('taps-255', 'taps 255', 'taps', coefficients=[[4096] + [0] * 254])
    yield of('count-0', 'filter_count 0', 'filter_count', {'filter_count': 0, 'coefficients 0': b''})
    yield of('count-17', 'filter_count 17', 'filter_count', coefficients=some(1, 17))
    yield of('count-255', 'filter_count 255', 'filter_count', coefficients=[[4096]] * 255)
    yield of('restart-0', 'restart_segments 0', 'restart_segments', segments=0)
    yield of('restart-0-one', 'restart_segments 0, in blocks of one element', 'restart_segments', segments=0, ends=(1,), x=[5])
    yield of('number-1', 'filters of elements of one byte', 'mapping', dtype='u8', **NUMBERS)
    yield of('number-4', 'filters of elements of four bytes', 'mapping', dtype='u32', **NUMBERS)
    yield of('number-4-low', 'filters of elements of four bytes, two of them low', 'mapping', dtype='u32', low_bytes=2, **NUMBERS)
    yield of('number-8', 'filters of elements of eight bytes', 'mapping', dtype='u64', **NUMBERS)
    yield of('dictionary-1', 'filters of a dictionary with numbers of one byte, of elements of two', 'number_bytes', chunk=few_mapped,
             of=few_of_dictionary, v=1, **NOTHING)
    yield of('int-multiple-1', 'filters of int multiples of one byte, of elements of two', 'number_bytes', chunk=few_mapped,
             of=few_of_int_multiple, v=1, dtype='u16', **NOTHING)
    yield of('int-multiple-4', 'filters of int multiples of four bytes, of elements of eight', 'number_bytes', chunk=few_mapped,
             of=few_of_int_multiple, v=4, dtype='i64', **NOTHING)
    yield of('int-multiple-8', 'filters of int multiples of eight bytes', 'number_bytes', chunk=few_mapped, of=few_of_int_multiple, v=8,
             dtype='i64', **NOTHING)
    yield of('float-multiple-1', 'filters of float multiples of one byte, of elements of two', 'number_bytes', chunk=few_mapped,
             of=few_of_float_multiple, v=1, **NOTHING)
    yield of('float-multiple-4', 'filters of float multiples of four bytes, of elements of four', 'number_bytes', chunk=few_mapped,
             of=few_of_float_multiple, v=4, dtype='f32', **NOTHING)
    for transform, details in (('delta', dict(restart=6, stride=1)), ('lorenzo', dict(restart=6, stride=3)),
                               ('separable', dict(restart=6, stride=3, weights=(8, 0)))):
        yield of(transform, 'filters and the transform ' + transform, 'transform', transform=transform, **details)
    yield of('delta-mapped', 'filters of int multiples of two bytes, and the transform delta', 'transform', chunk=few_mapped,
             of=few_of_int_multiple, transform='delta', restart=VARIES, stride=1)
    yield of('outliers', 'filters and outliers, of elements of two bytes', 'upper_bits', outliers=(1, 0, 0, 2))
    yield of('outliers-mapped', 'filters and outliers, of int multiples of two bytes', 'upper_bits', chunk=few_mapped, of=few_of_int_multiple,
             outliers=(16, 0, 0))


def topped(*names, **sections):
    return lambda found: {**{name: section[:-1] + bytes([section[-1] | 128]) if name in names else section for name,
                             section in found.items()}, **sections}


def block_cases():
    def of(name, what, chunk, here='filter codes', rule='R-5.23', block=0):
        return fault(rule, 'filters-' + name, what, 'block %d: %s' % (block, here), chunk)

    for count, code in ((3, 3), (5, 5), (9, 9), (9, 15), (15, 15)):
        yield of('code-%d-of-%d' % (code, count), 'a filter code of %d, of %d filters' % (code, count), few(some(2, count), (code,)))
    yield of('code-second', 'a filter code of 3 of three filters, of the second segment, which has one element', many((0, 3), 3, 129))
    yield of('code-middle', 'a filter code of 5 of five filters, of the second of three segments', many((4, 5, 0), 5))
    yield of('code-last', 'a filter code of 14 of 13 filters, of the last of three segments', many((12, 0, 14), 13))
    yield of('code-block', 'a filter code of 3 of three filters, in the second of two blocks', few(some(2, 3), (0, 3), ends=(3, 6)),
             block=1)
    yield of('code-gaps', 'a filter code of 3 of three filters, after gap marks', gapped_few(coefficients=some(2, 3), codes=(3,)))
    yield of('code-mapped', 'a filter code of 3 of three filters, of int multiples', few_mapped(few_of_int_multiple, some(2, 3), codes=(3,)))
    for bits, count, n in ((1, 2, 6), (2, 3, 6), (2, 4, 300), (4, 5, 6), (4, 16, 300)):
        yield of('filling-%d-%d' % (count, n), 'a padding bit of the filter codes, of %d bits each' % bits,
                 many((0, 1), count, n, rewrite=topped('filter codes')))
    yield of('filling-lowest', 'the lowest padding bit after two filter codes of one bit each', many(
        (1, 0), 2, 200, rewrite=lambda found: {**found, 'filter codes': b'\5'}))
    yield of('filling-block', 'a padding bit of the filter codes of the second of two blocks', few(
        some(2, 2), ends=(3, 6), rewrite=topped('filter codes')), block=1)
    yield of('filling-gaps', 'a padding bit of the filter codes, which would be the code of a segment that counts gaps', gapped_few(
        ((100, 90, 20, 1),), sound(120, 90, 32768), coefficients=some(2, 2), rewrite=lambda found: {**found, 'filter codes': b'\2'}))
    yield of('cut', 'a block that ends within its filter codes', many((0, 9, 3), 16, rewrite=lambda found: cut(
        found, 'filter codes', 1)))
    yield of('cut-1', 'a block that ends within its filter codes, of one bit each', many(
        (0, 1), 2, 1025, rewrite=lambda found: cut(found, 'filter codes', 1)))
    yield of('none', 'a block that ends after its gap marks', gapped_few(
        coefficients=some(2, 2), rewrite=lambda found: cut(found, 'gap marks', 9)), 'gap marks')
    yield of('none-mapped', 'a block that ends after its patches', few_mapped(
        few_of_int_multiple, some(2, 2), patches={2: 9}, rewrite=lambda found: cut(found, 'patches', 9)), 'patches')
    yield of('no-codes-one', 'a block that ends after its patches; one filter, which takes no codes', few_mapped(
        few_of_int_multiple, patches={2: 9}, rewrite=lambda found: cut(found, 'patches', 9)), 'patches', 'R-5.19')
    yield of('no-states', 'a block that ends after its filter codes', few(
        some(2, 2), rewrite=lambda found: cut(found, 'filter codes', 9)), rule='R-5.19')
    yield of('all-long', 'a byte 0 after gap marks that mark all elements: filter codes of no segment', gapped_few(
        ((0, 300),), (), coefficients=some(2, 16), rewrite=lambda found: {**found, 'stream': b'\0'}), 'stream', 'R-5.19')
    yield of('class', 'a code of 3 of three classes, after filter codes', few(
        some(2, 2), class_count=3, classes=(3,)), 'classes', 'R-5.19')
    yield of('number', 'a number of 3 in a dictionary of three values, of filters', few_mapped(
        few_of_dictionary, numbers=(0, 1, 2, 3, 0, 1)), 'lower', 'R-5.21')
    yield of('number-wrap', 'a number of 65,535 in a dictionary of three values, of filters: -1', few_mapped(
        few_of_dictionary, numbers=(0, 1, 2, 65535, 0, 1)), 'lower', 'R-5.21')
    yield of('number-patch', 'a number of 3 of a patch in a dictionary of three values, of filters', few_mapped(
        few_of_dictionary, numbers=(0, 1, 2, 3, 0, 1), patches={3: 500}), 'lower', 'R-5.21')
    yield of('number-long', 'a number of 300 in a dictionary of 300 values, in the second segment', few_mapped(
        few_of_dictionary, values=[list(range(300))], ends=(200,), numbers=[*range(199), 300]), 'lower', 'R-5.21')


def order_cases():
    """Vectors with two faults each: the rule is the first one in the order of 10.5."""
    def of(rule, name, what, here, tables=None, chunk=few, **more):
        return fault(rule, 'order-filters-' + name, what, here, chunk(tables=tables, **more))

    yield of('R-5.7', 'transform', 'an unknown transform, and taps 0', ['transform', 'taps'], {'transform': 5}, coefficients=((),))
    yield of('R-5.7', 'restart', 'restart 1 with none, and taps 0', ['restart', 'taps'], {'restart': 1}, coefficients=((),))
    yield of('R-5.18', 'first', 'frequencies from bin 255 on, and restart_segments 0', ['first 0', 'restart_segments'], {'first 0': 255}, segments=0)
    yield of('R-5.20', 'reserved', 'a reserved byte of an int multiple, and taps 0', ['reserved 4', 'taps'], {'reserved 4': 1},
             few_mapped, of=few_of_int_multiple, coefficients=((),))
    yield of('R-5.22', 'taps-short', 'taps 17, and tables that end after zero', ['taps', 'zero'],
             {'taps': 17, 'coefficients 0': b''})
    yield of('R-5.22', 'restart-short', 'restart_segments 0, and tables that end within the coefficients',
             ['restart_segments', 'coefficients 0'], {'coefficients 0': b'\0'}, segments=0)
    yield of('R-5.22', 'taps-long', 'taps 0, and two coefficients', ['taps', 'coefficients 0'], {'taps': 0})
    yield of('R-5.22', 'restart-low-bytes', 'restart_segments 0, and one low byte of numbers of two bytes',
             ['restart_segments', 'low_bytes'], segments=0, low_bytes=1)
    yield of('R-5.18', 'long-number', 'a byte after the coefficients, and filters of elements of four bytes', ['+more', 'mapping'],
             {'+more': b'\0'}, dtype='u32', **NUMBERS)
    yield of('R-5.18', 'long-delta', 'a byte after the coefficients, and the transform delta', ['+more', 'transform'],
             {'+more': b'\0'}, transform='delta', restart=6, stride=1)
    yield of('R-5.18', 'short-number', 'tables that end before the last coefficient, and filters of elements of four bytes',
             ['coefficients 0', 'mapping'], {'coefficients 0': bytes(2)}, dtype='u32', **NUMBERS)
    yield of('R-5.18', 'low-bytes-delta', 'one low byte of numbers of two bytes, and the transform delta', ['low_bytes', 'transform'],
             low_bytes=1, transform='delta', restart=6, stride=1)
    yield of('R-5.18', 'window-number', 'bins of a window of 8 bits of elements of four bytes, and filters of them', ['K', 'mapping'],
             dtype='u32', K=BINS[1], **NUMBERS)

    def block(rule, name, what, here, chunk):
        return fault(rule, 'order-filters-' + name, what, ['block 0: ' + section for section in here], chunk)

    yield block('R-5.21', 'positions', 'a position beyond, and a filter code of 3 of three filters', [
        'positions', 'filter codes'], few_mapped(
        few_of_int_multiple, some(2, 3), codes=(3,), patches={0: 9}, rewrite=topped(positions=le(6, 2))))
    yield block('R-5.23', 'details', 'a padding bit of filter codes, and one of details', [
        'filter codes', 'details'], few_mapped(
        few_of_float_multiple, some(2, 2), D=2, rewrite=topped('filter codes', 'details')))
    yield block('R-5.23', 'classes-of-block', 'a filter code of 3 of three filters, and a class code of 3 of three classes',
                ['filter codes', 'classes'], few(some(2, 3), (3,), class_count=3, classes=(3,)))
    yield block('R-5.23', 'states', 'a padding bit of filter codes, and a state of 0', ['filter codes', 'upper'], few(
        some(2, 2), rewrite=topped('filter codes', upper=bytes(6))))
    yield block('R-5.23', 'number', 'a padding bit of filter codes, and a number of 3 in a dictionary of three values',
                ['filter codes', 'lower'], few_mapped(few_of_dictionary, some(2, 3), numbers=(0, 1, 2, 3, 0, 1),
                                                           rewrite=topped('filter codes')))


def invalid_vectors():
    for cases in (table_cases, field_cases, block_cases, order_cases):
        yield from cases()
