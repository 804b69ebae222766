"""The vectors of nested columns, for make_vectors.py."""
from vector_encoder import *

NESTED = (1, 0, 0)  # the flags of a file with nested columns
PATHS = (0, 0, 1)
WORDS = col('x', 'utf8', [None], nullable=True, lists=[True])
DEEP = col('x', 'u8', [None], nullable=True, lists=[True, True])
NUMBERS = col('x', 'u16', nullable=True, lists=[True])


def nested(*columns, flags=NESTED, **more):
    return Tsl(list(columns), flags=flags, **more)


def broken(column, samples, file_header=None, chunk=None, flags=NESTED, **encodings):
    f = nested(column, tweak=file_header, flags=flags)
    f.chunk(0, samples, tweak=chunk, **encodings)
    return f.commit()


def valid_vectors():
    f = nested(WORDS)
    f.chunk(0, [['a', '', 'bcd'], [], None, ['\u00e9', None], [None], ['']])
    f.chunk(0, [['no', 'null'], []])
    f.chunk(0, [None, None])
    f.chunk(0, [[], []])
    yield 'nested-text', 'lists of texts: null and empty lists, null and empty texts; chunks without items', f.commit()

    f = nested(NUMBERS, col('y', 'f32', [2], lists=[False]), col('z', 'u8', [None, 2, None], lists=[True]))
    f.chunk(0, [[el('H', 1), None, el('H', 3)], None, [], [el('H', 4)] * 9])
    f.chunk(1, [[el('f', 1, 2), el('f', 3, 4)], [], [el('f', 5, 6)], []])
    f.chunk(2, [[((2, 1), b'abcd'), None, ((0, 5), b'')], [((1, 1), b'ef')], [], [None]])
    yield 'nested-tensors', 'lists of numbers with nulls, of fixed and of ragged tensors', f.commit()

    f = nested(DEEP)
    f.chunk(0, [[[b'ab', b'c'], [], None], [], None, [[None, b'', b'd'], [b'e']]])
    f.chunk(0, [[None], [[]], [[b'f']], [[None]]])
    yield 'nested-deep', 'two levels of lists, with nulls at every level', f.commit()

    f = nested(col('x', 'u8', nullable=False, lists=[False] * 16), col('y', 'u8', lists=[False] * 15 + [True]))
    deep = b'\1'
    for _ in range(16):
        deep = [deep]
    f.chunk(0, [deep, []])
    for _ in range(15):
        deep = deep[0]
    deep = [None, b'\2']
    for _ in range(15):
        deep = [deep]
    f.chunk(1, [deep, [[]]])
    yield 'nested-16', '16 levels; nulls at the last level only', f.commit()

    f = nested(col('x', 'bool', [0], nullable=True, lists=[True]), col('y', 'u8', [3, 0], lists=[False]))
    f.chunk(0, [[b'', None, b''], None, []])
    f.chunk(1, [[b''] * 5, [], [b'']])
    yield 'nested-zero-size', 'lists of items without elements', f.commit()

    f = nested(WORDS, NUMBERS | {'name': 'y'})
    f.chunk(0, [['ab'] * 40, [None] * 30, None], residual_tiers(), exponent_tiers(), residual_tiers('delta', restart=103, stride=1))
    f.chunk(1, [[el('H', i)] * i for i in range(3)], residual_tiers(), shape=residual_tiers())
    yield 'nested-encoded', 'encoded validity, shape and values of lists', f.commit()

    f = Tsl([col(name, 'utf8', [None], nullable=True, meta=[('tensilo.path', path)], lists=[True] * path.count('[]'))
             for name, path in (('role', 'messages[].role'), ('content', 'messages[].content'), ('a.b', r'a\.b.c'))]
            + [col('messages', 'bool', [0], nullable=True, meta=[('tensilo.path', 'messages[]')], lists=[True])], flags=(1, 0, 1))
    f.chunk(0, [['user', 'assistant', None], []])
    f.chunk(1, [['hi', None, None], []])
    f.chunk(2, ['x', None])
    f.chunk(3, [[b'', b'', None], []])
    yield 'paths', 'fields of structs, and the nulls of a struct in a list', f.commit()
    f = Tsl([col(name, 'u8', meta=[('tensilo.path', path)]) for name, path in (('x', 'a.x'), ('y', 'a.y'))])
    f.chunk(0, [b'\1', b'\2'])
    f.chunk(1, [b'\3', b'\4'])
    yield 'paths-without-flag', 'fields of a struct without the flag paths, which readers do not need', f.commit()
    f = Tsl([col(name, 'u8', meta=[('tensilo.path', path)]) for name, path in (
        ('cut', 'a['), ('escape', 'a\\b'), ('levels', 'b[].x'), ('deep', '.'.join('c' * 129)),
        ('twice', 'd.x'), ('again', 'd.x'), ('own', 'd'), ('struct', 'e'), ('field', 'e.x'))], flags=PATHS)
    yield 'paths-not-followed', 'paths that are not well formed, too long, or not their own', f.commit()


def invalid_vectors():
    yield 'R-3.6', 'nesting-reserved', 'the reserved byte of nesting', broken(WORDS, [['a']], put({'column 0: nesting reserved': 1}))
    yield 'R-3.8', 'no-levels', 'a nested column of no level', nested(WORDS, tweak=put({
        'column 0: levels': 0, 'column 0: nullable_levels': 0})).commit()
    yield 'R-3.8', 'levels-17', '17 levels', nested(WORDS, tweak=put({'column 0: levels': 17})).commit()
    yield 'R-3.8', 'nullable-levels', 'a bit of nullable_levels for a level that does not exist', nested(WORDS, tweak=put({
        'column 0: nullable_levels': 3})).commit()
    yield 'R-3.8', 'no-flag', 'a nested column without the incompat flag', broken(WORDS, [['a']], flags=(0, 0, 0))
    yield 'R-3.8', 'flag-for-nothing', 'the incompat flag without a nested column', broken(col('x', 'u8'), [b'\1'])
    yield 'R-4.3', 'nested-without-parts', 'a nested column without parts', broken(
        col('x', 'u8', lists=[False]), [[]], chunk=put({'chunk_flags': 0, 'raw_bytes': 64 + 64}))
    yield 'R-4.5', 'lists-cut', 'a shape that ends within the lists of level 2', broken(DEEP, [[[], []]], chunk=put({
        'shape': el('I', 2, 0), 'shape padding': bytes(56), 'shape.stored_bytes': 8, 'shape.raw_bytes': 8, 'raw_bytes': 8}))
    yield 'R-4.5', 'lists-too-long', 'a shape with a number too many', broken(NUMBERS, [[el('H', 1)]], chunk=put({
        'shape': el('I', 1, 1), 'shape padding': bytes(56), 'shape.stored_bytes': 8, 'shape.raw_bytes': 8, 'raw_bytes': 10}))
    yield 'R-4.5', 'items-beyond-values', 'more items than values', broken(NUMBERS, [[el('H', 1)]], chunk=put(shape=el('I', 2)))
    yield 'R-4.5', 'bitmap-of-items-missing', 'a validity without the bitmap of the items', broken(
        NUMBERS, [[el('H', 1)], None], chunk=put({'validity': b'\1', 'validity padding': bytes(63), 'validity.stored_bytes': 1,
                                                  'validity.raw_bytes': 1, 'raw_bytes': 11}))
    yield 'R-4.6', 'null-item-not-nullable', 'a null item where none may be', broken(
        col('x', 'u8', lists=[True]), [[None]], put({'column 0: nullable_levels': 0}))
    yield 'R-4.6', 'null-list-not-nullable', 'a null list where only items may be null', broken(
        col('x', 'u8', lists=[True]), [None, [None]])
    yield 'R-4.6', 'null-of-one-level', 'a null item where only lists may be null', broken(
        col('x', 'u8', nullable=True, lists=[False]), [None, [None]])
    f = nested(NUMBERS)
    f.chunk(0, [None, [el('H', 7)]], tweak=put(validity=b'\3\1'))
    yield 'R-4.6', 'nested-no-null', 'a validity of lists and items, none of them null', f.commit(footer={'column 0: null_count': 0})
    yield 'R-4.6', 'bits-after-lists', 'a bit after the bits of the lists', broken(NUMBERS, [None, [el('H', 7)]], chunk=put(validity=b'\6\1'))
    yield 'R-4.6', 'bits-after-items', 'a bit after the bits of the items', broken(NUMBERS, [None, [el('H', 7)]], chunk=put(validity=b'\2\3'))
    yield 'R-4.7', 'lists-descend', 'ends of lists descends', broken(NUMBERS, [[el('H', 7)], [], [el('H', 8)]], chunk=put(shape=el('I', 1, 0, 2)))
    yield 'R-4.7', 'deep-lists-descend', 'ends of lists of level 2 descends', broken(
        DEEP, [[[b'a'], [], [b'b']]], chunk=put(shape=el('I', 3, 1, 0, 2, 1, 2)))
    yield 'R-4.7', 'ends-of-items-descend', 'ends of ragged items descends', broken(WORDS, [['ab', 'c', 'd']], chunk=put(shape=el('I', 3, 2, 1, 4)))
    yield 'R-4.8', 'null-list', 'a null list that is not empty', broken(NUMBERS, [None, [el('H', 7)]], chunk=put(shape=el('I', 1, 1)))
    yield 'R-4.8', 'null-inner-list', 'a null list of level 1 that is not empty', broken(
        DEEP, [[None, [b'a']]], chunk=put(shape=el('I', 2, 1, 1, 1)))
    yield 'R-4.8', 'null-item', 'a null item that is not zero', broken(NUMBERS, [[el('H', 7), None]], chunk=put(values=el('H', 7, 8)))
    yield 'R-4.8', 'null-ragged-item', 'a null item that is not empty', broken(WORDS, [['a', None]], chunk=put(shape=el('I', 2, 0, 1)))
    yield 'R-4.12', 'empty-items', '2^24 + 1 items without elements in a list', broken(
        col('x', 'bool', [0], lists=[False]), [[b'']], chunk=put(shape=el('I', (1 << 24) + 1)))
    many = 1 << 24
    yield 'R-4.12', 'long-shape', 'a list of 2^24 items, whose shape has more than 64 MiB', broken(
        col('x', 'u8', [None], lists=[False]), [[b'a']], chunk=put({
            'shape': el('I', many), 'shape.raw_bytes': 4 + 4 * many, 'values.raw_bytes': many, 'raw_bytes': 4 + 5 * many}), enc=CONSTANT, shape=CONSTANT)
    many -= 1
    yield 'R-4.12', 'long-validity-and-shape', 'a validity and a shape of more than 64 MiB together', broken(
        col('x', 'u8', [None], lists=[True]), [[b'a', None]], chunk=put({
            'validity': b'\1', 'validity.raw_bytes': 1 + (1 << 21), 'shape': el('I', many), 'shape.raw_bytes': 4 + 4 * many,
            'values.raw_bytes': many, 'raw_bytes': 1 + (1 << 21) + 4 + 5 * many}), validity=CONSTANT, enc=CONSTANT, shape=CONSTANT)
    yield 'R-4.9', 'text-of-list', 'a text of a list that is not UTF-8', broken(WORDS, [['ok', b'caf\xE9']])
    yield 'R-4.9', 'boundary-of-items', 'a boundary of items within a code point', broken(WORDS, [[b'\xE2\x82', b'\xAC']])
    yield 'R-4.13', 'list', 'a bit above an f4_e2m1 of a list', broken(col('x', 'f4_e2m1', lists=[False]), [[b'\1', b'\x11']])
    yield 'R-4.9', 'bool-of-list', 'a bool of a list that is 2', broken(col('x', 'bool', lists=[False]), [[b'\1', b'\2']])

