"""The invalid vectors: (rule, name, fault, file, options) for make_vectors.py."""
from vector_encoder import *

BF16 = col('x', 'bf16', [2])
RAGGED = col('x', 'u8', [None], nullable=True)
TWO_D = col('x', 'u8', [None, None], nullable=True)
WRONG = 0xDEADBEEF


def broken(column=BF16, samples=PAIR, file_header=None, chunk=None, enc=RAW, validity=RAW, shape=RAW, **commit):
    """Returns a file of one column and one chunk, with tweaks for the named regions."""
    f = Tsl([column], tweak=file_header)
    f.chunk(0, samples, enc, validity, shape, tweak=chunk)
    return f.commit(**commit)


def schema(tweak=None, *columns, **more):
    """Returns a file without samples, with a tweak for its schema."""
    return Tsl(list(columns or [BF16]), tweak=tweak, **more).commit()


def chunks(*tweaks, columns=1, commit=True, **more):
    """Returns a file with one chunk of two samples per tweak in each column."""
    f = Tsl([col(name, 'u8') for name in 'xyz'[:columns]])
    for i, tweak in enumerate(tweaks):
        for c in range(columns):
            f.chunk(c, [el('B', 2 * i + 1), el('B', 2 * i + 2)], tweak=tweak)
    return f.commit(**more) if commit else f


def twins(*foreign):
    """Returns a file of three chunks; the `foreign` ones come from another file with the same schema, options and layout."""
    f, other = chunks(None, None, None), Tsl([col('x', 'u8')])
    for i in range(3):
        other.chunk(0, [el('B', 2 * i + 101), el('B', 2 * i + 102)])
    for i in foreign:
        f.regions[1 + i] = other.regions[1 + i]
    return f


def text(*samples, dtype='utf8'):
    return broken(col('t', dtype, [None]), list(samples))


def poked(f, offset, value):
    f.pokes.append((offset, value))
    return f


def with_tail(f, tail):
    f.tail = tail
    return f


def regions_cases():
    yield 'R-2.1', 'header-crc-of-chunk', 'header_crc of a chunk', broken(chunk=put(header_crc=WRONG))
    yield 'R-2.1', 'header-crc-of-file-header', 'header_crc of the file header', broken(file_header=put(header_crc=WRONG))
    yield 'R-2.1', 'header-crc-of-page', 'header_crc of an index page', broken(page=put(header_crc=WRONG))
    yield 'R-2.1', 'header-crc-of-footer', 'header_crc of the only footer', broken(footer=put(header_crc=WRONG))
    yield 'R-2.1', 'header-crc-of-trailer', 'header_crc of the only trailer', broken(trailer=put(header_crc=WRONG))
    yield 'R-2.2', 'unknown-kind', 'a region of an unknown kind', broken(chunk=put(magic=b'TSLX'))
    yield 'R-2.2', 'no-file-header', 'the file does not begin with a file header', broken(file_header=put(magic=b'\x88TSL'))
    yield 'R-2.3', 'file-id-of-chunk', 'a chunk of another file', broken(chunk=put(file_id=bytes(12)))
    yield 'R-2.3', 'file-id-of-page', 'an index page of another file', broken(page=put(file_id=b'\x11' * 12))
    yield 'R-2.3', 'file-id-of-trailer', 'a trailer of another file', broken(trailer=put(file_id=b'\x11' * 12))
    yield 'R-2.4', 'offset-of-chunk', 'a chunk states another offset', chunks(None, put(offset=128), page=put({
        'entry 1: offset': 256}))
    yield 'R-2.4', 'offset-of-page', 'an index page states another offset', broken(page=put(offset=192))
    yield 'R-2.4', 'offset-of-file-header', 'the file header states offset 64', broken(file_header=put(offset=64))
    for name in ('chunk', 'page', 'footer'):
        f = Tsl([BF16])
        f.chunk(0, PAIR, shift=8 * (name == 'chunk'))
        f.pages(0, shift=8 * (name == 'page'))
        f.footer(shift=8 * (name == 'footer'))
        f.trailer()
        yield 'R-2.4', 'unaligned-' + name, 'the offset that leads to the %s is not a multiple of 64, and the header there agrees' % name, f, {
            'also': ['R-2.7']}
    yield 'R-2.5', 'body-beyond-file', 'a chunk whose body reaches beyond the file', broken(chunk=put(body_bytes=4096))
    yield 'R-2.5', 'body-of-chunk-over-limit', 'a chunk with body_bytes over the limit (and beyond the file)', broken(
        chunk=put(body_bytes=(1 << 32) - (1 << 16) + 1))
    yield 'R-2.5', 'schema-over-limit', 'a file header with body_bytes over the limit (and beyond the file)', broken(
        file_header=put(body_bytes=(1 << 24) + 1))
    f = chunks(None, commit=False)
    f.table(0, b'table', tweak=put(body_bytes=(1 << 24) + 1))
    yield 'R-2.5', 'table-over-limit', 'a table with body_bytes over the limit (and beyond the file)', f.commit()
    yield 'R-2.5', 'trailer-with-body', 'a trailer with a body', broken(trailer={'+body': bytes(64)}), {'also': ['R-7.7']}
    f = Tsl([col('x', 'u8', [0]), col('y', 'u8', [0])])
    for _ in range(127):
        f.chunk(0, [b''])
    f.chunk(1, [b''] * 127)
    yield 'R-2.5', 'page-over-limit', 'an index page of 127 entries', f.commit(per_page=127), {'also': ['R-6.1']}
    yield 'R-2.5', 'cut-in-footer', 'a file that ends within the body of its only footer', worked().commit(), {'cut': 500}
    yield 'R-2.5', 'short-file', 'a file that ends within the header of the file header', worked(), {'cut': 40}
    yield 'R-2.6', 'body-crc-of-chunk', 'body_crc of a chunk', broken(chunk=put(body_crc=WRONG))
    yield 'R-2.6', 'body-crc-of-file-header', 'body_crc of the file header', broken(file_header=put(body_crc=WRONG))
    yield 'R-2.6', 'body-crc-of-page', 'body_crc of an index page', broken(page=put(body_crc=WRONG))
    yield 'R-2.6', 'body-crc-of-footer', 'body_crc of the only footer', broken(footer=put(body_crc=WRONG))
    yield 'R-2.6', 'body-crc-of-trailer', 'body_crc of the only trailer, which has no body', broken(trailer=put(body_crc=WRONG))
    f = chunks(None, commit=False)
    f.table(0, b'table', tweak=put(body_crc=WRONG))
    yield 'R-2.6', 'body-crc-of-table', 'body_crc of a table', f.commit()
    f = chunks(None, commit=False)
    f.chunk(0, [b'\3', b'\4'], shift=64)
    yield 'R-2.7', 'chunk-misplaced', 'a chunk 64 bytes after its expected offset', f.commit()
    yield 'R-2.7', 'trailer-misplaced', 'a trailer 64 bytes after its expected offset', broken(shift=64)
    f = Tsl([BF16], A=4096)
    f.chunk(0, PAIR, shift=128 - 4032)
    yield 'R-2.7', 'body-not-aligned', 'alignment is 4096, but a chunk is at the next multiple of 64', f.commit()
    f = Tsl([BF16], A=4096)
    f.footer()
    f.trailer(shift=4096 - 64 - align(f.regions[-1].end, 64))
    yield 'R-2.7', 'trailer-at-place-of-chunk', 'alignment is 4096, and a trailer is where a chunk would be', f
    yield 'R-2.7', 'tail-zero', '64 zero bytes after the last trailer', with_tail(worked().commit(), bytes(64))
    yield 'R-2.7', 'tail-byte', 'one byte after the last trailer', with_tail(worked().commit(), b'\1')
    f = worked().commit()
    f.chunk(0, [ONE * 2] * 20)
    torn = f.bytes()[f.regions[-2].end:][:96]
    del f.regions[-1]
    yield 'R-2.7', 'tail-torn-chunk', 'a chunk that a killed writer did not complete', with_tail(f, torn)
    f, g = worked().commit(), worked().commit()
    f.chunk(0, [ONE * 2])
    g.chunk(0, [ONE * 2])
    torn = f.commit().bytes()[:-64][g.regions[-2].end:]
    del g.regions[-1]
    yield 'R-2.7', 'tail-commit-without-trailer', 'a commit that lacks only its trailer, after the last trailer', with_tail(g, torn)
    yield 'R-2.7', 'tail-damaged-trailer', 'a second commit with a wrong header_crc in its trailer', worked().commit().commit(
        trailer=put(header_crc=WRONG))
    yield 'R-2.7', 'tail-trailer-of-first-footer', 'a second trailer that points to the first footer, and so is not valid', worked(
    ).commit().commit(trailer=put(footer_offset=384))
    yield 'R-2.8', 'padding-after-file-header', 'padding after the file header', poked(worked().commit(), 100, b'\1')
    yield 'R-2.8', 'padding-after-chunk', 'the last byte of padding after a chunk', poked(worked().commit(), 255, b'\x80')
    yield 'R-2.8', 'padding-after-page', 'padding after an index page', poked(worked().commit(), 352, b'\1')
    yield 'R-2.8', 'padding-after-footer', 'padding after a footer', poked(worked().commit(), 600, b'\1')
    f = Tsl([BF16], A=4096)
    f.chunk(0, PAIR)
    yield 'R-2.8', 'padding-before-aligned-chunk', 'padding before a chunk of alignment 4096, not at a multiple of 64', poked(
        f.commit(), 2052, b'\1')
    f = Tsl([BF16], A=4096)
    f.chunk(0, PAIR)
    yield 'R-2.8', 'padding-where-region-could-be', 'padding before a chunk of alignment 4096, at the next multiple of 64', poked(
        f.commit(), 128, b'\1')
    f = Tsl([BF16], A=4096)
    f.chunk(0, PAIR)
    yield 'R-2.8', 'padding-spells-magic', 'padding before a chunk of alignment 4096 is the magic of a footer', poked(
        f.commit(), 128, b'TSLF')
    yield 'R-2.9', 'no-commit', 'a file of a file header only', Tsl([BF16])
    yield 'R-2.9', 'cut-before-page', 'a file that ends where the index page should begin', worked().commit(), {'cut': 256}
    f = Tsl([BF16])
    f.add('file header', f.regions[0].body.items(), 'again', alignment=64)
    f.chunk(0, PAIR)
    yield 'R-2.9', 'two-file-headers', 'a second file header', f.commit()
    f = Tsl([col('x', 'u8'), col('y', 'u8')])
    f.chunk(0, [b'\1'])
    f.pages(0)
    f.chunk(1, [b'\2'])
    yield 'R-2.9', 'chunk-after-page', 'a chunk after an index page', f.commit()
    f = chunks(None, commit=False)
    f.pages(0)
    f.table(0, b'late')
    yield 'R-2.9', 'table-after-page', 'a table after an index page', f.commit()
    f = chunks(None, commit=False)
    f.pages(0)
    f.footer()
    yield 'R-2.9', 'two-footers', 'two footers before a trailer', f.commit()
    f = worked()
    f.pages(0)
    f.footer_offset = f.regions[-1].offset
    f.trailer()
    yield 'R-2.9', 'trailer-without-footer', 'a trailer directly after an index page; there is no footer', f
    f = worked().commit(finished=False)
    f.trailer()
    yield 'R-2.9', 'trailer-after-trailer', 'a second trailer directly after the first; a complete commit follows', f.commit()
    yield 'R-2.10', 'file-header', 'previous of the file header is not 0', schema(put(previous=1))
    for name, which in (('chunk', 'a chunk'), ('page', 'an index page'), ('footer', 'the only footer'), ('trailer', 'the only trailer')):
        yield 'R-2.10', name, 'previous of %s is not the header_crc of the region before' % which, broken(**{name: put(previous=WRONG)})
    f = chunks(None, commit=False)
    f.table(0, b'table', tweak=put(previous=WRONG))
    yield 'R-2.10', 'table', 'previous of a table is not the header_crc of the region before', f.commit()
    yield 'R-2.10', 'trailer-of-first', 'previous of the first of two trailers is not the header_crc of its footer', broken(
        trailer=put(previous=WRONG), finished=False).commit()
    yield 'R-2.10', 'chunk-of-twin', 'the second of three chunks is from another file with the same schema and options', twins(1), {'also': ['R-6.2']}
    yield 'R-2.10', 'first-chunk-of-twin', 'the first of three chunks is from another file; the file header before it is the same in both', twins(0), {'also': ['R-6.2']}
    yield 'R-2.10', 'last-chunk-of-twin', 'the last of three chunks is from another file', twins(2), {'also': ['R-6.2']}
    f, other = worked().commit(), Tsl([BF16])
    other.chunk(0, [ONE * 2] * 2)
    other.commit()
    for g in (f, other):
        g.chunk(0, PAIR)
        g.commit()
    f.regions[5:] = other.regions[5:]
    yield 'R-2.10', 'commit-of-twin', 'the second commit was appended to another file: all of its offsets fit', f, {'also': ['R-7.4', 'R-7.9']}


def schema_cases():
    yield 'R-3.1', 'magic-tail', 'magic_tail after a transfer that changes line ends', schema(put(magic_tail=b'\x0A\x1A\x0A\0'))
    yield 'R-3.9', 'before-edition-1', 'edition 0: a file of a development version, whose file_id had 16 bytes', schema(
        put(edition=0, previous=0x1F1E1D1C)), {'also': ['R-2.10']}
    for n in (2, 1 << 31):
        yield 'R-3.9', 'edition-%d' % n, 'edition %d, and flags and an alignment that may have another meaning there' % n, schema(
            put(edition=n, alignment=128, incompat_flags=2)), {'also': ['R-3.2', 'R-9.1', 'R-9.2']}
    yield 'R-3.2', 'alignment-0', 'alignment 0', schema(put(alignment=0))
    yield 'R-3.2', 'alignment-128', 'alignment 128', schema(put(alignment=128))
    yield 'R-3.3', 'byte-left', 'a byte after the last field of the schema block', schema({'+one byte more': b'\0'})
    yield 'R-3.3', 'name-beyond', 'a name that reaches beyond the schema block', schema({'column 0: name_bytes': 100})
    yield 'R-3.3', 'column-missing', 'two columns stated, one recorded', schema(put(column_count=2))
    yield 'R-3.3', 'cut-in-field', 'the schema block ends within a field', schema({'column 0: metadata: entries': b'\0\0\0'})
    yield 'R-3.4', 'key-length-wraps', 'a length over the limit that wraps 32-bit sums (and is beyond the block)', schema(
        {'column 0: metadata: key 0 bytes': VARIES}, col('x', 'u8', meta=[('key', 'value')])), {'also': ['R-3.3']}
    for name, what, tweak in (('empty', 'an empty name', b''), ('long', 'a name of 1,025 bytes', b'n' * 1025),
                              ('not-utf8', 'a name that is not UTF-8', b'x\xE9'), ('overlong', 'a name with an overlong form', b'\xC1\xA1'),
                              ('surrogate', 'a name with a surrogate', b'\xED\xA0\x80'), ('nul', 'U+0000 in a name', b'x\0'),
                              ('newline', 'U+000A in a name', b'x\n'), ('delete', 'U+007F in a name', b'\x7F')):
        yield 'R-3.4', 'name-' + name, what, schema(None, col(tweak, 'u8'))
    yield 'R-3.4', 'name-twice', 'two columns of one name', schema(None, col('x', 'u8'), col('y', 'i8'), col('x', 'bf16'))
    for name, what, meta in (('order', 'keys that do not ascend', [('b', ''), ('a', '')]),
                             ('order-of-utf16', 'keys in the order of UTF-16, not of bytes', [('\U0001F600', ''), ('\uff5e', '')]),
                             ('twice', 'a key twice', [('a', '1'), ('a', '2')]), ('empty', 'an empty key', [('', 'v')]),
                             ('long', 'a key of 1,025 bytes', [('k' * 1025, 'v')]),
                             ('not-utf8', 'a key that is not UTF-8', [(b'\xFF', 'v')])):
        yield 'R-3.4', 'key-' + name, what + ' in the metadata of a column', schema(None, col('x', 'u8', meta=meta))
    yield 'R-3.4', 'file-key-order', 'keys that do not ascend in the metadata of the file', schema(meta=[('b', ''), ('a', '')])
    yield 'R-3.4', 'value-not-utf8', 'a value that is cut within a character', schema(meta=[('a', b'\xE2\x82')])
    yield 'R-3.4', 'value-over-limit', 'a value of 16 MiB and a byte (and beyond the block)', schema({
        'file metadata: value 0 bytes': (16 << 20) + 1}, meta=[('a', 'b')]), {'also': ['R-3.3']}
    yield 'R-3.4', 'entries-over-limit', '65,537 entries stated (and beyond the block)', schema({
        'file metadata: entries': 65537}), {'also': ['R-3.3']}
    yield 'R-3.5', 'dtype-0', 'dtype 0', schema({'column 0: dtype': 0})
    yield 'R-3.5', 'element-bytes-0', 'bf16 of 0 bytes', schema({'column 0: element_bytes': 0})
    yield 'R-3.5', 'element-bytes-4', 'bf16 of 4 bytes', schema({'column 0: element_bytes': 4})
    yield 'R-3.5', 'element-bytes-3', 'dtype 37, which is not assigned, of 3 bytes', schema({'column 0: element_bytes': 3}, col('x', 'unknown 37'))
    yield 'R-3.5', 'element-bytes-16', 'dtype 255, a private one, of 16 bytes', schema({'column 0: element_bytes': 16}, col('x', 'unknown 255'))
    yield 'R-3.5', 'complex64-of-4', 'a complex64 of 4 bytes, the element bytes of its values', schema({'column 0: element_bytes': 4}, col('x', 'complex64'))
    yield 'R-3.5', 'utf8-rank-0', 'a utf8 column of rank 0', schema(None, col('t', 'utf8'))
    yield 'R-3.5', 'bytes-rank-2', 'a bytes column of rank 2', schema(None, col('b', 'bytes', [None, None]))
    yield 'R-3.5', 'bytes-rows', 'a bytes column of rank 2 with one varying extent', schema(None, col('b', 'bytes', [None, 4]))
    yield 'R-3.5', 'bytes-fixed', 'a bytes column with a fixed extent', schema(None, col('b', 'bytes', [4]))
    yield 'R-3.6', 'flag', 'an unknown column flag', schema({'column 0: column_flags': 8})
    yield 'R-3.6', 'cast-reserved', 'the reserved field of a cast', schema({'column 0: cast reserved': 1}, col(
        'x', 'bf16', cast=('f32', 0, 0, 0, 0)))
    yield 'R-3.6', 'rank-17', 'rank 17', schema(None, col('x', 'u8', [1] * 17))
    yield 'R-3.6', 'columns-over-limit', '65,537 columns stated (and beyond the block)', schema(put(column_count=65537)), {
        'also': ['R-3.3']}
    yield 'R-3.6', 'sample-too-large', 'a sample of 2^32 bytes', schema(None, col('x', 'u8', [65536, 65536]))
    yield 'R-3.6', 'product-wraps', 'a product of extents that is 0 modulo 2^64', schema(None, col('x', 'u8', [1 << 31, 1 << 31, 4]))
    yield 'R-3.6', 'ragged-too-large', 'fixed extents of a ragged column over the limit', schema(None, col(
        'x', 'f64', [None, 1 << 29]))
    for name, what, dtype, source in (('on-i32', 'a cast on a column of i32', 'i32', 'f64'), ('on-u8', 'a cast of decimals on a column of u8', 'u8', 'decimal'),
                                      ('from-itself', 'a cast from f16 to f16', 'f16', 'f16'), ('from-f64', 'a cast from f64 to f64', 'f64', 'f64'),
                                      ('from-bool', 'a cast from bool', 'f32', 'bool')):
        yield 'R-3.7', 'cast-' + name, what, schema(None, col('x', dtype, cast=(source, 0, 0, 0, 0)))
    for n in (0, 2):
        yield 'R-3.7', 'rounding-%d' % n, 'rounding %d' % n, schema({'column 0: cast rounding': n}, col(
            'x', 'bf16', cast=('f32', 0, 0, 0, 0)))


def chunk_cases():
    big = (1 << 32) - (1 << 16)
    yield 'R-4.1', 'column', 'a chunk of a column that is not there', broken(chunk=put(column=1)), {'also': ['R-6.2']}
    yield 'R-4.1', 'no-samples', 'a chunk of 0 samples', chunks(
        put(sample_count=0, raw_bytes=0, values=b''), put(first_sample=0), page=put({'entry 1: first_sample': 0}))
    yield 'R-4.1', 'samples-over-limit', 'a chunk of 16,777,217 samples', broken(col('x', 'u8'), [b'\7'], chunk=put(
        sample_count=(1 << 24) + 1, raw_bytes=(1 << 24) + 1), enc=CONSTANT)
    yield 'R-4.1', 'raw-bytes-over-limit', 'raw_bytes of 2^32 - 2^16 + 1', broken(RAGGED, [b'\7'], enc=CONSTANT, chunk=put({
        'raw_bytes': big + 1, 'values.raw_bytes': big - 3, 'shape': le(big - 3, 4)}))
    yield 'R-4.1', 'flag', 'an unknown chunk flag', broken(chunk=put(chunk_flags=2))
    yield 'R-4.2', 'gap', 'a gap between two chunks', chunks(None, put(first_sample=3))
    yield 'R-4.2', 'overlap', 'two chunks that overlap', chunks(None, put(first_sample=1))
    yield 'R-4.2', 'first-not-0', 'the first chunk begins at 1', broken(chunk=put(first_sample=1))
    f = chunks(put(first_sample=2), put(first_sample=0), commit=False)
    f.pending[0].reverse()
    yield 'R-4.2', 'order', 'the later samples are first in the file; the index is in order of samples', f.commit()
    yield 'R-4.3', 'parts-for-nothing', 'parts is set, but the column is fixed and no sample is null', broken(
        col('x', 'u8', nullable=True), [None, b'\2'], chunk=put({
            'validity.stored_bytes': 0, 'validity.raw_bytes': 0, 'validity': None, 'validity padding': None, 'raw_bytes': 2}),
        footer={'column 0: null_count': 0})
    clear = dict.fromkeys(['%s.%s' % (p, f) for p in ('validity', 'shape', 'values') for f in (
        'stored_bytes', 'raw_bytes', 'encoding', 'reserved')] + ['part table reserved', 'shape', 'shape padding'])
    yield 'R-4.3', 'ragged-without-parts', 'parts is clear in a ragged column', broken(
        RAGGED, [b'ab', b'c'], chunk=put(clear, chunk_flags=0, raw_bytes=3))
    for name, what, tweak in (
            ('body-too-long', 'the body is longer than its parts', {'+more': bytes(64)}),
            ('body-too-short', 'the values reach beyond the body', {'values.stored_bytes': 4, 'values.raw_bytes': 4, 'raw_bytes': 13}),
            ('no-part-table', 'a body shorter than the part table', {**clear, 'raw_bytes': 3}),
            ('reserved-of-entry', 'the reserved bytes of an entry', {'shape.reserved': 1}),
            ('reserved-of-table', 'the reserved bytes of the part table', {'part table reserved': 1 << 120}),
            ('padding', 'padding between the parts', {'shape padding': b'\1' + bytes(51)}),
            ('encoding', 'the encoding of the chunk header differs from the encoding of the values', {'encoding': 2}),
            ('blocks', 'the encoding of the chunk header is in blocks, and the encoding of the values is not', {'encoding': 256}),
            ('raw-bytes', 'raw_bytes of the chunk header is not the sum', {'raw_bytes': 16})):
        yield 'R-4.4', name, what, broken(RAGGED, [b'ab', b'', b'c'], chunk=put(tweak))
    yield 'R-4.4', 'padding-of-validity', 'padding between validity and values', broken(
        col('x', 'u8', nullable=True), [None, b'\2'], chunk=put({'validity padding': b'\1' + bytes(62)}))
    yield 'R-4.4', 'absent-encoding', 'an absent part with an encoding', broken(RAGGED, [b'ab', b'', b'c'], chunk=put({
        'validity.encoding': 1}))
    yield 'R-4.4', 'shape-in-fixed', 'a shape in a column that is fixed', broken(
        col('x', 'u8', nullable=True), [None, b'\2'], chunk=put({
            'shape.stored_bytes': 8, 'shape.raw_bytes': 8, 'values': le(1, 4) + le(2, 4) + bytes(56) + b'\0\2', 'raw_bytes': 11}))
    yield 'R-4.5', 'values-too-long', 'a sample more in the values than sample_count', broken(chunk=put(
        raw_bytes=12, values=ONE * 6))
    yield 'R-4.5', 'values-too-short', 'an element less than there should be', broken(chunk=put(raw_bytes=6, values=ONE * 3))
    yield 'R-4.5', 'constant-too-long', 'a constant that stands for too many elements', broken(enc=CONSTANT, chunk=put(raw_bytes=10))
    yield 'R-4.5', 'ragged-values', 'the values of a ragged column are shorter than its ends say', broken(
        RAGGED, [b'ab', b'', b'c'], chunk=put({'values': b'ab', 'values.stored_bytes': 2, 'values.raw_bytes': 2, 'raw_bytes': 14}))
    yield 'R-4.5', 'shape', 'a shape of four values for three samples', broken(RAGGED, [b'ab', b'', b'c'], chunk=put({
        'shape': el('I', 2, 2, 3, 3), 'shape padding': bytes(48), 'shape.stored_bytes': 16, 'shape.raw_bytes': 16, 'raw_bytes': 19}))
    yield 'R-4.5', 'no-shape', 'no shape in a ragged column', broken(RAGGED, [b'', None], chunk=put({
        'shape': None, 'shape padding': None, 'shape.stored_bytes': 0, 'shape.raw_bytes': 0, 'raw_bytes': 1}))
    yield 'R-4.5', 'no-extents', 'a shape without the extents of two varying dimensions', broken(TWO_D, [((1, 2), b'ab')], chunk=put({
        'shape': el('I', 2), 'shape padding': bytes(60), 'shape.stored_bytes': 4, 'shape.raw_bytes': 4, 'raw_bytes': 6}))
    yield 'R-4.5', 'validity', 'a validity of two bytes for three samples', broken(RAGGED, [b'ab', None, b'c'], chunk=put({
        'validity': b'\5\0', 'validity padding': bytes(62), 'validity.stored_bytes': 2, 'validity.raw_bytes': 2, 'raw_bytes': 17}))
    yield 'R-4.6', 'not-nullable', 'a null in a column that is not nullable', broken(col('x', 'u8'), [None, b'\1'])
    yield 'R-4.6', 'no-null', 'a validity without a null', broken(RAGGED, [None, b'ab'], chunk=put(validity=b'\3'),
                                                                 footer={'column 0: null_count': 0})
    yield 'R-4.6', 'no-null-fixed', 'a validity without a null in a fixed column', broken(
        col('x', 'u8', nullable=True), [None, b'\2'], chunk=put(validity=b'\3'), footer={'column 0: null_count': 0})
    yield 'R-4.6', 'bits-after', 'a bit after the bits of the samples', broken(RAGGED, [None, b'ab'], chunk=put(validity=b'\6'))
    yield 'R-4.7', 'descends', 'ends descends', broken(RAGGED, [b'abc', b'd', b'ef'], chunk=put(shape=el('I', 4, 3, 6)))
    yield 'R-4.7', 'beyond-values', 'ends of sample 1 is beyond the values, and ends of the last sample is not', broken(
        RAGGED, [b'', b'', b'abc'], chunk=put(shape=el('I', 0, 100, 3)))
    yield 'R-4.7', 'product', 'ends does not agree with the extents', broken(TWO_D, [((2, 1), b'ab'), ((1, 2), b'cd')], chunk=put(
        shape=el('I', 2, 4, 2, 1, 1, 3)))
    yield 'R-4.7', 'product-wraps', 'extents whose product is 0 modulo 2^32', broken(TWO_D, [((0, 1), b'')], chunk=put(
        shape=el('I', 0, 65536, 65536)))
    yield 'R-4.7', 'extent-over-limit', 'a varying extent of 2^32 - 1', broken(TWO_D, [((0, VARIES), b'')])
    no_elements = col('x', 'u8', [None, 0])
    yield 'R-4.7', 'extent-over-limit-of-one', 'an extent of 2^32 - 1, the only one that varies: ends[0] is 2^32 - 1', broken(no_elements, [((VARIES,), b'')])
    yield 'R-4.7', 'extent-over-limit-of-last', 'extents of 0 and 2^32 - 1, in ends that ascend', broken(no_elements, [((0,), b''), ((VARIES,), b'')])
    yield 'R-4.8', 'fixed', 'a null sample that is not zero', broken(col('x', 'u8', nullable=True), [None, b'\2'], chunk=put(values=b'\1\2'))
    yield 'R-4.8', 'ragged', 'a null sample that is not empty', broken(RAGGED, [b'a', None, b'cd'], chunk=put(
        shape=el('I', 1, 2, 3)))
    yield 'R-4.8', 'extents', 'a null sample with an extent that is not 0', broken(TWO_D, [None, ((1, 1), b'x')], chunk=put(
        shape=el('I', 0, 1, 0, 1, 3, 1)))
    yield 'R-4.9', 'bool', 'a bool that is 2', broken(col('x', 'bool', [2]), [b'\0\1', b'\2\0'])
    yield 'R-4.9', 'bool-constant', 'a bool that is 255, encoded as a constant', broken(col('x', 'bool'), [b'\xFF'] * 3, enc=CONSTANT)
    yield 'R-4.9', 'utf8', 'a text that is not UTF-8', text('ok', b'caf\xE9')
    yield 'R-4.9', 'utf8-surrogate', 'a text with a surrogate', text(b'\xED\xB0\x80')
    yield 'R-4.9', 'utf8-too-high', 'a text with a code point over U+10FFFF', text(b'\xF4\x90\x80\x80')
    yield 'R-4.9', 'utf8-boundary', 'a boundary of samples within a code point', text(b'\xE2\x82', b'\xAC')
    for dtype, first in (('f6_e2m3', b'\x40'), ('f6_e3m2', b'\x80'), ('f4_e2m1', b'\x10'), ('i4', b'\xFF'), ('u4', b'\x80')):
        yield 'R-4.13', dtype, 'a bit above the bits of an element of %s' % dtype, broken(col('x', dtype, [2]), [b'\0\1', b'\7' + first])
    yield 'R-4.13', 'constant', 'an i4 of 0xF8, encoded as a constant', broken(col('x', 'i4'), [b'\xF8'] * 3, enc=CONSTANT)
    f = broken(col('x', 'u8', [(1 << 25) + 1]), [b'\0', b'\0'], enc=CONSTANT, chunk=put(raw_bytes=(1 << 26) + 2))
    yield 'R-4.10', 'two-large-samples', 'two samples of more than 32 MiB in a chunk', f
    for name, what, tweaks in (('column', 'a table of a column that is not there', [put(column=1)]),
                               ('reserved', 'a reserved field of a table', [put(reserved=1)]),
                               ('reserved-2', 'the last reserved field of a table', [put({'reserved 2': 1 << 63})]),
                               ('first-not-0', 'the first table is number 1', [put(table=1)]),
                               ('twice', 'two tables of one number', [None, put(table=0)]),
                               ('gap', 'a number of a table left out', [None, put(table=2)])):
        f = chunks(None, commit=False)
        for tweak in tweaks:
            f.table(0, b'bytes of a table', tweak)
        for i, (column, number, r) in enumerate(f.tables):
            f.tables[i] = r.get('column'), r.get('table'), r
        yield 'R-4.11', name, what, f.commit()


def encoding_cases():
    # the footer lists another encoding, so that opening the file does not show the unknown one
    for name, what, encoding in (('unknown', 'encoding 8', 8), ('unknown-127', 'encoding 127', 127), ('private', 'encoding 255, a private one', 255),
                                 ('unknown-in-blocks', 'encoding 8 in blocks', 256 | 8), ('reserved-bit', 'bit 9 of the encoding', 512),
                                 ('reserved-bit-15', 'bit 15 of the encoding', 1 << 15), ('reserved-bit-in-blocks', 'bit 9 of the encoding, and blocks', 512 | 256)):
        yield 'R-5.1', name, 'a chunk with %s, which the footer does not list' % what, broken(
            chunk=put(encoding=encoding), footer={'column 0: encoding 0: id': 0}), {'also': ['R-7.4']}
    yield 'R-5.1', 'constant-in-blocks', 'a constant in blocks, which the footer does not list', broken(
        BF16, [ONE * 2] * 2, enc=CONSTANT, chunk=put(encoding=257), footer={'column 0: encoding 0: id': 1}), {'also': ['R-7.4']}
    yield 'R-5.1', 'unknown-part', 'a shape of encoding 128, a private one, which the footer does not list', broken(
        RAGGED, [b'ab'], chunk={'shape.encoding': 128}, footer={'column 0: encoding_count': 1, **{
            'column 0: encoding 1: ' + k: None for k in ('id', 'reserved', 'chunks')}}), {'also': ['R-7.4']}
    f = broken(col('x', 'u8', [0]), [b''], enc=RAW, chunk=put(values=le(VARIES, 4) + frame(b''), encoding=2))
    yield 'R-5.2', 'empty-frame', 'values of no bytes that are not raw', f
    for name in ('constant', 'bitshuffle-zstd', 'bins'):
        yield 'R-5.2', 'empty-' + name, 'values of no bytes that are ' + name, broken(
            col('x', 'u8', [0]), [b''], chunk=put(encoding=IDS[name]))
    yield 'R-5.2', 'raw-byte', 'raw values of no bytes that have a byte stored', broken(
        col('x', 'u8', [0]), [b''], chunk=put(values=b'\0')), {'also': ['R-5.3']}
    yield 'R-5.3', 'too-long', 'raw values longer than decoded', broken(chunk=put(values=ONE * 5))
    yield 'R-5.3', 'too-short', 'raw values shorter than decoded', broken(chunk=put(values=ONE * 3))
    same = [ONE * 2] * 2
    yield 'R-5.4', 'two-elements', 'a constant of two elements', broken(BF16, same, enc=CONSTANT, chunk=put(values=ONE * 2))
    yield 'R-5.4', 'part-of-element', 'a constant of half an element', broken(BF16, same, enc=CONSTANT, chunk=put(values=b'\0'))
    yield 'R-5.4', 'no-element', 'a constant of no element', broken(BF16, same, enc=CONSTANT, chunk=put(values=b''))
    skip, block = b'\x50\x2A\x4D\x18' + le(3, 4) + b'abc', le(7 << 3 | 1, 3) + b'abcdefg'
    for name, what, stored in (
            ('two-frames', 'two frames', frame(b'abc') + frame(b'defg')),
            ('frame-twice', 'a complete frame, and one more', frame(b'abcdefg') + frame(b'')),
            ('skippable-before', 'a skippable frame before the frame', skip + frame(b'abcdefg')),
            ('skippable-after', 'a skippable frame after the frame', frame(b'abcdefg') + skip),
            ('skippable', 'a skippable frame only', skip),
            ('trailing-byte', 'a byte after the frame', frame(b'abcdefg') + b'\0'),
            ('nothing', 'no frame', b''),
            ('no-content-size', 'a frame without content size', MAGIC + b'\x00\x00' + block),
            ('content-size-short', 'the content size is smaller than the content', MAGIC + b'\x20\x06' + block),
            ('content-size-long', 'the content size is larger than the content', MAGIC + b'\x20\x08' + block),
            ('other-length', 'a good frame of another length than decoded', frame(b'abcdef')),
            ('zstd-dictionary', 'a frame that names a Zstandard dictionary', MAGIC + b'\x21\x01\x07' + block),
            ('window', 'a window of 9 MiB', MAGIC + b'\x80\x69' + le(7, 4) + block),
            ('magic', 'another magic number', b'\x27' + frame(b'abcdefg')[1:]),
            ('reserved-bit', 'the reserved bit of the frame header', MAGIC + b'\x28\x07' + block),
            ('block-type', 'a block of the reserved type', MAGIC + b'\x20\x07' + le(7 << 3 | 7, 3) + b'abcdefg'),
            ('cut', 'a frame that is cut', frame(b'abcdefg')[:-1]),
            ('no-last-block', 'a frame without a last block', MAGIC + b'\x20\x07' + le(7 << 3, 3) + b'abcdefg')):
        f = broken(col('x', 'u8', [7]), [b'abcdefg'], enc=zstd(stored))
        yield 'R-5.5', name, what, f, {'also': ['R-4.5'] if name == 'other-length' else []}
    poem = col('t', 'utf8', [None])
    damaged = POEM_FRAME[:40] + bytes([POEM_FRAME[40] ^ 0x10]) + POEM_FRAME[41:]
    yield 'R-5.5', 'checksum', 'a wrong content checksum', broken(poem, [POEM], enc=zstd(POEM_FRAME[:-1] + b'\0'))
    yield 'R-5.5', 'corrupt-block', 'a flipped bit in a compressed block', broken(poem, [POEM], enc=zstd(damaged))
    yield 'R-5.5', 'shuffled-trailing-byte', 'a byte after the frame of bitshuffle-zstd', broken(
        enc=shuffled(frame(bitshuffle(b''.join(PAIR), 2)) + b'\0'))
    yield 'R-5.5', 'shape-two-frames', 'a shape of two frames', broken(
        RAGGED, [b'a', b'b'], shape=zstd(frame(el('I', 1)) + frame(el('I', 2))))
    yield 'R-4.5', 'part-of-element', 'bitshuffle-zstd of one element and a half', broken(
        col('x', 'u16'), [b'\1\0', b'\2\0'], enc=shuffled(frame(b'\1\0\2')), chunk=put(raw_bytes=3))


CONTENT = 181  # length of the content of ZSTD_DICTIONARY, which follows three offsets of 4 bytes


def with_offset(k, value):
    at = len(ZSTD_DICTIONARY) - CONTENT - 12 + 4 * k
    return ZSTD_DICTIONARY[:at] + le(value, 4) + ZSTD_DICTIONARY[at + 4:]


def zstd_dictionary_cases():
    for name, what, table, stored in (
            ('short', 'three stored bytes', ZSTD_DICTIONARY, ('zstd', lambda data, w: {'table': bytes(3)})),
            ('nothing', 'no stored bytes', ZSTD_DICTIONARY, ('zstd', lambda data, w: {})),
            ('no-table', 'table 1 of one table', ZSTD_DICTIONARY, with_dictionary(1)),
            ('no-table-huge', 'table 2^32 - 2', ZSTD_DICTIONARY, with_dictionary(VARIES - 1)),
            ('magic', 'a table with another magic number', b'\x38' + ZSTD_DICTIONARY[1:], with_dictionary(0)),
            ('raw-content', 'a table of content alone', ZSTD_DICTIONARY_TEXT, with_dictionary(0)),
            ('empty-table', 'an empty table', b'', with_dictionary(0)),
            ('magic-alone', 'a table of a magic number and nothing else', ZSTD_DICTIONARY[:4], with_dictionary(0)),
            ('entropy', 'a Zstandard dictionary with malformed entropy tables', ZSTD_DICTIONARY[:8] + b'\xFF' * 32 + ZSTD_DICTIONARY[40:], with_dictionary(0)),
            ('cut', 'a Zstandard dictionary that is cut', ZSTD_DICTIONARY[:80], with_dictionary(0)),
            *(('offset-%d-%s' % (k, name), 'offset %d of a Zstandard dictionary is %s' % (k, what), with_offset(k, value), with_dictionary(0))
              for k, name, what, value in ((0, '0', '0', 0), (1, '0', '0', 0), (2, '0', '0', 0), (0, 'beyond', 'one more than the length of the content', CONTENT + 1),
                                           (2, 'beyond', 'one more than the length of the content', CONTENT + 1), (2, 'max', '2^32 - 1', VARIES))),
            ('no-content', 'a Zstandard dictionary without content', ZSTD_DICTIONARY[:-CONTENT], with_dictionary(0))):
        f = Tsl([col('t', 'utf8', [None])])
        f.table(0, table)
        f.chunk(0, [ZSTD_DICTIONARY_TEXT], stored)
        yield 'R-5.13', name, what, f.commit()
    f = Tsl([col('t', 'utf8', [None]), col('u', 'utf8', [None])])
    f.table(1, ZSTD_DICTIONARY)
    f.chunk(0, [ZSTD_DICTIONARY_TEXT], with_dictionary(0))
    f.chunk(1, [ZSTD_DICTIONARY_TEXT])
    yield 'R-5.13', 'of-another-column', 'the table of another column', f.commit()
    f = Tsl([col('t', 'utf8', [None])])
    f.chunk(0, [ZSTD_DICTIONARY_TEXT], with_dictionary(0))
    f.table(0, ZSTD_DICTIONARY)
    yield 'R-5.13', 'table-after', 'a table after the chunk', f.commit()
    for name, what, literal in (
            ('zstd-dictionary-frame-twice', 'two frames after the number of a table', ZSTD_DICTIONARY_FRAME * 2),
            ('zstd-dictionary-frame-names-one', 'a frame that names its Zstandard dictionary', MAGIC + b'\x23' + ZSTD_DICTIONARY[4:8] + le(len(ZSTD_DICTIONARY_TEXT), 1)
             + le(len(ZSTD_DICTIONARY_TEXT) << 3 | 1, 3) + ZSTD_DICTIONARY_TEXT),
            ('zstd-dictionary-other', 'a frame for another Zstandard dictionary', ZSTD_DICTIONARY_FRAME),
            ('zstd-dictionary-not-named', 'a frame that needs a Zstandard dictionary, and no table', ZSTD_DICTIONARY_FRAME)):
        f = Tsl([col('t', 'utf8', [None])])
        f.table(0, ZSTD_DICTIONARY if name != 'zstd-dictionary-other' else ZSTD_DICTIONARY[:-80] + bytes(range(32, 112)))
        f.chunk(0, [ZSTD_DICTIONARY_TEXT], with_dictionary(VARIES if name == 'zstd-dictionary-not-named' else 0, literal))
        yield 'R-5.5', name, what, f.commit()


def named(enc, data, dtype, name):
    """Returns the full name of a section of the tables or of the only block."""
    sections = enc[1](data, DTYPES[dtype][1])
    return 'values: ' + (name if name in sections else 'block 0: ' + name)


def tiers(enc, data, tweak, dtype='u8', **more):
    """Returns a file of one chunk of one sample, with the named sections of its values tweaked."""
    column = col('x', dtype, [len(data) // DTYPES[dtype][1]])
    tweak = {k: v.ljust(29, b'\0') if k == 'ranks' and v else v for k, v in tweak.items()}
    return broken(column, [data], enc=enc, chunk={'+values: more' if k == '+' else named(enc, data, dtype, k): v for k, v in tweak.items()}, **more)


def shortened(enc, data, size, dtype='u8'):
    """Returns the tweak that leaves only the first `size` stored bytes."""
    sections = enc[1](data, DTYPES[dtype][1])
    return {**{k.replace('block 0: ', ''): None for k in sections}, 'transform': b''.join(sections.values())[:size]}


def tier_cases():
    e, r = exponent_tiers(), residual_tiers()
    delta, turned = residual_tiers('delta', restart=2, stride=1), exponent_tiers('rotate')
    few, some, sixes = bytes.fromhex('0707AA0905'), bytes.fromhex('00000100020007000400'), b'\6' * 5
    planes, byte_planes = (planes_zstd(split, lambda j, s: (0, s)) for split in (1, 8))
    twelve = el('H', *range(12))

    for name, what, enc, tweak in (
            ('transform-4', 'separable, which is for bins only, and without restart and stride', planes, {'transform': 4}),
            ('transform-255', 'an unknown transform', byte_planes, {'transform': 255}),
            ('float', 'a flag of earlier versions: floats', delta, {'reserved 0': 1}),
            ('reserved-1', 'the first reserved field', delta, {'reserved 0': 0x80}),
            ('reserved', 'a weight without prediction', planes, {'weights': 0x100}),
            ('reserved-of-tiers', 'a weight without prediction, in exponent-tiers', e, {'weights': 1}),
            ('weights-of-delta', 'weights with delta', delta, {'weights': 0x0405}),
            ('separable', 'separable in planes-zstd', planes_zstd(
                8, lambda j, s: (0, s), 'separable', restart=9, stride=2, weights=(5, 4)), {}),
            ('reserved-2', 'the last reserved field', r, {'reserved 2': 1}),
            ('restart-0', 'delta with restart 0', delta, {'restart': 0}),
            ('stride-0', 'delta with stride 0', delta, {'stride': 0}),
            ('restart-and-stride-0', 'lorenzo with restart and stride 0', planes_zstd(
                8, lambda j, s: (0, s), 'lorenzo', restart=9, stride=2), {'restart': 0, 'stride': 0}),
            ('restart-of-none', 'restart without prediction', planes, {'restart': 1}),
            ('restart-of-rotate', 'restart with rotate', turned, {'restart': 5}),
            ('stride-of-none', 'stride without prediction', e, {'stride': 1})):
        yield 'R-5.7', name, what, tiers(enc, few, tweak)
    for enc, rule in ((e, 'R-5.10'), (r, 'R-5.11')):
        yield 'R-5.7', 'transform-4-of-' + enc[0], 'separable, without restart and stride, in ' + enc[0], tiers(enc, few, {'transform': 4}), {'also': [rule]}
    for enc in (e, r, byte_planes):
        yield 'R-4.5', 'part-of-element-' + enc[0], enc[0] + ' of one element and a half', broken(
            col('x', 'u16'), [b'\1\0'], enc=enc, chunk=put(raw_bytes=3))

    for enc in (e, r):
        yield 'R-5.8', 'width-1-0-' + enc[0], 'width_1 is 0: each symbol has its code in tier 2', tiers(enc, sixes, {
            'width_1': 0, 'tier 1': b'', 'count_2': 5, 'count_3': 0, 'count_4': 0, 'tier 2': bytes(1), 'tier 3': b'', 'literals': b'',
            'ranks': b'\6' if enc is e else b'\3'})
        yield 'R-5.8', 'reserved-of-' + enc[0], 'the reserved field of a block of ' + enc[0], tiers(enc, sixes, {'reserved': 1})
        yield 'R-5.8', 'padding-of-' + enc[0], 'the padding before tier 2 of ' + enc[0], tiers(enc, sixes, {'padding 2': bytes(6) + b'\x80'})
    yield 'R-5.8', 'width-1-4', 'width_1 is 4', tiers(exponent_tiers(widths=(4, 1, 1)), few, {})
    for k, widths in ((2, (1, 4, 1)), (3, (1, 1, 5))):
        yield 'R-5.8', 'width-%d-%d' % (k, widths[k - 1]), 'width_%d is too large' % k, tiers(exponent_tiers(widths=widths), few, {})
        yield 'R-5.8', 'width-%d-0' % k, 'width_%d is 0, of a tier without codes' % k, tiers(e, sixes, {'width_%d' % k: 0})
        yield 'R-5.8', 'width-%d-255' % k, 'width_%d is 255, of a tier without codes' % k, tiers(r, sixes, {'width_%d' % k: 255})
    for k, codes in ((1, 0b11100), (2, 0b011), (3, 0b01)):
        yield 'R-5.8', 'filling-of-tier-%d' % k, 'a code after the codes of tier %d' % k, tiers(e, few, {'tier %d' % k: codes | 1 << (5, 3, 2)[k - 1]})
        yield 'R-5.8', 'last-filling-of-tier-%d' % k, 'the last padding code of tier %d' % k, tiers(e, few, {'tier %d' % k: codes | 0x80})
    yield 'R-5.8', 'filling-of-second-group', 'a padding code of the second group, its highest bit only', tiers(
        exponent_tiers(widths=(3, 1, 1)), sixes * 14, {'tier 1': bytes(24 + 2) + b'\x40'})
    yield 'R-5.8', 'filling-of-residuals', 'a code after the codes of tier 1 in residual-tiers', tiers(r, sixes, {'tier 1': 32})
    yield 'R-5.8', 'rank-not-reached', 'rank 3 where the widths are 1, 1, 1', tiers(e, few, {'ranks': b'\7\5\x09\x08'})
    yield 'R-5.8', 'rank-not-reached-28', 'the last rank where the widths are 3, 3, 3', tiers(exponent_tiers(widths=(3, 3, 3)), sixes, {
        'ranks': b'\6' + bytes(27) + b'\6'})
    yield 'R-5.8', 'rank-not-reached-21', 'rank 21 where the widths are 3, 3, 3, in residual-tiers', tiers(
        residual_tiers(widths=(3, 3, 3)), sixes, {'ranks': b'\3' + bytes(20) + b'\1'})

    for name, what, tweak in (
            ('count-2-less', 'count_2 is one less than the escapes; the last code of tier 2 is zero', {'count_2': 2, 'tier 2': 0b11}),
            ('count-2-more', 'count_2 is one more than the escapes', {'count_2': 4}),
            ('count-2-over-n', 'count_2 is more than the symbols', {'count_2': 8}),
            ('count-3-less', 'count_3 is one less than the escapes; the last code of tier 3 is zero', {'count_3': 1, 'tier 3': 0b1}),
            ('count-3-more', 'count_3 is one more than the escapes', {'count_3': 3}),
            ('count-4-less', 'a literal is missing', {'count_4': 0, 'literals': b''}),
            ('count-4-more', 'a literal too many', {'count_4': 2, 'literals': b'\xAA\xBB'})):
        yield 'R-5.9', name, what, tiers(e, few, tweak)
    for k in (2, 3, 4):
        yield 'R-5.17', 'count-%d-most' % k, 'count_%d of 65,535, beyond the stored bytes' % k, tiers(e, few, {'count_%d' % k: 65535}), {
            'also': ['R-5.9']}
        yield 'R-5.17', 'count-%d-most-of-residuals' % k, 'count_%d of 65,535, beyond the stored bytes, in residual-tiers' % k, tiers(
            r, some, {'count_%d' % k: 65535}, 'u16'), {'also': ['R-5.9']}
    yield 'R-5.9', 'count-2-of-residuals', 'count_2 is one more than the escapes in residual-tiers', tiers(r, some, {'count_2': 4}, 'u16')
    yield 'R-5.9', 'count-4-of-residuals', 'a literal too many in residual-tiers', tiers(r, some, {'count_4': 2, 'literals': b'\2\0'}, 'u16')

    for enc, rule, data, dtype, sizes in ((e, 'R-5.17', few, 'u8', (0, 10, 40, 47)), (r, 'R-5.17', some, 'u16', (0, 10, 40, 47)),
                                          (byte_planes, 'R-5.12', twelve, 'u16', (0, 10, 23))):
        for size in sizes:
            yield rule, 'cut-%d-of-%s' % (size, enc[0]), 'the first %d stored bytes of %s, which end within its tables' % (size, enc[0]), tiers(
                enc, data, shortened(enc, data, size, dtype), dtype)
    for enc, data, dtype in ((e, few, 'u8'), (r, some, 'u16')):
        name = '-of-' + enc[0]
        yield 'R-5.17', 'byte-left' + name, 'a byte after the last', tiers(enc, data, {'+': b'\0'}, dtype)
        yield 'R-5.17', 'no-block' + name, 'stored bytes that end after the tables', tiers(enc, data, shortened(enc, data, 48, dtype), dtype)
        yield 'R-5.17', 'cut-in-counts' + name, 'stored bytes that end within the counts', tiers(enc, data, shortened(enc, data, 55, dtype), dtype)
        yield 'R-5.17', 'no-tiers' + name, 'stored bytes that end after the counts', tiers(enc, data, shortened(enc, data, 56, dtype), dtype)
    yield 'R-5.12', 'byte-left', 'a byte after the last', tiers(byte_planes, twelve, {'+': b'\0'}, 'u16')
    for name, what, transform in (('delta', 'delta in exponent-tiers', 2), ('lorenzo', 'lorenzo in exponent-tiers', 3)):
        yield 'R-5.10', name, what, tiers(e, few, {'transform': transform, 'restart': 1, 'stride': 1})
    yield 'R-5.17', 'cut-in-low-bytes', 'stored bytes that end within the low bytes', tiers(e, twelve, shortened(e, twelve, 58, 'u16'), 'u16')
    yield 'R-5.17', 'cut-in-tier', 'stored bytes that end within tier 1', tiers(e, sixes * 13, {'tier 1': bytes(8)})
    yield 'R-5.17', 'no-literals', 'the literals are missing, but not in the count', tiers(e, few, {'literals': b''})
    yield 'R-5.17', 'word-cut', 'a last group of 9 codes whose word is cut to a byte', tiers(e, sixes + sixes[1:], {'tier 1': bytes(1)})

    yield 'R-5.11', 'rotate', 'rotate in residual-tiers', tiers(r, some, {'transform': 1}, 'u16')
    ones = (1 << 40) - 1
    yield 'R-5.11', 'symbol', 'the symbol 9 of bytes', tiers(r, sixes, {'ranks': b'\x09', 'extra bits': ones.to_bytes(5, 'little')})
    yield 'R-5.11', 'symbol-255', 'the symbol 255 of u16', tiers(r, twelve[:2], {'ranks': b'\xFF', 'extra bits': b'\xFF' * 31 + b'\x3F'}, 'u16')
    yield 'R-5.11', 'symbol-65', 'the symbol 65 of u64', tiers(r, bytes(7) + b'\xFF', {'ranks': b'\x41', 'extra bits': bytes(8)}, 'u64')
    yield 'R-5.11', 'literal', 'a literal 17 of u16', tiers(residual_tiers(ranks=b'\0\0\0'), b'\0\x80', {
        'literals': b'\x11', 'extra bits': b'\1\0'}, 'u16')
    yield 'R-5.11', 'unused-rank', 'an unused rank of 9, of bytes', tiers(r, sixes, {'ranks': b'\3\x09'})
    yield 'R-5.11', 'filling-bit', 'a bit after the extra bits', tiers(r, some, {'extra bits': 0x2A}, 'u16')
    yield 'R-5.11', 'last-filling-bit', 'the last bit after the extra bits', tiers(r, some, {'extra bits': 0x8A}, 'u16')
    yield 'R-5.17', 'no-extra-bits', 'the extra bits are missing', tiers(r, some, {'extra bits': b''}, 'u16')
    yield 'R-5.17', 'extra-byte', 'a byte of extra bits too many, where there are none', tiers(r, b'\0\1', {'+': b'\0'})
    yield 'R-5.17', 'extra-words', 'extra bits that fill words of 8 bytes, as in earlier versions', tiers(r, some, {'+': bytes(7)}, 'u16')
    yield 'R-5.17', 'extra-byte-missing', 'a byte of extra bits too few', tiers(r, b'\2' * 65, {'extra bits': bytes(8)})
    yield 'R-5.17', 'no-literals-of-residuals', 'the literals are missing, but not in the count', tiers(r, some, shortened(
        r, some, 48 + 8 + 17, 'u16'), 'u16')

    for name, what, enc, tweak in (
            ('split-0', 'split 0', byte_planes, {'split': 0}), ('split-2', 'split 2', planes, {'split': 2}),
            ('reserved', 'the reserved bytes after split', planes, {'reserved 3': 1 << 48}),
            ('reserved-of-stream', 'the reserved bytes of the first stream', byte_planes, {'reserved of stream 0': 1}),
            ('reserved-of-last-stream', 'the reserved bytes of the last stream', planes, {'reserved of stream 15': 1 << 16}),
            ('packing-3', 'packing 3', byte_planes, {'packing 1': 3}), ('packing-255', 'packing 255', planes, {'packing 9': 255}),
            ('raw-short', 'a raw stream of a byte too few', byte_planes, {'stored_bytes 1': 11, 'stream 1': bytes(11)}),
            ('raw-long', 'a raw stream of a byte too many', byte_planes, {'stored_bytes 1': 13, 'stream 1': bytes(13)}),
            ('raw-long-plane', 'a raw bit plane of a byte too many', planes, {'stored_bytes 15': 2, 'stream 15': bytes(2)}),
            ('raw-huge', 'a raw stream of 2^32 - 1 bytes', byte_planes, {'stored_bytes 1': VARIES}),
            ('constant-2', 'a constant stream of 2 bytes', byte_planes, {'packing 1': 1, 'stored_bytes 1': 2, 'stream 1': bytes(2)}),
            ('constant-12', 'a constant stream that is stored whole', byte_planes, {'packing 1': 1}),
            ('constant-0', 'a constant stream of no stored bytes', byte_planes, {'packing 1': 1, 'stored_bytes 1': 0, 'stream 1': b''}),
            ('no-tail', 'bit planes of 12 elements without tail', planes, {'tail': b''}),
            ('tail-cut', 'a tail of a byte too few', planes, {'tail': bytes(7)}),
            ('tail-long', 'a tail of an element too many', planes, {'tail': bytes(10)}),
            ('tail-of-byte-planes', 'byte planes with a tail', byte_planes, {'tail': twelve[16:]}),
            ('stored-bytes-less', 'the stored bytes of a stream are of another length', byte_planes, {'stored_bytes 0': 11})):
        yield 'R-5.12', name, what, tiers(enc, twelve, tweak, 'u16')
    frames = planes_zstd(8, lambda j, s: (2, frame(s)))
    yield 'R-5.12', 'cut-in-split', 'stored bytes that end after split', tiers(planes, twelve, shortened(planes, twelve, 17, 'u16'), 'u16')
    yield 'R-5.12', 'cut-in-streams', 'stored bytes that end within the list of streams', tiers(
        planes, twelve, shortened(planes, twelve, 100, 'u16'), 'u16')
    yield 'R-5.12', 'cut-in-stream', 'stored bytes that end within the last stream', tiers(byte_planes, twelve, {'stream 1': bytes(11)}, 'u16')
    for name, what, packing, stored in (('constant', 'constant', 1, b'\0'), ('zstd', 'zstd', 2, frame(b'')), ('raw-byte', 'raw with a byte', 0, b'\0')):
        yield 'R-5.12', 'empty-' + name, 'the first stream of 7 elements has no bytes and is ' + what, tiers(planes, twelve[:14], {
            'packing 0': packing, 'stored_bytes 0': len(stored), 'stream 0': stored}, 'u16')
    yield 'R-5.12', 'frames-wrap', 'stored bytes of two frames that add up modulo 2^32 only', tiers(frames, twelve, {
        'stored_bytes 0': VARIES, 'stored_bytes 1': 43}, 'u16'), {'also': ['R-5.5']}

    for name, what, stored in (
            ('content-size', 'of 11 bytes', frame(bytes(11))), ('content-size-long', 'of 13 bytes', frame(bytes(13))),
            ('trailing-byte', 'and a byte', frame(bytes(12)) + b'\0'), ('two-frames', 'and another', frame(bytes(12)) + frame(b'')),
            ('cut', 'that is cut', frame(bytes(12))[:-1]), ('nothing', 'of no bytes', b''),
            ('no-content-size', 'without content size', MAGIC + b'\x00\x00' + le(12 << 3 | 1, 3) + bytes(12)),
            ('zstd-dictionary', 'that names a Zstandard dictionary', MAGIC + b'\x21\x01\x0C' + le(12 << 3 | 1, 3) + bytes(12))):
        yield 'R-5.5', 'stream-' + name, 'a stream of planes-zstd of 12 bytes that is a frame ' + what, tiers(frames, twelve, {
            'stored_bytes 1': len(stored), 'stream 1': stored}, 'u16')
    for enc in (e, r, byte_planes):
        name, sections = enc
        yield 'R-5.2', 'empty-' + name, 'values of no bytes that are ' + name, broken(col('x', 'u8', [0]), [b''], chunk=put(
            encoding=IDS[name], values=b''.join(sections(b'', 1).values())))
    yield 'R-4.9', 'bool-residuals', 'a bool that is 2, of residual-tiers', broken(col('x', 'bool'), [b'\0', b'\1', b'\2'], enc=r)


def index_cases():
    yield 'R-6.1', 'column', 'an index page of a column that is not there', broken(page=put(column=1)), {'also': ['R-6.2', 'R-7.4']}
    f = Tsl([BF16])
    f.add('index page', [], 'of column 0', tweak=put(entry_count=0), column=0)
    yield 'R-6.1', 'no-entries', 'an index page without entries', f.commit()
    yield 'R-6.1', 'entries-127', 'entry_count 127 with one entry', broken(page=put(entry_count=127))
    yield 'R-6.1', 'body-bytes', 'entry_count is less than the entries', chunks(None, None, page=put(entry_count=1))
    yield 'R-6.1', 'body-bytes-odd', 'body_bytes is not a multiple of 32', broken(page={'+half an entry': bytes(16)})
    yield 'R-6.1', 'first-sample', 'first_sample differs from the first entry', broken(page=put(first_sample=1))
    for name, value in (('offset', 128), ('first_sample', 3), ('stored_bytes', 3), ('sample_count', 1), ('body_crc', WRONG),
                        ('encoding', 1), ('chunk_flags', 1)):
        yield 'R-6.2', 'entry-' + name.replace('_', '-'), '%s of the second entry' % name, chunks(None, None, page={
            'entry 1: ' + name: value})
    yield 'R-6.2', 'entry-to-nowhere', 'the second entry points to padding', chunks(None, None, page={'entry 1: offset': 192})
    f = chunks(None, None, commit=False)
    f.pending[0].pop()
    yield 'R-6.2', 'chunk-left-out', 'a chunk that no entry points to', f.commit(), {'also': ['R-7.4']}
    f = chunks(None, None, commit=False)
    f.pending[0].append(f.pending[0][-1])
    yield 'R-6.2', 'chunk-twice', 'a chunk that two entries point to', f.commit(), {'also': ['R-7.4']}
    f = chunks(None, None, commit=False)
    f.pending[0].reverse()
    yield 'R-6.2', 'order-of-chunks', 'entries that do not ascend', f.commit()
    f = chunks(None, columns=2, commit=False)
    f.pages(1)
    yield 'R-6.2', 'order-of-columns', 'the pages of column 1 before the pages of column 0', f.commit()
    yield 'R-6.2', 'first-chunk', 'first_chunk of the first page is 1', broken(page=put(first_chunk=1))
    f = chunks(None, finished=False)
    f.chunk(0, [b'\3', b'\4'])
    yield 'R-6.2', 'first-chunk-of-run', 'first_chunk begins again in a second commit', f.commit(page=put(first_chunk=0))
    f = chunks(None, finished=False)
    f.indexed[0], f.pending[0] = [], f.indexed[0]
    f.runs[0] = []
    yield 'R-6.2', 'chunk-of-other-commit', 'a second commit lists the chunk of the first again, instead of its run', f.commit(), {'also': ['R-7.4']}
    yield 'R-6.3', 'short-page', 'two pages of one entry each in a run', chunks(None, None, per_page=1)


def footer_cases():
    yield 'R-7.1', 'schema', 'the schema of the footer names another column', broken(footer=put(
        schema=b''.join({**worked().regions[0].body, 'column 0: name': b'y'}.values())))
    yield 'R-7.1', 'schema-of-first', 'so in the first of two commits', broken(finished=False, footer=put(
        schema=b''.join({**worked().regions[0].body, 'column 0: column_flags': b'\1'}.values()))).commit()
    c = 'column 0: '
    for name, what, tweak in (
            ('byte-left', 'a byte after the last field', {'+one byte more': b'\0'}),
            ('schema-beyond', 'the schema reaches beyond the body', {'schema_bytes': 1 << 20}),
            ('tables-beyond', 'more tables than there is room for', {'table_count': 1000}),
            ('tables-over-limit', 'more tables than the limit (and than there is room for)', {'table_count': 65537}),
            ('runs-beyond', 'more runs than there is room for', {c + 'run_count': 60000}),
            ('runs-over-limit', 'more runs than the limit (and than there is room for)', {c + 'run_count': VARIES}),
            ('encodings-beyond', 'more encodings than there is room for', {c + 'encoding_count': 65535}),
            ('cut', 'the body ends within its last field', {c + 'run 0: reserved': b'\0\0'}),
            ('reserved', 'the reserved field of column facts', {c + 'reserved': 1}),
            ('reserved-of-encoding', 'the reserved bytes of an encoding', {c + 'encoding 0: reserved': 1}),
            ('reserved-of-run', 'the reserved field of a run', {c + 'run 0: reserved': 1})):
        yield 'R-7.2', name, what, broken(footer=tweak)
    yield 'R-7.3', 'first-run', 'the first run begins at sample 1', broken(footer={c + 'run 0: first_sample': 1}), {'also': ['R-7.4']}
    f = worked().commit(finished=False)
    f.chunk(0, PAIR)
    yield 'R-7.3', 'gap', 'a gap between two runs', f.commit(footer={c + 'run 1: first_sample': 3}), {'also': ['R-7.4']}
    yield 'R-7.3', 'samples', 'runs of 2 samples in a file of 3', broken(samples=PAIR, footer=put(sample_count=3))
    f = Tsl([col('x', 'u8'), col('y', 'u8')])
    f.chunk(0, [b'\1', b'\2'])
    f.chunk(1, [b'\3'])
    yield 'R-7.3', 'column-too-short', 'a column of 1 sample in a file of 2', f.commit()
    yield 'R-7.3', 'chunks', 'the chunks of the runs are not chunk_count', broken(footer={c + 'chunk_count': 2}), {'also': ['R-7.4']}
    empty = b''.join(le(v, n) for v, n in ((256, 8), (2, 8), (0, 8), (0, 8), (0, 4), (0, 4)))
    yield 'R-7.3', 'empty-run', 'a run without chunks', broken(footer={c + 'run_count': 2, '+run 1': empty}), {'also': ['R-7.4']}
    yield 'R-7.3', 'more-chunks-than-samples', 'a run of 3 chunks and 2 samples', broken(footer={
        c + 'chunk_count': 3, c + 'run 0: chunk_count': 3, c + 'run 0: samples_per_chunk': 0}), {'also': ['R-7.4']}
    yield 'R-7.3', 'page-after-footer', 'a run that begins at the footer', broken(footer={c + 'run 0: offset': 384}), {'also': ['R-7.4']}
    yield 'R-7.3', 'offset-beyond-file', 'a run that begins far beyond the file', broken(footer={c + 'run 0: offset': (1 << 64) - 64}), {'also': ['R-7.4']}
    yield 'R-7.3', 'page-of-two-columns', 'the runs of columns 0 and 1 begin at the same page', chunks(None, columns=2, footer={
        c + 'run 0: offset': 512}), {'also': ['R-7.4']}
    f = worked().commit(finished=False)
    f.chunk(0, PAIR)
    yield 'R-7.3', 'page-of-two-runs', 'the second run begins within the page of the first', f.commit(footer={
        c + 'run 1: offset': 320}), {'also': ['R-7.4']}
    yield 'R-7.3', 'samples-per-chunk', 'samples_per_chunk of 16,777,217', broken(footer={
        c + 'run 0: samples_per_chunk': (1 << 24) + 1}), {'also': ['R-7.4']}
    yield 'R-7.3', 'chunks-by-division', 'samples_per_chunk 1 with 2 chunks of 2', chunks(None, None, footer={
        c + 'run 0: samples_per_chunk': 1}), {'also': ['R-7.4']}
    yield 'R-7.3', 'sum-wraps', 'runs whose samples add up modulo 2^64 only', broken(footer={
        c + 'run_count': 2, c + 'chunk_count': 2, '+run 1': b''.join(le(v, n) for v, n in (
            (256, 8), (2, 8), ((1 << 64) - 2, 8), (1, 8), (0, 4), (0, 4))), 'sample_count': 0}), {'also': ['R-7.4']}
    for name, tweak in (('raw_bytes', 9), ('stored_bytes', 9), ('null_count', 1)):
        yield 'R-7.4', name.replace('_', '-'), name + ' of a column', broken(footer={c + name: tweak})
    yield 'R-7.4', 'chunk-count', 'chunk_count of the column and of its run is 2, and there is 1 chunk', broken(footer={
        c + 'chunk_count': 2, c + 'run 0: chunk_count': 2, c + 'run 0: samples_per_chunk': 1})
    yield 'R-7.4', 'encoding-chunks', 'the number of chunks of an encoding', broken(footer={c + 'encoding 0: chunks': 2})
    for name, what, ids in (('encoding-missing', 'an encoding that is used is not listed', ()),
                            ('encoding-unused', 'an encoding that is not used is listed', ((0, 1), (2, 0))),
                            ('encoding-blocks', 'raw in blocks is listed instead of raw', ((256, 1),)),
                            ('encoding-twice', 'an encoding is listed twice', ((0, 1), (0, 0)))):
        cut = {c + 'encoding 0: ' + k: None for k in ('id', 'reserved', 'chunks')}
        data = b''.join(le(i, 8) + le(n, 8) for i, n in ids)
        yield 'R-7.4', name, what, broken(footer={**cut, c + 'encoding_count': len(ids), c + 'reserved': bytes(2) + data})
    f = chunks(None, commit=False)
    f.chunk(0, [b'\7', b'\7'], CONSTANT)
    yield 'R-7.4', 'encoding-order', 'the encodings do not ascend', f.commit(footer={
        c + 'encoding 0: id': 1, c + 'encoding 1: id': 0})
    yield 'R-7.4', 'encoding-of-part', 'the encoding of a shape is not listed', broken(RAGGED, [b'a', b'b'], shape=zstd(), footer={
        c + 'encoding_count': 1, **{c + 'encoding 1: ' + k: None for k in ('id', 'reserved', 'chunks')}})
    yield 'R-7.4', 'samples-per-chunk-0', 'samples_per_chunk is 0 where it should be 2', broken(footer={
        c + 'run 0: samples_per_chunk': 0})
    yield 'R-7.4', 'samples-per-chunk', 'samples_per_chunk 2 for chunks of 3, 2 and 1', run_of([3, 2, 1], footer={
        c + 'run 0: samples_per_chunk': 2})
    yield 'R-7.4', 'run-offset', 'the runs of columns 0 and 1 point to the pages of each other', chunks(None, columns=2, footer={
        c + 'run 0: offset': 512, 'column 1: run 0: offset': 384})
    f = broken(finished=False, footer={c + 'raw_bytes': 9})
    yield 'R-7.4', 'first-commit', 'a fact of the first of two commits', f.commit()
    for name, value in (('nan', le(0x7FF8 << 48, 8)), ('negative', el('d', -1.0)), ('minus-0', el('d', -0.0))):
        yield 'R-7.4', 'cast-error-' + name, 'the largest relative error of a cast is ' + name, broken(
            col('x', 'bf16', [2], cast=('f32', 0, 0, 0, 0)), footer={c + 'cast: max_rel_error': value})
    for name, what, tweak in (('table-missing', 'a table that is not listed', None),
                              ('table-crc', 'body_crc of a table', {'table 0: body_crc': WRONG}),
                              ('table-bytes', 'body_bytes of a table', {'table 0: body_bytes': 4}),
                              ('table-offset', 'offset of a table', {'table 0: offset': 128}),
                              ('table-order', 'the tables do not ascend', {})):
        f = chunks(None, columns=2, commit=False)
        f.table(0, b'table')
        f.table(1, b'other')
        if tweak is None:
            f.tables.pop()
        one = f.tables and [(k, n) for k, n in (('column', 4), ('table', 4), ('offset', 8), ('body_bytes', 4), ('body_crc', 4))]
        if name == 'table-order':
            tweak = {'table %d: %s' % (i, k): f.tables[1 - i][2].header[k] for i in (0, 1) for k, _ in one}
        yield 'R-7.4', name, what, f.commit(footer=tweak)
    for name, what, column, shift in (('table-overlap', 'the second table of a column begins within the body of its first', 0, 64),
                                      ('table-overlap-of-column', 'a table begins within the body of a table of another column', 1, 128),
                                      ('table-at-same-offset', 'two tables of a column are at the same offset', 0, 0)):
        f = chunks(None, columns=2, commit=False)
        f.table(0, bytes(range(200)))
        f.table(column, b'other')
        yield 'R-7.4', name, what, f.commit(footer={'table 1: offset': f.tables[0][2].offset + shift})
    yield 'R-7.5', 'commit-1', 'the first commit has number 1', broken(footer=put(commit=1))
    yield 'R-7.5', 'commit-twice', 'two commits of number 0', worked().commit(False).commit(footer=put(commit=0))
    yield 'R-7.5', 'samples-over-limit', 'sample_count 2^63 (a file without columns)', Tsl([]).commit(samples=1 << 63)
    yield 'R-7.5', 'fewer-samples', 'sample_count 3, then 2 (a file without columns)', Tsl([]).commit(False, samples=3).commit(samples=2)
    yield 'R-7.6', 'unknown-encoding', 'a chunk of encoding 8, truly listed', broken(chunk=put(encoding=8)), {'also': ['R-5.1']}
    yield 'R-7.6', 'unknown-encoding-of-part', 'a shape of encoding 128, truly listed', broken(
        RAGGED, [b'ab'], chunk={'shape.encoding': 128}), {'also': ['R-5.1']}
    yield 'R-7.6', 'reserved-bit', 'a chunk with bit 9 of the encoding, truly listed', broken(chunk=put(encoding=512)), {'also': ['R-5.1']}
    yield 'R-7.6', 'constant-in-blocks', 'a constant in blocks, truly listed', broken(
        BF16, [ONE * 2] * 2, enc=CONSTANT, chunk=put(encoding=257)), {'also': ['R-5.1']}
    f = Tsl([col('x', 'bf16', [2]), col('y', 'u8', nullable=True), col('z', 'u8', [None])])
    for _ in range(2):
        f.chunk(0, PAIR)
        f.chunk(1, [b'\7', None], tweak={'values.encoding': 8, 'encoding': 8})
        f.chunk(2, [b'ab', b''], tweak={'shape.encoding': 8})
    yield 'R-7.6', 'other-columns', 'two of three columns have an encoding that is not assigned: readers refuse these columns', f.commit(), {
        'also': ['R-5.1'], 'reads': ['x']}
    yield 'R-7.7', 'flag', 'an unknown trailer flag', broken(trailer=put(trailer_flags=3))
    yield 'R-7.7', 'reserved', 'the reserved field of a trailer', broken(trailer=put(reserved=1))
    yield 'R-7.7', 'reserved-of-first', 'the reserved field of the first of two trailers', broken(trailer=put(reserved=1)).commit()
    yield 'R-7.7', 'footer-offset', 'the trailer points to the index page', broken(trailer=put(footer_offset=256))
    yield 'R-7.7', 'footer-offset-of-second', 'the second of three trailers points to the first footer', worked().commit().commit(
        trailer=put(footer_offset=384)).commit()
    yield 'R-7.7', 'previous-not-0', 'previous_trailer of the first trailer is not 0', broken(trailer=put(previous_trailer=640))
    yield 'R-7.7', 'previous-0', 'previous_trailer of the second of three trailers is 0', worked().commit().commit(
        trailer=put(previous_trailer=0)).commit()
    yield 'R-7.8', 'not-finished', 'the last trailer is not finished', worked().commit(finished=False)
    f = worked().commit()
    yield 'R-7.8', 'not-finished-again', 'the first of two commits is finished, the last is not', f.commit(finished=False)
    yield 'R-9.1', 'file-header', 'an incompat flag in the file header only', worked(incompat_flags=2).commit(), {'also': ['R-9.2']}
    yield 'R-9.1', 'footer', 'an incompat flag in the footer only', worked().commit(flags=(1 << 31, 0, 0))
    yield 'R-9.2', 'compat-of-file-header', 'a compat flag of the file header that the footer lacks', worked(compat_flags=1).commit()
    yield 'R-9.2', 'ro-compat-of-footer', 'a ro_compat flag of the first footer that the second lacks', worked().commit(
        flags=(0, 1 << 31, 0)).commit()
    yield 'R-9.1', 'both', 'an incompat flag in file header and footer', worked(flags=(2, 0, 0)).commit()


def hashed(f, content):
    """Commits with a content id that is computed from `content(correct input)` instead of the correct input."""
    for c in range(len(f.columns)):
        f.pages(c)
    f.content = content(f.content)
    f.commit()
    f.regions[-2].tweak['content_id'] = f.content  # so that the dump marks it
    return f


def content_id_cases():
    yield 'R-7.9', 'zero', 'content_id is zero', broken(footer=put(content_id=bytes(16)))
    right = worked().commit().content
    yield 'R-7.9', 'last-bit', 'the last bit of content_id', broken(footer=put(content_id=right[:15] + bytes([right[15] ^ 0x80])))
    yield 'R-7.9', 'of-first', 'content_id of the first of two commits; the second follows from it', broken(
        finished=False, footer=put(content_id=bytes(range(16)))).commit()
    yield 'R-7.9', 'without-pages', 'content_id without the index page', hashed(worked(), lambda content: content[:16])
    yield 'R-7.9', 'without-start', 'content_id without the 16 zero bytes of the first commit', hashed(
        worked(), lambda content: content[16:])
    yield 'R-7.9', 'order-of-pages', 'content_id of the index pages in another order', hashed(
        chunks(None, columns=2, commit=False), lambda content: content[:16] + content[48:] + content[16:48])
    f = worked().commit(finished=False)
    f.chunk(0, PAIR)
    yield 'R-7.9', 'not-chained', 'content_id of the second of two commits, as if it were the first', hashed(
        f, lambda content: bytes(16) + content[16:])
    f = worked()
    f.pages(0)
    first = f.content[16:]
    f.commit(finished=False)
    f.chunk(0, PAIR)
    yield 'R-7.9', 'all-pages', 'content_id of the second of two commits, with the index page of the first once more', hashed(
        f, lambda content: content[:16] + first + content[16:])


def invalid_vectors():
    for cases in (regions_cases, schema_cases, chunk_cases, encoding_cases, zstd_dictionary_cases, tier_cases, index_cases, footer_cases, content_id_cases):
        yield from cases()
