"""An encoder of mappings in blocks of bins (BINS.md, 5.14) and the vectors of mappings, for make_vectors.py."""
from fractions import Fraction

from vector_bins import bins, cut
from vector_blocks import one
from vector_encoder import *
from vector_tiers import elements, extra_bits

FLOATS = {'bf16': (1, 8, 8), 'f16': (2, 11, 5), 'f32': (3, 24, 8), 'f64': (4, 53, 11)}  # float_type, P, exponent bits


# ---- the encoder -----------------------------------------------------------------------------------------------------

def leb128(n):
    return le(n & 127 | 128, 1) + leb128(n >> 7) if n > 127 else le(n, 1)


def steps(values, w, is_float):
    """Returns the coded second differences of the values of a dictionary."""
    top, mask, found, last, before = 1 << 8 * w - 1, (1 << 8 * w) - 1, b'', 0, 0
    for value in values:
        m = value ^ (top - 1) if is_float and value & top else value
        r = (m - 2 * last + before) & mask
        found += leb128(mask ^ 2 * r & mask if r & top else 2 * r)
        last, before = m, last
    return found


def mapped_blocks(ends, numbers, v, patches, w, details=None, bases=None):
    """Yields the numbers and first sections of each block, for `bins`. `patches` maps indices to elements. `details` has an
    integer for each element, whose extra bits are stored. `bases` has the base of each block, if they have one."""
    for b, (begin, end) in enumerate(zip((0, *ends), ends)):
        here = [i for i in sorted(patches) if begin <= i < end]
        sections = {'patch_count': le(len(here), 2)}
        if bases:
            sections['base = %d' % bases[b]] = bases[b].to_bytes(8, 'little', signed=True)
        if details:
            bits = extra_bits(details[begin:end])
            sections['detail_bytes'] = le((len(bits) + 7) // 8, 4)
        sections['positions'] = b''.join(le(i - begin, 2) for i in here)
        sections['patches'] = b''.join(le(patches[i], w) for i in here)
        if details:
            sections['details'] = packed_bits(bits)
        assert all(0 <= k < 1 << 8 * v for k in numbers[begin:end])
        yield numbers[begin:end], sections


def packed_bits(bits):
    return le(sum(bit << t for t, bit in enumerate(bits)), (len(bits) + 7) // 8)


def dictionaries(dtype, ends, values, numbers=None, v=1, is_float=False, patches=None, encode=bins, **more):
    """Returns a chunk for `of_many`. `values` has a list for each dictionary. `numbers` are the numbers of the chunk,
    pseudo-random by default. `encode` is `bins` or an extension of it; see vector_options.py."""
    w, patches, data = DTYPES[dtype][1], patches or {}, b''
    fields = {'number_bytes': le(v, 1), 'dictionary_flags': le(is_float, 1), 'dictionary_count': le(len(values), 1), 'reserved 4': bytes(1)}
    for p, dictionary in enumerate(values):
        fields.update({'dictionary %d: max_number' % p: le(len(dictionary) - 1, 2), 'dictionary %d: steps of values' % p: steps(dictionary, w, is_float)})
    of_elements = [values[i % len(values)] for begin, end in zip((0, *ends), ends) for i in range(end - begin)]
    if numbers is None:
        numbers = [(a >> a % 5) % min(len(dictionary), 1 << 8 * v) for a, dictionary in zip(mixed(ends[-1]), of_elements)]
    for i, (k, dictionary) in enumerate(zip(numbers, of_elements)):
        data += le(patches[i] if i in patches else dictionary[k] if k < len(dictionary) else 0, w)
    return dtype, data, encode(ends, mapping=(1, v, fields, list(mapped_blocks(ends, numbers, v, patches, w))), **more)


def nearest(q, precision, exponent_bits):
    """Returns the bits of the float nearest to the non-negative fraction q, ties to even; infinity if q is too large."""
    bias, exponent = (1 << exponent_bits - 1) - 1, 0
    if q:
        exponent = q.numerator.bit_length() - q.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > q
    exponent = max(exponent, 1 - bias) if q else 1 - bias
    significand = round(q / Fraction(2) ** (exponent - precision + 1))  # rounds fractions to nearest, ties to even
    return min(significand + (exponent + bias - 1 << precision - 1), 2 * bias + 1 << precision - 1)


def value_of(bits, precision, exponent_bits):
    """Returns the value of the bits of a float, or None for infinity."""
    exponent, fraction = divmod(bits, 1 << precision - 1)
    if exponent == (1 << exponent_bits) - 1:
        return None
    significand = fraction + (1 << precision - 1) * (exponent > 0)
    return significand * Fraction(2) ** (max(exponent, 1) - (1 << exponent_bits - 1) + 2 - precision)


def float_multiple(N, float_name, divisor, exponent):
    """Returns the element N / (divisor * 2^exponent), rounded four times."""
    kind, q = FLOATS['f64' if float_name == 'f64' else 'f32'][1:], Fraction(abs(N))
    for step in (1, Fraction(1, divisor or 1), Fraction(2) ** -exponent):
        if q is not None:
            q = value_of(nearest(q * step, *kind), *kind)
    _, precision, exponent_bits = FLOATS[float_name]
    infinity = (1 << exponent_bits) - 1 << precision - 1
    return (infinity if q is None else nearest(q, precision, exponent_bits)) | (N < 0) << precision + exponent_bits - 1


def exponent_section(exponent):
    """Names a section so that the hex file shows the number with its sign."""
    return 'exponent = %d, of all elements' % exponent


def counted(ends, numbers, bases, modulus):
    """Returns the base of each block, and the numbers counted from it modulo `modulus`. The default base is the minimum."""
    blocks = [numbers[begin:end] for begin, end in zip((0, *ends), ends)]
    bases = list(bases or map(min, blocks))
    return bases, [(n - base) % modulus for base, block in zip(bases, blocks) for n in block]


def float_multiples(dtype, ends, numbers, v, D=0, divisor=1, exponent=0, float_type=None, patches=None, bases=None, tables=None, encode=bins, **more):
    """Returns a chunk for `of_many`. `numbers` has N of each element; lowest bits that are not stored are dropped. `bases`
    has the base of each block, by default the minimum s."""
    w, patches, data = DTYPES[dtype][1], patches or {}, b''
    name = float_type or dtype
    code, precision, _ = FLOATS[name]
    fields = {'number_bytes': le(v, 1), 'float_type': le(code, 1), 'detail_bits': le(D, 1), 'reserved 4': bytes(1), 'divisor': le(divisor, 4),
              exponent_section(exponent): exponent.to_bytes(2, 'little', signed=True), 'reserved 5': bytes(2)}
    s, details = [N >> D for N in numbers], []
    bases, k = counted(ends, s, bases, 1 << (64 if name == 'f64' else 32) - D if D < 32 else 1 << 64)
    for i, (number, N) in enumerate(zip(s, numbers)):
        d = min(D, max(0, precision - (number if number >= 0 else -1 - number).bit_length()))
        t = (N & (1 << D) - 1) >> D - d
        details.append(1 << d | t)  # d extra bits, and the bit above them
        data += le(patches[i] if i in patches else float_multiple((number << D) + (t << D - d), name, divisor, exponent), w)
    blocks = list(mapped_blocks(ends, k, v, patches, w, details if D else None, bases))
    return dtype, data, encode(ends, mapping=(2, v, fields, blocks), tables=tables, **more)


def int_multiples(dtype, ends, numbers, v, factor=1, bases=None, patches=None, tables=None, encode=bins, **more):
    """Returns a chunk for `of_many`. `numbers` has k of each element, and `bases` the base of each block, by default 0."""
    w, patches, bases, data = DTYPES[dtype][1], patches or {}, bases or [0] * len(ends), b''
    fields = {'number_bytes': le(v, 1), 'reserved 4': bytes(3), 'factor': le(factor, 8)}
    of_elements = [base for base, begin, end in zip(bases, (0, *ends), ends) for _ in range(end - begin)]
    for i, (base, k) in enumerate(zip(of_elements, numbers)):
        data += le(patches[i] if i in patches else (base + k * factor) % (1 << 8 * w), w)
    blocks = list(mapped_blocks(ends, numbers, v, patches, w, bases=bases))
    return dtype, data, encode(ends, mapping=(3, v, fields, blocks), tables=tables, **more)


# ---- the examples of the text ----------------------------------------------------------------------------------------

OF_TEXT = [512, 49, -516, 5120], dict(v=2, D=4, exponent=9)
assert steps([0xBF80, 0, 0x3F80], 2, True) == bytes.fromhex('81FE01 84FC03 01')
EXAMPLE = float_multiples('bf16', (4,), OF_TEXT[0], **OF_TEXT[1])
assert EXAMPLE[1] == el('H', 0x3F80, 0x3DC4, 0xBF81, 0x4120)
EXAMPLE = EXAMPLE[2][1](EXAMPLE[1], 2)
assert EXAMPLE['block 0: details'] == b'\x26' and EXAMPLE['block 0: detail_bytes'] == le(1, 4)
assert EXAMPLE['block 0: base = -33'] == (-33).to_bytes(8, 'little', signed=True)
assert counted((4,), [32, 3, -33, 320], None, 1 << 28) == ([-33], [65, 36, 0, 353])


# ---- the vectors -----------------------------------------------------------------------------------------------------

def some(n, bits, min_bits=0):
    """Returns n integers of both signs below 2^bits; small ones are as frequent as large ones."""
    return [(a >> 9) % (1 << min_bits + a % (bits + 1 - min_bits)) * (1 - 2 * (a >> 63)) for a in mixed(n)]


def any_order(n, w):
    return [a % (1 << 8 * w) for a in mixed(n)]


def patterns(fmt, *values):
    """Returns the elements as unsigned integers."""
    return elements(el(fmt, *values), struct.calcsize(fmt))


def dictionary_vectors():
    pixels = [patterns('f', *((p / 255 - mean) / std for p in range(0, 256, step))) for mean, std, step in (
        (0.485, 0.229, 11), (0.456, 0.224, 37), (0.406, 0.225, 85))]
    far = [[0, 1 << 8 * w - 1, 0, (1 << 8 * w) - 1, 5, 5] for w in (1, 2, 4, 8)]  # steps from 0 to 2^(8w) - 1
    nan = dict(is_float=True, patches={0: 0x7FC1, 4: 0x8000, 65: 0xFF80, 69: 0x3F81})
    yield 'bins-dictionaries', (
        'dictionaries of blocks of bins: 1 to 8 element bytes, numbers of 1 and 2 bytes, with and without float; one dictionary and several, of one value, '
        'of values in any order, twice, and that no number names; steps of all lengths; patches, first and last, and all elements'), of_many(
        ('bf16', *dictionaries('bf16', (3,), [[0xBF80, 0, 0x3F80]], [0, 1, 2], is_float=True)[1:]),
        dictionaries('bf16', (66, 70), [[0x3F80, 0xBF80, 0, 0xFF80, 0x7FC0]], **nan),
        dictionaries('bf16', (9,), [[0x8000], [0, 0x8000, 0xC0]], v=2, is_float=True),
        dictionaries('u8', (70, 75), [[77]]),
        dictionaries('u8', (64, 66, 136), [[3, 200, 3, 9], [0], [255, 128, 0, 1, 2]], class_count=2, classes=(0, 1, 1)),
        dictionaries('u8', (130,), [any_order(256, 1)], is_float=True, patches={129: 7}),
        dictionaries('u8', (2, 5), [[5, 4], [3], [8, 9, 10]], patches={i: 90 + i for i in range(5)}),
        dictionaries('u8', (260, 265), [[p] for p in range(255)]), dictionaries('u8', (20,), far[:1]),
        dictionaries('u16', (70, 160), [any_order(300, 2)], v=2),
        dictionaries('u16', (20,), [list(range(1000, 1516, 2))]), dictionaries('u16', (20,), far[1:2], v=2, is_float=True),
        dictionaries('f32', (129, 200), pixels, is_float=True, class_count=3, classes=(1, 0, 2), patches={
            0: 0x80000000, 2: 0x7FC00000, 128: 0xFFFFFFFF, 129: 1, 199: 0xFF800000}),
        dictionaries('f32', (50,), pixels[::-1], v=2, patches={49: 0}), dictionaries('u32', (20,), far[2:3]),
        dictionaries('u32', (3,), [[7, 8]], v=2, patches={0: 1, 1: VARIES, 2: 1 << 31}),
        dictionaries('f64', (64, 65), [patterns('d', *(p / 100 for p in range(-30, 30)))], is_float=True, patches={64: 1 << 63}),
        dictionaries('f64', (12,), [patterns('d', 1.5, -1.5, 0, -0.0, 1e300, 1e-300)] * 2, v=2, is_float=True), dictionaries('u64', (20,), far[3:]),
        dictionaries('i64', (40,), far[3:], v=2, is_float=True, patches={20: 3}),
        dictionaries('utf8', (7, 70), [[*b'abcdef ghi'], [*b' .,;']], patches={6: 33}), dictionaries('bool', (9, 80), [[1, 0]]))
    fade = [min(49, i % 50 + a % 3) for i, a in enumerate(mixed(200))]
    colors = [list(range(40, 240, 4)), any_order(50, 1)]
    tinted, sevenths = [any_order(600, 2)], {fmt: patterns(fmt, *(p / 7 for p in range(50))) for fmt in 'fd'}
    predicted = dict(restart=50, stride=10)
    yield 'bins-dictionaries-transforms', (
        'dictionaries with each transform, which is one of the numbers; numbers of 2 bytes and more than 256 values'), of_many(
        dictionaries('u8', (64, 130), colors, fade[:130]),
        dictionaries('u8', (64, 130), colors, fade[:130], transform='delta', **predicted),
        dictionaries('u8', (70, 200), colors, fade, transform='lorenzo', **predicted),
        dictionaries('u8', (100,), colors, fade[:100], transform='separable', weights=(4, 2), is_float=True, **predicted),
        dictionaries('u16', (3,), [list(range(0, 504, 2))], [250, 3, 251], transform='delta', restart=3, stride=1),  # modulo 256
        dictionaries('u16', (65,), tinted, [11 * k for k in fade[:65]], 2),
        dictionaries('u16', (63, 100), tinted, [11 * k for k in fade[:100]], 2, transform='separable', weights=(5, 4), patches={99: 5}, **predicted),
        dictionaries('f32', (60,), [sevenths['f']], fade[:60], is_float=True, transform='delta', restart=50, stride=1),
        dictionaries('f64', (60,), [sevenths['d']], fade[:60], 2, is_float=True, transform='lorenzo', restart=VARIES, stride=8))


def float_multiple_vectors():
    special = {'bf16': (0x7FC0, 0x8000, 0x7F80, 0xFF80), 'f16': (0x7E01, 0x8000, 0x7C00, 0xFC00),
               'f32': (0x7FC00001, 1 << 31, 0x7F800000, 0xFF800000), 'f64': ((0x7FF8 << 48) + 1, 1 << 63, 0x7FF << 52, 0xFFF << 52)}

    def with_patches(dtype, *at):
        return {i: special[dtype][j % 4] for j, i in enumerate(at)}

    cents = [-1, 0, 1, 25, 100, -199, 1999, 2500, -127, 128, 12345, -32768, 32767]
    yield 'bins-float-multiples', (
        'float multiples of blocks of bins: all floats, numbers of 1 to 8 bytes, 0, 4 and 15 detail bits, divisors of 1, 25 and 3, exponents of '
        'both signs; NaN, -0 and infinities are patches; a block whose details have no bytes'), of_many(
        float_multiples('bf16', (4,), *OF_TEXT[:1], **OF_TEXT[1]), float_multiples('bf16', (65,), some(65, 11), 1, 4, exponent=7, bases=[-128]),
        float_multiples('bf16', (66, 130), some(130, 19), 2, 4, exponent=-3, patches=with_patches('bf16', 0, 1, 65, 66, 129)),
        float_multiples('bf16', (65,), some(65, 22), 1, 15, exponent=20, bases=[(5 << 17) - 128]),
        float_multiples('bf16', (64, 65), some(65, 19, 13), 2, 4, exponent=12),
        float_multiples('bf16', (20,), [(256 + i) * 16 for i in range(20)], 2, 4), float_multiples('bf16', (13,), cents, 2, divisor=25, exponent=2),
        float_multiples('f16', (65, 70), some(70, 22), 1, 15, exponent=20, patches=with_patches('f16', *range(3, 70, 11))),
        float_multiples('f16', (13,), cents, 2, divisor=25, exponent=3), float_multiples('f16', (65,), some(65, 15), 2, divisor=3, exponent=-1),
        float_multiples('f16', (65,), some(65, 18), 2, 4, exponent=9), float_multiples('f16', (3,), [1, 2, 3], 1, 4, patches={0: 1, 1: 2, 2: 3}),
        float_multiples('f32', (65, 100), some(100, 22), 1, 15, exponent=14, patches=with_patches('f32', 64, 65, 98, 99)),
        float_multiples('f32', (65,), some(65, 30), 2, 15, exponent=15, bases=[(-1 << 63) + 98304]),
        float_multiples('f32', (13,), cents, 2, divisor=25, exponent=2),
        float_multiples('f32', (65,), some(65, 31), 4, divisor=3, exponent=-9, low_bytes=2), float_multiples('f32', (13,), cents, 4, exponent=15, low_bytes=2),
        float_multiples('f32', (66,), some(66, 7), 1, divisor=3), float_multiples('f32', (66,), some(66, 18), 2, 4, exponent=-4),
        float_multiples('f64', (65, 70), some(70, 46), 4, 15, exponent=20, low_bytes=2, patches=with_patches('f64', 0, 64, 65, 69)),
        float_multiples('f64', (65,), some(65, 63), 8, low_bytes=6), float_multiples('f64', (13,), cents, 8, divisor=25, exponent=2, low_bytes=6),
        float_multiples('f64', (9, 13), [n + (1 << 50) for n in cents], 2, divisor=3, exponent=-30, bases=[(1 << 50) - 40000, (1 << 50) - 32768]),
        float_multiples('f64', (65,), some(65, 22), 1, 15, exponent=3),
        float_multiples('f64', (65,), some(65, 35), 4, 4, exponent=-2, low_bytes=2),
        float_multiples('f64', (9, 65), some(65, 22), 1, 15, exponent=3, bases=[(3 << 49) - 128, (-5 << 49) - 128]),
        float_multiples('u16', (13,), cents, 2, divisor=3, float_type='bf16'), float_multiples('u16', (13,), cents, 2, divisor=3, float_type='f16'),
        float_multiples('i64', (3,), [-1, 0, 1], 1, float_type='f64'))
    few, tie = [1, 2, 3, 5, 7, -1, -3, -9, 0, 100], 1 << 24
    large = [(1 << 31) - 1, -1 << 31, (1 << 31) - 65, (1 << 31) - 64]
    larger = [(1 << 53) + 1, (1 << 53) + 3, -(1 << 53) - 1, (1 << 63) - 1, -1 << 63, (1 << 63) - 512]
    near = [n + i for n in (1 << 24, 1 << 25, (1 << 26) + (1 << 18), -1 << 24) for i in range(-3, 4)]
    yield 'bins-float-multiples-rounded', (
        'float multiples that are rounded: ties to even, each result on its own, to subnormal numbers, to 0, to -0 and to infinity; '
        'the largest divisor, the smallest and the largest exponents and numbers'), of_many(
        float_multiples('bf16', (40,), [(256 + i) << 4 for i in range(-20, 20)], 2, 4, exponent=5), float_multiples('bf16', (10,), few, 1, divisor=16711935),
        float_multiples('bf16', (10,), few, 2, divisor=tie, exponent=126), float_multiples('bf16', (10,), few, 1, divisor=tie - 1, exponent=115),
        float_multiples('bf16', (5,), [32640, 32704, 32639, -32704, 32767], 2, exponent=-113),
        float_multiples('bf16', (12,), [i << 14 for i in range(-6, 6)], 1, 15, exponent=126), float_multiples('bf16', (10,), few, 1, exponent=-126),
        float_multiples('f16', (10,), few, 1, exponent=25), float_multiples('f16', (10,), few, 1, exponent=126),
        float_multiples('f16', (10,), few, 1, divisor=3, exponent=19), float_multiples('f16', (2,), [227, -227], 2, divisor=58027),
        float_multiples('f16', (8,), [32752, 32759, 32760, 32761, -32759, -32760, 32767, -32768], 2, exponent=-1),
        float_multiples('f16', (20,), [2049 + i for i in range(-10, 10)], 2, exponent=3), float_multiples('f16', (3,), [1, 0, -1], 1, exponent=-126),
        float_multiples('f16', (30,), [i << 4 for i in range(-15, 15)], 1, 4, exponent=31),
        float_multiples('f32', (28,), near, 4, low_bytes=2), float_multiples('f32', (10,), few, 4, divisor=tie, exponent=126, low_bytes=2),
        float_multiples('f32', (28,), near, 4, divisor=3, exponent=126, low_bytes=2), float_multiples('f32', (10,), few, 1, exponent=-126),
        float_multiples('f32', (10,), few, 1, divisor=3, exponent=126), float_multiples('f64', (10,), few, 1, divisor=3, exponent=1022),
        float_multiples('f32', (28,), near, 4, divisor=tie - 1, exponent=120, low_bytes=2),
        float_multiples('f32', (4,), large, 4, exponent=-97, low_bytes=2, bases=[(1 << 31) - 65]),
        float_multiples('f32', (4,), large, 4, exponent=5, low_bytes=2),
        float_multiples('f64', (10,), few, 8, divisor=tie, exponent=1022, low_bytes=6), float_multiples('f64', (10,), few, 8, exponent=-1022, low_bytes=6),
        float_multiples('f64', (10,), few, 8, divisor=tie - 3, exponent=1022, low_bytes=6),
        float_multiples('f64', (6,), larger, 8, exponent=-961, low_bytes=6, bases=[(1 << 63) - 1]),
        float_multiples('f64', (6,), larger, 8, divisor=3, low_bytes=6))
    wave = [(i % 50 - 25) * 7 - i // 50 for i in range(150)]
    predicted = dict(restart=50, stride=10)
    yield 'bins-float-multiples-transforms', 'float multiples with each transform, which is one of the numbers, without their details; classes', of_many(
        float_multiples('bf16', (60, 130), [n * 5 for n in wave[:130]], 2, 4, exponent=8, transform='delta', class_count=2, classes=(1, 0, 1), **predicted),
        float_multiples('bf16', (60,), [n // 4 for n in wave[:60]], 1), float_multiples('f16', (60,), wave[:60], 2),
        float_multiples('f16', (70, 130), wave[:130], 2, divisor=25, transform='lorenzo', class_count=3, classes=(2, 0), **predicted),
        float_multiples('f32', (80,), [n * 9 for n in wave[:80]], 4, transform='separable', weights=(5, 2), patches={79: 1 << 31}, **predicted),
        float_multiples('f32', (80,), [n * 9999 for n in wave[:80]], 2, 15, exponent=15, transform='delta', restart=40, stride=1),
        float_multiples('f32', (80,), [n * 99999 for n in wave[:80]], 4, low_bytes=2, transform='lorenzo', restart=VARIES, stride=1),
        float_multiples('f64', (80,), [n * 99999 for n in wave[:80]], 8, low_bytes=2, transform='delta', patches={0: 1}, **predicted),
        float_multiples('f64', (66, 150), [n * 999999 for n in wave], 4, 15, transform='separable', weights=(8, 8), low_bytes=1, **predicted))


def int_multiple_vectors():
    ascending = [i * 3 + a % 3 for i, a in enumerate(mixed(130))]
    yield 'bins-int-multiples', (
        'int multiples of blocks of bins: numbers of 1 to 8 bytes, factors from 1 to 2^64 - 1, bases of both signs; sums that wrap; patches'), of_many(
        int_multiples('u8', (65, 70), any_order(70, 1), 1, 1, [7, -1]), int_multiples('u8', (5,), [0, 1, 2, 3, 255], 1, 255, [3]),
        int_multiples('i16', (130,), ascending, 2, 10, [-1000], transform='delta', restart=VARIES, stride=1, patches={0: 5, 129: 6}),
        int_multiples('u32', (64, 130), ascending, 2, 250, [VARIES - 9, -1 << 63], class_count=2, classes=(0, 1, 1)),
        int_multiples('u32', (9,), any_order(9, 4), 4, 3, [1], low_bytes=2),
        int_multiples('i64', (70, 130), ascending, 4, 86400, [(1 << 63) - 1, 10 ** 12], transform='delta', restart=50, stride=1),
        int_multiples('i64', (130,), ascending, 2, (1 << 63) + 1, [5], transform='lorenzo', restart=VARIES, stride=10),
        int_multiples('u64', (9,), any_order(9, 8), 8, (1 << 64) - 1, [-5], low_bytes=6, patches={i: i for i in range(9)}),
        int_multiples('u64', (9, 12), any_order(12, 8), 8, (1 << 64) - 1, [-5, 1 << 62], low_bytes=6, patches={3: 77}),
        int_multiples('u64', (3,), [0, 1, 255], 1, 1 << 62), int_multiples('f32', (6,), [5, 3, 5, 200, 0, 1], 1, 1 << 20, [0x3F800000]))


def valid_vectors():
    yield from dictionary_vectors()
    yield from float_multiple_vectors()
    yield from int_multiple_vectors()


BINS = {1: (6, 6, 7)}  # otherwise the width is 16 bits


def fault(rule, name, what, here, chunk, also=()):
    """Returns a vector with one chunk, in which the sections `here` are marked."""
    dtype, data, enc = chunk
    f = one([data], enc, col('x', dtype, [len(data) // DTYPES[dtype][1]]))
    r, = (r for r in f.regions if r.kind == 'chunk')
    r.tweak.update({'values: ' + section: r.body['values: ' + section] for section in ([here] if isinstance(here, str) else here)})
    return rule, name, what, f, {'also': list(also)}


def few_of_dictionary(dtype='u16', values=([500, 7, 500],), numbers=(0, 1, 2, 1, 0, 2), ends=(6,), v=1, K=None, **more):
    return dictionaries(dtype, ends, values, list(numbers), v, K=K or BINS.get(v, (14, 14, 15)), **more)


def few_of_int_multiple(dtype='u32', numbers=(16, 3, 5, 0, 100, 1), ends=(6,), v=1, K=None, **more):
    return int_multiples(dtype, ends, list(numbers), v, K=K or BINS.get(v, (14, 14, 15)), **more)


def few_of_float_multiple(dtype='bf16', numbers=(16, 3, -5, 0, 100, -1), ends=(6,), v=1, K=None, **more):
    return float_multiples(dtype, ends, list(numbers), v, K=K or BINS.get(v, (14, 14, 15)), **more)


def table_cases():
    """Vectors of the rules of bins for numbers, and of the end of the tables."""
    def dictionary(name, what, here, tables=None, also=(), **more):
        return fault('R-5.18', 'dictionary-' + name, what, here, few_of_dictionary(tables=tables, **more), also)

    def float_multiple(name, what, here, tables=None, also=(), **more):
        return fault('R-5.18', 'float-multiple-' + name, what, here, few_of_float_multiple(tables=tables, **more), also)

    def int_multiple(name, what, here, tables=None, also=(), **more):
        return fault('R-5.18', 'int-multiple-' + name, what, here, few_of_int_multiple(tables=tables, **more), also)

    values, in_blocks = 'dictionary 0: steps of values', dict(ends=(3, 6))
    yield int_multiple('no-fields', 'tables that end before the fields of an int multiple', 'mapping', dict.fromkeys(
        ('number_bytes', 'reserved 4', 'factor'), b''))
    yield int_multiple('short', 'tables that end within the factor', 'factor', {'factor': bytes(7)})
    yield int_multiple('long', 'a byte after the factor, inside the tables', '+more', {'+more': b'\0'})
    yield fault('R-5.18', 'mapping-4', 'a mapping of 4, with the fields and blocks of a dictionary', 'mapping', few_of_dictionary(tables={'mapping': 4}))
    yield fault('R-5.18', 'mapping-255', 'a mapping of 255, with the fields and blocks of a float multiple', 'mapping', few_of_float_multiple(
        tables={'mapping': 255}))
    yield fault('R-5.18', 'mapping-0', 'no mapping, but the fields of a dictionary', 'mapping', few_of_dictionary(
        'u8', ([5, 7],), (0, 1) * 3, tables={'mapping': 0}), ['R-5.19'])
    fields = ('number_bytes', 'dictionary_flags', 'dictionary_count', 'reserved 4', 'dictionary 0: max_number', values)
    yield dictionary('no-fields', 'tables that end before the fields of a dictionary', 'mapping', dict.fromkeys(fields, b''))
    yield dictionary('short', 'tables that end within the first fields of a dictionary', 'dictionary_count', dict.fromkeys(fields[3:], b''))
    yield dictionary('short-max-number', 'tables that end within max_number', 'dictionary 0: max_number', {fields[4]: b'\2', values: b''})
    yield dictionary('short-steps', 'tables that end before the last step', values, {values: steps([500, 7], 2, False)})
    yield dictionary('short-step', 'tables that end within a step', values, {values: steps([500, 7, 500], 2, False)[:-1]})
    yield dictionary('short-table-bytes', 'table_bytes that ends within a step, whose last byte follows', 'table_bytes', {
        'table_bytes': 46})
    yield dictionary('long', 'a byte after the steps, inside the tables', '+more', {'+more': b'\0'})
    yield dictionary('blocks-long', 'a byte after the steps, inside the tables, in blocks', '+more', {'+more': b'\0'}, **in_blocks)
    yield dictionary('blocks-short-table-bytes', 'table_bytes that ends within a step, in blocks', 'table_bytes', {'table_bytes': 46}, ['R-5.14'], **in_blocks)
    yield dictionary('max-number-more', 'max_number of one more than there are steps', 'dictionary 0: max_number', {'dictionary 0: max_number': 3})
    yield dictionary('max-number-max', 'max_number of 65,535', 'dictionary 0: max_number', {'dictionary 0: max_number': 65535})
    yield dictionary('max-number-fewer', 'max_number of one less than there are steps', 'dictionary 0: max_number', {'dictionary 0: max_number': 1},
                  numbers=(0, 1) * 3)
    yield dictionary('count-more', 'dictionary_count of one more than there are', 'dictionary_count', {'dictionary_count': 2})
    yield dictionary('count-fewer', 'dictionary_count of one less than there are', 'dictionary_count', {'dictionary_count': 1}, values=([1, 2, 3], [4, 5, 6]))
    fields = (exponent_section(0), 'reserved 5')
    yield float_multiple('no-fields', 'tables that end before the fields of a float multiple', 'mapping', dict.fromkeys(
        ('number_bytes', 'float_type', 'detail_bits', 'reserved 4', 'divisor', *fields), b''))
    yield float_multiple('short', 'tables that end before the last two bytes of a float multiple', fields[0], {fields[1]: b''})
    yield float_multiple('short-byte', 'tables that end before the last byte of a float multiple', fields[1], {fields[1]: b'\0'})
    yield float_multiple('short-table-bytes', 'table_bytes of one less than there are', 'table_bytes', {'table_bytes': 46})
    yield float_multiple('long', 'a byte after the fields of a float multiple, inside the tables', '+more', {'+more': b'\0'})
    yield dictionary('low-bytes', 'one low byte of numbers of two bytes, of elements of four', 'low_bytes', dtype='u32', v=2, low_bytes=1)
    yield dictionary('low-bytes-1', 'one low byte of numbers of one byte, of elements of four', 'low_bytes', dtype='u32', low_bytes=1)
    yield float_multiple('low-bytes', 'three low bytes of numbers of four bytes, of elements of eight', 'low_bytes', dtype='f64', v=4,
                   low_bytes=3, numbers=(1, 2, 3) * 2)
    yield dictionary('window-1', 'bins of a window of 16 bits of numbers of one byte', 'K', K=(14, 14, 15))
    yield float_multiple('window-2', 'bins of a window of 8 bits of numbers of two bytes', 'K', dtype='f32', v=2, K=(6, 6, 7), numbers=(1, 2, 3) * 2)


def field_cases():
    def dictionary(name, what, here, tables=None, also=(), **more):
        return fault('R-5.20', 'dictionary-' + name, what, here, few_of_dictionary(tables=tables, **more), also)

    def float_multiple(name, what, here, tables=None, also=(), **more):
        return fault('R-5.20', 'float-multiple-' + name, what, here, few_of_float_multiple(tables=tables, **more), also)

    no_window = ['R-5.18']  # numbers of no bytes have no window
    yield dictionary('number-bytes-0', 'numbers of no bytes', 'number_bytes', {'number_bytes': 0}, no_window)
    for v, dtype, what in ((2, 'u8', 'of elements of one byte'), (3, 'u32', 'of elements of four'), (4, 'u32', 'of elements of four'),
                           (8, 'u64', 'of elements of eight'), (16, 'u64', 'of elements of eight')):
        yield dictionary('number-bytes-%d' % v, 'numbers of %d bytes, %s' % (v, what), 'number_bytes', dtype=dtype, v=v, values=([5, 7, 5],))
    yield dictionary('flags', 'bit 1 of dictionary_flags', 'dictionary_flags', {'dictionary_flags': 2})
    yield dictionary('blocks-flags', 'bit 1 of dictionary_flags, in blocks', 'dictionary_flags', {'dictionary_flags': 2}, ends=(3, 6))
    yield dictionary('flags-128', 'bit 7 of dictionary_flags, besides float', 'dictionary_flags', {'dictionary_flags': 129})
    yield dictionary('none', 'dictionary_count 0', 'dictionary_count', {
        'dictionary_count': 0, 'dictionary 0: max_number': b'', 'dictionary 0: steps of values': b''})
    yield dictionary('none-but-one', 'dictionary_count 0, and a dictionary', 'dictionary_count', {'dictionary_count': 0}, ['R-5.18'])
    yield dictionary('reserved', 'the reserved byte of a dictionary', 'reserved 4', {'reserved 4': 1})

    def stepped(name, what, first, dtype='u16', also=()):
        """Replaces the first step by these bytes; the others are 1."""
        section = 'dictionary 0: steps of values'
        return dictionary('step-' + name, what, section, {section: first + b'\1\1'}, also, dtype=dtype, values=([0, 0, 0],))
    yield stepped('0', 'a step of 0 in two bytes', b'\x80\0')
    yield stepped('long', 'a step of 1,000 in three bytes', b'\xE8\x87\0')
    yield stepped('long-1', 'a step of 255 in three bytes, of one element byte', b'\xFF\x81\0', 'u8')
    yield stepped('long-8', 'a step of 2^64 - 1 in eleven bytes', b'\xFF' * 9 + b'\x81\0', 'u64')
    yield stepped('very-long', 'a step of 1 in 40 bytes', b'\x81' + b'\x80' * 38 + b'\0', 'u32')
    for w, dtype in ((1, 'u8'), (2, 'u16'), (4, 'u32'), (8, 'u64')):
        yield stepped('max-%d' % w, 'a step of 2^%d, of %d element bytes' % (8 * w, w), leb128(1 << 8 * w), dtype)
    yield stepped('max-3', 'a step of 2^16 + 5, in the three bytes that it needs', leb128(65541))
    yield stepped('max-70', 'a step of 2^70 in eleven bytes, of eight element bytes', leb128(1 << 70), 'u64')
    yield stepped('max-69', 'a step of 127 times 2^63, of eight element bytes', leb128(127 << 63), 'u64')
    last = steps([500, 7, 500], 2, False)[:-2]
    yield dictionary('step-of-last', 'the last step of the second of two dictionaries is 2^16', 'dictionary 1: steps of values', {
        'dictionary 1: steps of values': last + leb128(65536)}, values=([500, 7, 500],) * 2)

    def int_multiple(name, what, here, tables=None, also=(), **more):
        return fault('R-5.20', 'int-multiple-' + name, what, here, few_of_int_multiple(tables=tables, **more), also)

    yield int_multiple('number-bytes-0', 'numbers of no bytes', 'number_bytes', {'number_bytes': 0}, no_window)
    yield int_multiple('number-bytes-3', 'numbers of 3 bytes', 'number_bytes', v=3, low_bytes=1)
    yield int_multiple('number-bytes-8', 'numbers of 8 bytes, of elements of four', 'number_bytes', v=8)
    yield int_multiple('reserved', 'a reserved byte of an int multiple', 'reserved 4', {'reserved 4': 1 << 16})
    yield int_multiple('factor-0', 'a factor of 0', 'factor', factor=0)
    yield float_multiple('number-bytes-0', 'numbers of no bytes', 'number_bytes', {'number_bytes': 0}, no_window)
    yield float_multiple('number-bytes-3', 'numbers of 3 bytes', 'number_bytes', dtype='f32', v=3, low_bytes=1, numbers=(5, 7, 9) * 2)
    yield float_multiple('number-bytes-4', 'numbers of 4 bytes, of elements of two', 'number_bytes', v=4, low_bytes=2)
    yield float_multiple('number-bytes-5', 'numbers of 5 bytes, of elements of eight', 'number_bytes', dtype='f64', v=5, low_bytes=3, numbers=(5, 7, 9) * 2)
    yield float_multiple('number-bytes-16', 'numbers of 16 bytes', 'number_bytes', dtype='f64', v=16, numbers=(5, 7, 9) * 2)
    for dtype, code, what in (('bf16', 0, 'float_type 0'), ('bf16', 5, 'float_type 5'), ('f64', 255, 'float_type 255'),
                              ('bf16', 3, 'f32 in two bytes'), ('f16', 4, 'f64 in two bytes'), ('f32', 1, 'bf16 in four bytes'),
                              ('f64', 3, 'f32 in eight bytes')):
        yield float_multiple('%s-of-type-%d' % (dtype, code), what, 'float_type', {'float_type': code}, dtype=dtype)
    yield float_multiple('of-bytes', 'f16 in one byte', 'float_type', dtype='u8', float_type='f16', numbers=(0,) * 6)
    yield float_multiple('details-16', '16 bits of details', 'detail_bits', D=16, numbers=(1 << 18, 5, 0) * 2)
    yield float_multiple('details-255', '255 bits of details', 'detail_bits', {'detail_bits': 255}, ['R-5.21'], dtype='f64')
    for v, D, dtype in ((4, 1, 'f32'), (4, 15, 'f32'), (8, 1, 'f64'), (8, 15, 'f64')):
        yield float_multiple('bits-%d' % (8 * v + D), 'numbers of %d bytes, and %d bits of details' % (v, D), 'detail_bits', dtype=dtype, v=v, D=D,
                       numbers=(1 << D, 5, 0) * 2)
    yield float_multiple('divisor-0', 'divisor 0', 'divisor', {'divisor': 0})
    yield float_multiple('divisor', 'divisor 2^24 + 1', 'divisor', divisor=(1 << 24) + 1)
    yield float_multiple('divisor-most', 'divisor 2^32 - 1', 'divisor', divisor=VARIES)
    yield float_multiple('divisor-25', 'a divisor of 25, and details', 'divisor', divisor=25, D=4)
    yield float_multiple('divisor-2', 'a divisor of 2, and one bit of details', 'divisor', divisor=2, D=1)
    for exponent, dtype in ((127, 'f32'), (-127, 'f32'), (127, 'bf16'), (-127, 'f16'), (1022, 'bf16'), (1023, 'f64'), (-1023, 'f64'),
                            (-32768, 'f64')):
        name = 'exponent-%s%d-%s' % ('minus-' * (exponent < 0), abs(exponent), dtype)
        yield float_multiple(name, 'exponent %d, of %s' % (exponent, dtype), exponent_section(exponent), dtype=dtype, exponent=exponent)
    yield float_multiple('reserved', 'the reserved byte of a float multiple', 'reserved 4', {'reserved 4': 128})
    yield float_multiple('reserved-2', 'the reserved bytes after the exponent', 'reserved 5', {'reserved 5': 1})
    yield float_multiple('reserved-sign', 'the reserved bytes after an exponent of -1, as if it had 32 bits', 'reserved 5', {
        'reserved 5': 65535}, exponent=-1)


def block_cases():
    def mapped(kind, name, what, here, encode, rewrite=None, rule='R-5.21', also=(), **more):
        there = 'block %d: ' % (len(more.get('ends', (6,))) - 1)
        return fault(rule, '%s-%s' % (kind, name), what, there + here, encode(rewrite=rewrite, **more), also)

    def dictionary(name, what, here, *rewrite, **more):
        return mapped('dictionary', name, what, here, few_of_dictionary, *rewrite, **more)

    def float_multiple(name, what, here, *rewrite, **more):
        return mapped('float-multiple', name, what, here, few_of_float_multiple, *rewrite, **more)

    def replaced(**sections):
        return lambda found: {name: sections.get(name, section) for name, section in found.items()}

    def within(of, section, size, **more):
        name = section.split()[0]  # the name of `base` includes its value
        return of('cut-' + name.replace('_', '-'), 'a block that ends within its ' + name, section,
                  lambda found: cut(found, section, size), **more)

    def placed(name, what, *positions, **more):
        return dictionary('positions-' + name, what, 'positions', replaced(positions=el('H', *positions)), **more)

    two, three = dict(patches={1: 9, 4: 11}), dict(patches={0: 9, 3: 10, 5: 11})
    yield within(dictionary, 'patch_count', 1, **two)
    yield within(dictionary, 'positions', 3, **two)
    yield within(dictionary, 'patches', 3, **two)
    yield dictionary('no-patches', 'a block that ends after the positions of its patches', 'positions',
                  lambda found: cut(found, 'positions', 4), **two)
    yield dictionary('patches-most', '65,535 patches', 'patch_count', replaced(patch_count=le(65535, 2)))
    yield dictionary('no-states', 'a block that ends after its patches', 'patches',
                  lambda found: cut(found, 'patches', 4), rule='R-5.19', **two)
    yield dictionary('patches-cut-2', 'a block that ends within its patches, the second of two', 'patches',
                  lambda found: cut(found, 'patches', 1), ends=(3, 6), patches={0: 1, 5: 9})
    yield placed('equal', 'an element that is a patch twice', 1, 1, **two)
    yield placed('equal-last', 'the last of three patches is the one before it', 0, 5, 5, **three)
    yield placed('descend', 'positions that descend', 4, 1, **two)
    yield placed('descend-last', 'the last of three positions is the least', 3, 5, 0, **three)
    yield placed('beyond', 'a position that equals the number of elements', 1, 6, **two)
    yield placed('beyond-most', 'a position of 65,535', 1, 65535, **two)
    yield placed('beyond-second', 'a position of the chunk instead of the second block', 4, ends=(3, 6), patches={4: 9})
    yield dictionary('patches-7', 'seven patches of six elements', 'positions', lambda found: {
        **found, 'patch_count': le(7, 2), 'positions': el('H', *range(6), 5), 'patches': el('H', *range(7))}, patches={0: 9})

    yield dictionary('number', 'a number of 3 in a dictionary of three values', 'lower', numbers=(0, 1, 3, 1, 0, 2))
    yield dictionary('number-255', 'a number of 255 in a dictionary of three values', 'lower', numbers=(0, 1, 255, 1, 0, 2))
    yield dictionary('number-256', 'a number of 256, which is 0 modulo 256', 'lower', v=2, numbers=(0, 1, 256, 1, 0, 2))
    yield dictionary('number-of-patch', 'a number of 3 of a patch', 'lower', numbers=(0, 1, 3, 1, 0, 2), patches={2: 500})
    uneven = ([1, 2, 3], [4], [5, 6])
    yield dictionary('number-of-second', 'a number of 1 in the second of three dictionaries, which has one value', 'lower', values=uneven,
                  numbers=(0, 0, 1, 2, 1, 1))
    yield dictionary('number-of-turn', 'numbers that are right if the dictionaries take turns over both blocks', 'lower', values=uneven, ends=(4, 7),
                  numbers=(0, 0, 1, 2, 0, 1, 2))
    yield dictionary('number-last', 'a number of 1 of the last element of a dictionary of one value', 'upper', dtype='u8',
                  values=([9],), ends=(65,), numbers=(0,) * 64 + (1,))

    rounded = dict(numbers=(1000, 49, -516, 5120, 7, 0), v=2, D=4)  # 2, 4, 2, 0, 4 and 4 bits of details

    def detailed(name, what, change, **more):
        """Applies `change` to the details, and sets detail_bytes to their new length."""
        def rewrite(found):
            details = change(found['details'])
            return {**found, 'detail_bytes': le(len(details), 4), 'details': details}
        return float_multiple('details-' + name, what, 'detail_bytes', rewrite, **{**rounded, **more})

    def int_multiple(name, what, here, *rewrite, **more):
        return mapped('int-multiple', name, what, here, few_of_int_multiple, *rewrite, **more)

    yield within(int_multiple, 'base = -7', 7, bases=[-7])
    yield int_multiple('no-states', 'a block that ends after its base', 'base = -7', lambda found: cut(found, 'base = -7', 8), rule='R-5.19', bases=[-7])
    yield within(int_multiple, 'patches', 1, patches={3: 9})
    yield within(float_multiple, 'patch_count', 1, **rounded)
    yield within(float_multiple, 'base = -33', 7, **rounded)
    yield within(float_multiple, 'detail_bytes', 3, **rounded)
    yield within(float_multiple, 'positions', 1, patches={3: 9}, **rounded)
    yield within(float_multiple, 'patches', 1, patches={3: 9}, **rounded)
    yield within(float_multiple, 'details', 1, **rounded)
    yield float_multiple('no-states', 'a block that ends after its details', 'details', lambda found: cut(found, 'details', 2), rule='R-5.19', **rounded)
    yield float_multiple('details-most', 'detail_bytes of 2^32 - 1', 'detail_bytes', replaced(detail_bytes=le(VARIES, 4)), **rounded)
    yield detailed('short', 'details that lack their last byte', lambda details: details[:-1])
    yield detailed('long', 'a zero byte after the details', lambda details: details + b'\0')
    yield detailed('none', 'details of no bytes', lambda details: b'')
    yield detailed('superfluous', 'a byte of details where no element has a bit of them', lambda details: b'\0',
                   numbers=(4096, 8000, 5120, -4128, -9000, 9999))
    yield detailed('of-patches', 'details without the bits of the patches', lambda details: b'', patches={
        i: 0x7FC0 for i in range(6)})
    for bit in (2, 7):
        yield float_multiple('filling-%d' % bit, 'bit %d of the last byte pads 10 bits of details, and is one' % bit, 'details', lambda found: {
            **found, 'details': found['details'][:-1] + bytes([found['details'][-1] | 1 << bit])}, **{
                **rounded, 'numbers': (1000, 49, 7, 5120, 5136, 5152)})
    yield float_multiple('positions-equal', 'positions of a float multiple that are equal', 'positions', replaced(positions=el('H', 2, 2)),
                   patches={2: 0x7FC0, 3: 0x8000}, **rounded)
    yield float_multiple('positions-beyond', 'a position of a float multiple that equals the number of elements', 'positions', replaced(positions=le(6, 2)),
                   patches={2: 0x7FC0}, **rounded)


def invalid_vectors():
    for cases in (table_cases, field_cases, block_cases):
        yield from cases()
