"""A small encoder of the tensilo file format, written from the specification alone, for make_vectors.py.

A file is assembled region by region. Each call that adds a region takes a dict (see `put`) that overwrites named fields
of the region. Checksums, index entries and facts are then computed from the new bytes, so that a vector breaks only the
rule it is named after and no checksum.
"""
import hashlib
import re
import struct
import zlib

from vector_tiers import blocks, exponent_tiers, planes_zstd, residual_tiers

DTYPES = {'bf16': (1, 2), 'f16': (2, 2), 'f32': (3, 4), 'f64': (4, 8), 'i8': (5, 1), 'i16': (6, 2), 'i32': (7, 4),
          'i64': (8, 8), 'u8': (9, 1), 'u16': (10, 2), 'u32': (11, 4), 'u64': (12, 8), 'bool': (13, 1),
          'bytes': (14, 1), 'utf8': (15, 1), 'f8_e4m3fn': (16, 1), 'f8_e4m3fnuz': (17, 1), 'f8_e5m2': (18, 1),
          'f8_e5m2fnuz': (19, 1), 'f8_e8m0fnu': (20, 1), 'f6_e2m3': (21, 1), 'f6_e3m2': (22, 1), 'f4_e2m1': (23, 1),
          'i4': (24, 1), 'u4': (25, 1), 'complex64': (26, 8)}
UNKNOWN = {'unknown 27': (27, 1), 'unknown 37': (37, 4), 'unknown 255': (255, 8)}  # dtypes that are not assigned
ENCODINGS = ['raw', 'constant', 'zstd', 'bitshuffle-zstd', 'exponent-tiers', 'residual-tiers', 'bins', 'planes-zstd']
IDS = {**{name: k for k, name in enumerate(ENCODINGS)}, **{name + ' in blocks': 256 | k for k, name in enumerate(ENCODINGS)}}
VARIES = 0xFFFFFFFF
NOT_A_NUMBER = re.compile(r'(magic|tail|previous|values|validity|shape|crc|content_id|name|(key|value) \d+|extents|error|body|padding|rounding|'
                          r'(block_)?crc \d+|elements|frame|block \d+: (?!count|stored_bytes|packing).*|filling|reserved.*|K|frequencies \d+|classes|coefficients \d+)$')
FILE_ID = bytes(range(0x10, 0x1C))
KINDS = {  # magic; then the header fields at 4, 32 and 48 as (name, size)
    'file header': (b'\x89TSL', [('magic_tail', 4)],
               [('incompat_flags', 4), ('ro_compat_flags', 4), ('compat_flags', 4)], [('alignment', 4), ('edition', 4)]),
    'chunk': (b'TSLC', [('column', 4)], [('first_sample', 8), ('sample_count', 4)],
              [('raw_bytes', 4), ('encoding', 2), ('chunk_flags', 2)]),
    'table': (b'TSLT', [('column', 4)], [('table', 4), ('reserved', 8)], [('reserved 2', 8)]),
    'index page': (b'TSLI', [('column', 4)], [('first_sample', 8), ('entry_count', 4)], [('first_chunk', 8)]),
    'footer': (b'TSLF', [('commit', 4)], [('incompat_flags', 4), ('ro_compat_flags', 4), ('compat_flags', 4)],
               [('sample_count', 8)]),
    'trailer': (b'TSLE', [('trailer_flags', 4)], [('footer_offset', 8), ('reserved', 4)], [('previous_trailer', 8)]),
}


def align(x, a):
    return (x + a - 1) // a * a


def le(n, size):
    return n.to_bytes(size, 'little')


def put(sections=None, **more):
    """Returns a tweak, which overwrites fields of a region: '+name' adds a field at the end of the body, None removes one."""
    return {**(sections or {}), **more}


class Region:
    def __init__(self, kind, offset, file_id, previous, body, title, tweak=None, content=b'', **fields):
        magic, at4, at32, at48 = KINDS[kind]
        fields = {'magic_tail': 0x0A1A0A0D, 'edition': 1, **fields}
        zeros = [(name, le(fields.get(name, 0), size)) for name, size in at32]
        self.kind, self.title, self.offset, self.tweak = kind, title, offset, dict(tweak or {})
        self.header = dict([('magic', magic)] + [(name, le(fields.get(name, 0), size)) for name, size in at4]
                         + [('file_id', file_id), ('previous', previous), ('offset', le(offset, 8))] + zeros + [('body_bytes', le(0, 4))]
                         + [(name, le(fields.get(name, 0), size)) for name, size in at48]
                         + [('body_crc', le(0, 4)), ('header_crc', le(0, 4))])
        self.body = dict(body)
        for name, value in self.tweak.items():
            self.set(name, value)
        self.seal()
        if kind == 'footer' and 'content_id' not in self.tweak:
            self.body['content_id'] = content_id(content, self.body)
        data = b''.join(self.body.values())
        for name, value in (('body_bytes', len(data)), ('body_crc', zlib.crc32(data)), ('header_crc', None)):
            if name not in self.tweak:
                self.set(name, zlib.crc32(b''.join(self.header.values())[:60]) if value is None else value)
        self.end = offset + 64 + len(data)

    def set(self, name, value):
        sections = self.header if name in self.header else self.body
        if value is None:
            del sections[name]
        elif name[0] == '+':
            sections[name] = value
        else:
            assert name in sections, name
            sections[name] = le(value, len(sections[name])) if isinstance(value, int) else value

    def get(self, name):
        return int.from_bytes(self.header[name], 'little')

    def seal(self):
        """Sets the checksums of a block index and its blocks (5.12), except tweaked ones."""
        crcs = [name for name in self.body if re.search(r'(block_crc \d+|index_crc)$', name)]
        for name in crcs:
            names = list(self.body)
            if name.endswith('index_crc'):
                covered = names[:names.index(name)]
            else:
                part, number = re.match(r'(.*): block_crc (\d+)$', name).groups()
                covered = [other for other in names if other.startswith('%s: block %s: ' % (part, number))]
            if name not in self.tweak:
                self.set(name, zlib.crc32(b''.join(self.body[other] for other in covered)))


def content_id(content, footer):
    """Returns the hash of the content id before and the index pages (`content`), and of the footer without its first field."""
    return hashlib.sha256(content + b''.join(list(footer.values())[1:])).digest()[:16]


# ---- values and encodings --------------------------------------------------------------------------------------

def bitshuffle(data, w):
    m = len(data) // w // 8
    out = bytearray(8 * w * m)
    for p in range(8 * w):
        for i in range(m):
            for t in range(8):
                out[p * m + i] |= (data[(8 * i + t) * w + p // 8] >> p % 8 & 1) << t
    return bytes(out) + data[8 * w * m:]


def frame(data):
    """Returns a single-segment Zstandard frame of one raw block, which needs no compressor."""
    size = b'\x20' + le(len(data), 1) if len(data) < 256 else b'\x60' + le(len(data) - 256, 2)
    return b'\x28\xB5\x2F\xFD' + size + le(len(data) << 3 | 1, 3) + data


def zstd(literal=None, table=VARIES):
    return 'zstd', lambda data, w: {'table': le(table, 4), 'frame': frame(data) if literal is None else literal}


def other_id(body):
    return body[:4] + le(7, 4) + body[8:]


def with_dictionary(table, literal=None):
    return zstd(literal, table)


def shuffled(literal=None):
    return 'bitshuffle-zstd', lambda data, w: {'frame': frame(bitshuffle(data, w)) if literal is None else literal}


RAW, CONSTANT = ('raw', lambda data, w: {'': data}), ('constant', lambda data, w: {'': data[:w]})


def encode(encoding, data, w):
    """Returns the id of the encoding, and the sections of the stored bytes by name."""
    name, sections = encoding if data else RAW
    return IDS[name], sections(data, w)


def el(fmt, *values):
    return struct.pack('<%d%s' % (len(values), fmt), *values)


# ---- a file ----------------------------------------------------------------------------------------------------

def col(name, dtype, shape=(), nullable=False, cast=None, meta=(), lists=()):
    """Returns a column.

    `cast` is (source dtype or 'decimal', absolute error, relative error, to infinite, to subnormal). `lists` says for each
    level whether its entries may be null."""
    inner = 1
    for extent in shape:
        inner *= 1 if extent is None else extent
    return {'name': name, 'dtype': dtype, 'shape': list(shape), 'nullable': nullable, 'cast': cast, 'meta': list(meta),
            'inner': inner, 'w': number_of(dtype)[1], 'coded': 4 if dtype == 'complex64' else number_of(dtype)[1],
            'v': list(shape).count(None), 'lists': list(lists)}


def number_of(dtype):
    """Returns the number of a dtype, and its element bytes."""
    return DTYPES.get(dtype) or UNKNOWN[dtype]


def levels_of(samples, count):
    """Returns the entries of each level, and the ends of the lists of each level but the last."""
    entries, ends = [samples], []
    for _ in range(count):
        below = [entry for a_list in entries[-1] for entry in a_list or ()]
        lengths = [len(a_list or ()) for a_list in entries[-1]]
        ends.append([sum(lengths[:i + 1]) for i in range(len(lengths))])
        entries.append(below)
    return entries, ends


def bitmap(entries):
    return le(sum(1 << i for i, entry in enumerate(entries) if entry is not None), align(len(entries), 8) // 8)


def dumped(entry, levels):
    if entry is None or levels == 0:
        return entry and {'extents': list(entry[0]), 'hex': entry[1].hex()}
    return [dumped(below, levels - 1) for below in entry]

def utf8(text):
    return text.encode() if isinstance(text, str) else text


def metadata(label, entries):
    yield label + 'metadata: entries', le(len(entries), 4)
    for i, entry in enumerate(entries):
        for what, text in zip(('key', 'value'), map(utf8, entry)):
            yield '%smetadata: %s %d bytes' % (label, what, i), le(len(text), 4)
            yield '%smetadata: %s %d' % (label, what, i), text


def schema_block(columns, meta):
    yield 'column_count', le(len(columns), 4)
    yield from metadata('file ', meta)
    for i, c in enumerate(columns):
        label, name = 'column %d: ' % i, utf8(c['name'])
        yield label + 'name_bytes', le(len(name), 4)
        yield label + 'name', name
        yield label + 'dtype', le(number_of(c['dtype'])[0], 1)
        yield label + 'column_flags', le(c['nullable'] + 2 * bool(c['cast']) + 4 * bool(c['lists']), 1)
        yield label + 'rank', le(len(c['shape']), 1)
        yield label + 'element_bytes', le(c['w'], 1)
        yield label + 'extents', b''.join(le(VARIES if e is None else e, 4) for e in c['shape'])
        if c['cast']:
            yield label + 'cast source', le(DTYPES.get(c['cast'][0], [0])[0], 1)
            yield label + 'cast rounding', b'\1'
            yield label + 'cast reserved', b'\0\0'
        if c['lists']:
            yield label + 'levels', le(len(c['lists']), 1)
            yield label + 'nesting reserved', b'\0'
            yield label + 'nullable_levels', le(sum(may << k for k, may in enumerate(c['lists'])), 2)
        yield from metadata(label, c['meta'])


class Tsl:
    def __init__(self, columns, meta=(), A=64, flags=(0, 0, 0), file_id=FILE_ID, tweak=None, **fields):
        self.columns, self.meta, self.A, self.file_id, self.flags = columns, meta, A, file_id, flags
        self.regions, self.pokes, self.tail, self.commits, self.tables = [], [], b'', 0, []
        self.pending, self.indexed, self.runs, self.samples = ([[] for _ in columns] for _ in range(4))
        self.next, self.finished, self.last_trailer, self.content = [0] * len(columns), False, 0, bytes(16)
        self.add('file header', schema_block(columns, meta), '', tweak=tweak,
                 **{**dict(zip(('incompat_flags', 'ro_compat_flags', 'compat_flags'), flags), alignment=A), **fields})
        self.schema = b''.join(self.regions[0].body.values())

    def add(self, kind, body, title, shift=0, tweak=None, **fields):
        end, previous = (self.regions[-1].end, self.regions[-1].header['header_crc']) if self.regions else (0, bytes(4))
        offset = align(end + 64, self.A) - 64 if kind in ('chunk', 'table') else align(end, 64)
        self.regions.append(Region(kind, offset + shift, self.file_id, previous, body, title, tweak, **fields))
        if kind == 'index page':
            self.content += b''.join(self.regions[-1].body.values())
        return self.regions[-1]

    def chunk(self, column, samples, enc=RAW, validity=RAW, shape=RAW, tweak=None, shift=0):
        """Adds a chunk. Samples are items, or lists of items in nested columns, or None for a null.

        Items are element bytes, or in ragged columns ((extents), bytes) or a text."""
        c, n = self.columns[column], len(samples)

        def item(s, levels):
            if s is None or levels:
                return s and [item(below, levels - 1) for below in s]
            s = utf8(s)
            if not c['v']:
                return (), s
            return ((len(s) // (c['inner'] * c['w']),), s) if isinstance(s, bytes) else s

        rows = [item(s, len(c['lists'])) for s in samples]
        levels, ends_of_lists = levels_of(rows, len(c['lists']))
        samples, nulls = levels[-1], sum(s is None for s in rows)
        has_nulls = any(None in entries for entries in levels)
        valid = b''.join(bitmap(entries) for entries in levels) if has_nulls else b''
        absent = (0,) * c['v'], b'' if c['v'] else bytes(c['inner'] * c['w'])
        full, ends, total = [s or absent for s in samples], b'', 0
        lists = b''.join(le(end, 4) for ends_of_level in ends_of_lists for end in ends_of_level)
        for extents, _ in full:
            count = 1
            for e in extents:
                count *= e
            total += count
            ends += le(total, 4)
        ends += b''.join(le(s[0][k], 4) for k in range(c['v']) for s in full) if c['v'] > 1 else b''
        parts = [('validity', valid, 1, validity, has_nulls), ('shape', lists + (ends if c['v'] else b''), 4, shape, c['v'] or lists),
                 ('values', b''.join(s[1] for s in full), c['coded'], enc, True)]
        table, data = [], []
        for name, raw, w, encoding, present in parts:
            code, sections = encode(encoding, raw, w)
            size = sum(map(len, sections.values()))
            for field, value in (('stored_bytes', le(size, 4)), ('raw_bytes', le(len(raw), 4)),
                                 ('encoding', le(code, 2)), ('reserved', bytes(6))):
                table.append(('%s.%s' % (name, field), value))
            data += [(name + ': ' * bool(section) + section, stored) for section, stored in sections.items()]
            if name != 'values' and size % 64:
                data.append((name + ' padding', bytes(-size % 64)))
        split = bool(has_nulls or c['v'] or c['lists'])
        body = table + [('part table reserved', bytes(16))] + data if split else data[-len(sections):]
        title = 'of column %d, from sample %d' % (column, self.next[column])
        r = self.add('chunk', [(k, v) for k, v in body if v or k.startswith('values')], title, shift, tweak, column=column,
                     first_sample=self.next[column], sample_count=n, raw_bytes=sum(len(p[1]) for p in parts),
                     encoding=code, chunk_flags=split)
        codes = [r.body.get(p[0] + '.encoding') or r.header['encoding'] for p in parts if p[4]]
        r.nulls, r.used = nulls, [int.from_bytes(code, 'little') for code in codes]
        self.pending[column].append(r)
        self.samples[column] += [dumped(row, len(c['lists'])) for row in rows]
        self.next[column] += r.get('sample_count')

    def table(self, column, data, tweak=None):
        number = sum(t[0] == column for t in self.tables)
        r = self.add('table', [('table body', data)], '%d of column %d' % (number, column), 0, tweak, column=column,
                     table=number)
        self.tables.append((column, number, r))

    def pages(self, column, tweak=None, per_page=126, shift=0):
        chunks, before = self.pending[column], len(self.indexed[column])
        if not chunks:
            return
        for i in range(0, len(chunks), per_page):
            body = []
            for k, r in enumerate(chunks[i:i + per_page]):
                body += [('entry %d: %s' % (k, name), r.header[field]) for name, field in (
                    ('offset', 'offset'), ('first_sample', 'first_sample'), ('stored_bytes', 'body_bytes'),
                    ('sample_count', 'sample_count'), ('body_crc', 'body_crc'), ('encoding', 'encoding'),
                    ('chunk_flags', 'chunk_flags'))]
            page = self.add('index page', body, 'of column %d' % column, shift, tweak, column=column,
                            first_sample=chunks[i].get('first_sample'), entry_count=len(body) // 7, first_chunk=before + i)
            if i == 0:
                offset = page.offset
        counts = [r.get('sample_count') for r in chunks]
        same = set(counts[:-1]) in (set(), {counts[0]}) and counts[-1] <= counts[0]
        first = sum(r.get('sample_count') for r in self.indexed[column])
        self.runs[column].append([offset, first, sum(counts), len(chunks), counts[0] if same else 0])
        self.indexed[column] += chunks
        self.pending[column] = []

    def footer(self, tweak=None, samples=None, flags=None, shift=0):
        body = [('content_id', bytes(16)), ('schema_bytes', le(len(self.schema), 4)), ('schema', self.schema), ('table_count', le(len(self.tables), 4))]
        for i, (column, number, r) in enumerate(sorted(self.tables, key=lambda t: t[:2])):
            for name, value in (('column', le(column, 4)), ('table', le(number, 4)), ('offset', r.header['offset']),
                                ('body_bytes', r.header['body_bytes']), ('body_crc', r.header['body_crc'])):
                body.append(('table %d: %s' % (i, name), value))
        self.facts = []
        for i, c in enumerate(self.columns):
            chunks, label = self.indexed[i], 'column %d: ' % i
            codes = {code: 0 for r in chunks for code in r.used + [r.get('encoding')]}
            for r in chunks:
                codes[r.get('encoding')] += 1
            facts = {'raw_bytes': sum(r.get('raw_bytes') for r in chunks),
                     'stored_bytes': sum(r.get('body_bytes') for r in chunks),
                     'null_count': sum(r.nulls for r in chunks), 'chunk_count': len(chunks)}
            body += [(label + name, le(value, 8)) for name, value in facts.items()]
            body += [(label + 'run_count', le(len(self.runs[i]), 4)), (label + 'encoding_count', le(len(codes), 2)),
                     (label + 'reserved', b'\0\0')]
            for k, code in enumerate(sorted(codes)):
                body += [('%sencoding %d: %s' % (label, k, name), value) for name, value in (
                    ('id', le(code, 2)), ('reserved', bytes(6)), ('chunks', le(codes[code], 8)))]
            for k, run in enumerate(self.runs[i]):
                body += [('%srun %d: %s' % (label, k, name), le(value, size)) for name, value, size in zip(
                    ('offset', 'first_sample', 'sample_count', 'chunk_count', 'samples_per_chunk', 'reserved'),
                    run + [0], (8, 8, 8, 8, 4, 4))]
            if c['cast']:
                body += [(label + name, value) for name, value in zip(
                    ('cast: max_abs_error', 'cast: max_rel_error', 'cast: to_infinite', 'cast: to_subnormal'),
                    (el('d', c['cast'][1]), el('d', c['cast'][2]), le(c['cast'][3], 8), le(c['cast'][4], 8)))]
            names = {k: name for name, k in IDS.items()}
            self.facts.append((facts, {names.get(k, 'encoding-%d' % k): codes[k] for k in sorted(codes)}))
        self.sample_count = samples
        if samples is None:
            self.sample_count = max([sum(r.get('sample_count') for r in chunks) for chunks in self.indexed] + [0])
        r = self.add(
            'footer', body, 'of commit %d' % self.commits, shift, tweak, commit=self.commits, sample_count=self.sample_count,
            content=self.content, **dict(zip(('incompat_flags', 'ro_compat_flags', 'compat_flags'), flags or self.flags)))
        self.footer_offset, self.content = r.offset, r.body['content_id']

    def trailer(self, finished=True, tweak=None, shift=0):
        r = self.add('trailer', [], 'of commit %d' % self.commits, shift, tweak, trailer_flags=finished,
                     footer_offset=self.footer_offset, previous_trailer=self.last_trailer)
        self.finished, self.last_trailer, self.commits = finished, r.offset, self.commits + 1

    def commit(self, finished=True, page=None, per_page=126, footer=None, trailer=None, samples=None, flags=None, shift=0):
        for i in range(len(self.columns)):
            self.pages(i, page, per_page)
        self.footer(footer, samples, flags)
        self.trailer(finished, trailer, shift)
        return self

    # -- output: the bytes, hex and content of the file

    def bytes(self):
        out = bytearray()
        for r in self.regions:
            out += bytes(r.offset - len(out)) + b''.join(list(r.header.values()) + list(r.body.values()))
        for offset, value in self.pokes:
            out[offset:offset + len(value)] = value
        return bytes(out) + self.tail

    def hex(self, what, notes=(), brief=False, cut=None):
        data, lines, at = self.bytes()[:cut], ['# ' + what] + ['# note: ' + n for n in notes], 0

        def rows(end, comment=''):
            nonlocal at
            end = min(end, len(data))
            while at < end:
                row = data[at:min(end, at + 16)]
                lines.append((row.hex(' ') + ('  # ' + comment if comment else '')).strip())
                at, comment = at + len(row), ''

        for r in self.regions:
            if at < r.offset:
                poked = any(at <= o < r.offset for o, _ in self.pokes)
                lines.append('# padding' + (', not all zero' if poked else ''))
                rows(r.offset)
            if at < len(data):
                lines.append('# ---- %s, at %d' % ((r.kind + ' ' + r.title).strip(), r.offset))
            short = len(self.regions) > 40 and r.kind in ('chunk', 'index page') or brief and not (
                r.tweak or r.kind == 'chunk' and r.get('encoding'))
            for sections in (r.header, r.body):
                if short:
                    rows(at + sum(map(len, sections.values())), 'header' if sections is r.header else 'body')
                    continue
                for name, value in sections.items():
                    text = name.lstrip('+')
                    if len(value) in (1, 2, 4, 8) and not NOT_A_NUMBER.search(text):
                        text += ' = %d' % int.from_bytes(value, 'little')
                    if name in r.tweak and brief:
                        text += '   <- here'
                    rows(at + len(value), text)
        if self.tail:
            lines.append('# ---- after the last trailer   <- here')
        rows(len(data))
        return '\n'.join(lines) + '\n'

    def dump(self, reads=None):
        """Returns the content, with samples of only the columns `reads` if some cannot be read."""
        columns = []
        for c, (facts, encodings), samples in zip(self.columns, self.facts, self.samples):
            cast = c['cast'] and {
                'source': c['cast'][0], 'rounding': 'nearest-even', 'max_abs_error': el('d', c['cast'][1]).hex(),
                'max_rel_error': el('d', c['cast'][2]).hex(), 'to_infinite': c['cast'][3], 'to_subnormal': c['cast'][4]}
            columns.append({
                'name': c['name'], 'dtype': c['dtype'], 'shape': c['shape'], 'nullable': c['nullable'], 'cast': cast,
                **({'nullable_levels': [bool(may) for may in c['lists']]} if c['lists'] else {}), 'metadata': dict(c['meta']), 'chunk_count': facts['chunk_count'], 'raw_bytes': facts['raw_bytes'],
                'stored_bytes': facts['stored_bytes'], 'null_count': facts['null_count'], 'encodings': encodings,
                **({'samples': None if c['dtype'] in UNKNOWN else samples} if reads is None or c['name'] in reads else {})})
        return {'file_id': self.file_id.hex(), 'content_id': self.content.hex(), 'alignment': self.A, 'finished': bool(self.finished), 'tail_bytes': 0,
                'commits': self.commits, 'sample_count': self.sample_count, 'metadata': dict(self.meta), 'columns': columns}


# ---- used by many vectors ---------------------------------------------------------------------------------------------

ONE = b'\x80\x3F'  # 1.0 as bf16
PAIR = [ONE + b'\x00\x40', b'\x00\xBF\x00\x00']  # [1, 2] and [-0.5, 0]
# Frames made by libzstd 1.5.7 (level 19): they contain compressed blocks, and no compressor is needed here.
POEM = ('Roses are red, violets are blue, ' * 3 + 'tensors are ragged, and some of them too. ' * 4
        + 'Roses and tensors, violets and rows.').encode()
POEM_FRAME = bytes.fromhex(  # with a content checksum
    '28b52ffd642f007d020072840d10b0eb24f44c222109d138cbe0ee982c44619f2e6362065566f5c35cd457bac61c067863c6d2cd3383b7'
    '44d8932267805ffe1adeaf8a07005063c055824c93057853c919e59613254b1a26139a0c7579')
THIRDS_FRAMES = {  # the bit-shuffle of 67 elements floor(i / 3) of w bytes
    1: '28b52ffd20432d0100b0388ee3c00ffc00f0ff000000ffffff00ffff00151516052010f301d4a1336570c3960c01',
    2: '28b52ffd2086450100c8388ee3c00ffc00f0ff000000ffffff00ffff00150015001600052010f301c41ca6d90632bcc810',
    4: '28b52ffd600c00450100c0388ee3c00ffc00f0ff000000ffffff00ffff001516000000062050ef3341051da4698332bcc810',
    8: '28b52ffd6018016d0100e0388ee3c00ffc00f0ff000000ffffff00ffff0015160000000000000006002b9da0066ab8ce0019e086ad1b02'}
MAGIC = b'\x28\xB5\x2F\xFD'
ZSTD_DICTIONARY = bytes.fromhex(  # a dictionary trained by libzstd 1.5.7
    '37a430ecf2d59a512310c09224e933300333300333c03a418ddce727d2acffcd924d2cca844ce81a9873630c230040b050a1c1856d0000'
    '000480c69aa016add8057a983284180000000000000000000000000000000000008416a432132143000000000000000000000000010000'
    '000400000008000000207461626c65207261676765642076696f6c65747320726f73657320626c756520736f6d65207461626c6520776f'
    '726473207320726f777320736f6d65206f6620626c75652072656420736f6d652073616d706c65732072616767656420636f6c756d6e66'
    '20776f726473206368756e6b73207468656d2061726520636f6c756d6e73207265642074656e736f72732073616d706c656c756d6e7320'
    '626c7565207461626c65206f66206368756e6b73206f662074')
ZSTD_DICTIONARY_TEXT = b'roses are red, tensors are ragged and some of them too'
ZSTD_DICTIONARY_FRAME = bytes.fromhex(  # with a content checksum
    '28b52ffd2436e50000507261722c616e64746f6f07fcb3a184452feaf99be221442f0061052938706b')


def worked(**more):
    f = Tsl([col('x', 'bf16', [2])], **more)
    f.chunk(0, PAIR)
    return f


def run_of(sizes, **commit):
    f, at = Tsl([col('x', 'u8')]), 0
    for n in sizes:
        f.chunk(0, [el('B', k % 251) for k in range(at, at + n)])
        at += n
    return f.commit(**commit)


def mixed(n):
    """Returns n pseudo-random numbers of 64 bits."""
    numbers = [(i + 1) * 0x9E3779B97F4A7C15 % (1 << 64) for i in range(n)]
    return [(a ^ a >> 32) * 0xD6E8FEB86659FD93 % (1 << 64) for a in numbers]


def floats(w, n):
    """Returns n bf16, f32 or f64 (w bytes): -0.0, infinities, NaNs with payloads and subnormals of both signs, then weights."""
    inf, top = {2: 0x7F80, 4: 0x7F80 << 16, 8: 0x7FF0 << 48}[w], 1 << 8 * w - 1
    special = (top, 0, inf, inf | top, inf | 1, inf | top | 0x55, 1, top | 1, inf - 1, inf - 1 | top, 2 * top - 1)
    weights = [el('d' if w == 8 else 'f', (a % 2001 - 1000) / 4096)[-w:] for a in mixed(n)]
    return b''.join(([le(v, w) for v in special] + weights)[:n])


def of_many(*chunks):
    """Returns a file with a ragged column for each dtype, and one chunk of one sample for each (dtype, elements, encoding)."""
    names = list(dict.fromkeys(dtype for dtype, _, _ in chunks))
    f = Tsl([col(name, name, [None]) for name in names])
    max_chunks = max(sum(dtype == name for dtype, _, _ in chunks) for name in names)
    for dtype, data, encoding in chunks:
        f.chunk(names.index(dtype), [data], encoding)
    for c in range(len(names)):
        for _ in range(max_chunks - len(f.pending[c])):
            f.chunk(c, [b''])
    return f.commit()
