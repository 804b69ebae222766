"""Makes the test vectors of MANIFEST.md.

    make_manifests.py            writes vectors/manifests.tar
    make_manifests.py --check    exits with 1 unless the archive is this script's output,
                                 and `manifest.py` accepts the valid datasets and refuses the others
"""
import argparse
import hashlib
import json
import pathlib
import re
import sys
import tempfile

import archive
import manifest
import reader

VECTORS = pathlib.Path(__file__).resolve().parent / 'vectors'
VALID = archive.read(VECTORS / 'valid.tar')
DIGITS = slice(-35, -3)  # the digits of the digest in a sealed text


def data_of(name):
    """Returns the bytes of a file of `vectors/valid.tar`."""
    text = VALID['valid/%s.hex' % name].decode('utf-8')
    return bytes.fromhex(' '.join(line.split('#')[0] for line in text.splitlines()))


def seal(body):
    """Returns the sealed text of an object, with a line for each member of a list."""
    lines = []
    for name, value in body.items():
        if isinstance(value, list):
            shown = '[\n' + ',\n'.join(json.dumps(member) for member in value) + '\n]' if value else '[]'
        else:
            shown = json.dumps(value)
        lines.append('%s: %s,\n' % (json.dumps(name), shown))
    return seal_text('{\n' + ''.join(lines))


def seal_text(text):
    data = text.encode('utf-8')
    return data + b'"digest": "%s"}\n' % hashlib.sha256(data).hexdigest()[:32].encode()


def file(name, path='data/0000000001/00000.tsl', layout=0):
    """Returns the manifest entry of a file that has the bytes of a vector."""
    data = data_of(name)
    found = reader.read(data)
    end = len(data) - found['tail_bytes']
    footer = int.from_bytes(data[end - 32:][:8], 'little')
    return {'layout': layout, 'path': path, 'bytes': end, 'footer': footer, 'content_id': found['content_id']}


def column(name, column_id, nullable=False, dtype='bf16', shape=(2,), **optional):
    return {'id': column_id, 'name': name, 'dtype': dtype, 'shape': list(shape), 'nullable': nullable, **optional, 'metadata': {}}


def group(*files, samples=2):
    return {'samples': samples, 'files': list(files)}


def id_of(groups):
    ids = ''.join(file['content_id'] for group in groups for file in group['files'])
    return hashlib.sha256(bytes.fromhex(ids)).hexdigest()[:32]


def version(number, groups, columns=None, layouts=None, parent=None, pages=(), **changed):
    columns = [column('x', 0)] if columns is None else columns
    samples = sum(one['samples'] for one in [*groups, *pages])
    return {'format': 'tensilo dataset 1', 'dataset_id': id_of(groups), 'version': number, 'parent': parent, 'time': 1767225600,
            'change': 'made by hand', 'samples': samples, 'order': {'run': 16, 'window': 512, 'streams': 4}, 'metadata': {}, 'column_ids': len(columns),
            'columns': columns, 'layouts': layouts or [{'x': 0}], 'pages': list(pages), 'groups': groups, **changed}


def page(listed, page_format='tensilo dataset page 1', **changed):
    data = seal({'format': page_format, 'groups': listed})
    sums = {'groups': len(listed), 'samples': sum(one['samples'] for one in listed)}
    entry = {'digest': data[DIGITS].decode(), 'bytes': len(data), **sums, **changed}
    return entry, {'manifest/pages/%s.json' % entry['digest']: data}


def folder(*versions, **data):
    """Returns the files of a dataset: its versions, given as objects or texts, and vectors as its data files."""
    names = data or {'data/0000000001/00000.tsl': 'worked'}
    files = {name: data_of(vector) for name, vector in names.items()}
    for number, text in enumerate(versions, 1):
        files['manifest/%010d.json' % number] = text if isinstance(text, bytes) else seal(text)
    return files


WORKED = file('worked')


def valid():
    yield 'one-file', folder(version(1, [group(WORKED)]))

    yield 'empty', folder(version(1, []))

    text = json.dumps({**version(1, [group(WORKED)], metadata={'caf\u00e9': '\U0001F600\n'}), 'change': '\u2028'}, indent=3)
    spaced = text[:-2].replace(': ', '\t:\r\n') + ' ,\r\n'
    yield 'any-white-space', folder(seal_text(spaced))

    first = version(1, [group(WORKED)])
    parent = {'version': 1, 'digest': seal(first)[DIGITS].decode()}
    second_file = file('worked', 'more/again.tsl', 1)
    columns = [column('vector', 0), column('later', 1, nullable=True, dtype='utf8', shape=[None])]
    second = version(2, [group(WORKED), group(second_file)], columns, [{'x': 0}, {'x': 0}], parent, change='append, rename, add',
                     dataset_id=first['dataset_id'])
    parent = {'version': 2, 'digest': seal(second)[DIGITS].decode()}
    added = [file('worked', 'data/0000000003/%05d.tsl' % i, 2) for i in range(2)]
    # the dropped column and the added one have the same name
    columns = [column('later', 2)]
    third = version(3, [group(WORKED, added[0]), group(second_file, added[1])], columns, [{'x': 0}, {'x': 0}, {'x': 2}], parent,
                    column_ids=3, dataset_id=first['dataset_id'])
    names = [WORKED['path'], second_file['path'], *(one['path'] for one in added)]
    yield 'three-versions', folder(first, second, third, **{name: 'worked' for name in names})

    # names that are not versions are ignored, and the parent may have been removed
    files = folder(first, second, **{WORKED['path']: 'worked', second_file['path']: 'worked'})
    del files['manifest/0000000001.json']
    names = ('00000000003.json', '0000000000.json', '.0000000003.json', '3.json', '0000000003.json~')
    yield 'other-names', {**files, **{'manifest/' + name: b'{}\n' for name in names}}

    yield 'requires-nothing', folder(version(1, [group(WORKED)], requires=[]))

    groups = [group({**WORKED, 'path': 'data/%d.tsl' % i}) for i in range(5)]
    (one, one_file), (two, two_file) = page(groups[:2]), page(groups[2:4])
    paged = version(1, groups[4:], pages=[one, two], dataset_id=id_of(groups))
    yield 'pages', {**folder(paged, **{'data/%d.tsl' % i: 'worked' for i in range(5)}), **one_file, **two_file}

    two_commits = reader.read(data_of('two-commits'))
    stored = two_commits['columns'][0]
    columns = [column(stored['name'], 0, dtype=stored['dtype'], shape=stored['shape'], nullable=stored['nullable'])]
    names = {stored['name']: 0}
    whole = file('two-commits')
    yield 'two-commits', folder(version(1, [group(whole, samples=two_commits['sample_count'])], columns, [names]),
                                **{whole['path']: 'two-commits'})

    # the first commit of the file: appended samples do not belong to the dataset
    data = data_of('two-commits')
    previous = int.from_bytes(data[whole['bytes'] - 16:][:8], 'little')
    earlier = reader.read(data[:previous + 64])
    part = {**whole, 'bytes': previous + 64, 'footer': int.from_bytes(data[previous + 32:][:8], 'little'),
            'content_id': earlier['content_id']}
    yield 'earlier-commit', folder(version(1, [group(part, samples=earlier['sample_count'])], columns, [names]),
                                   **{whole['path']: 'two-commits'})


def with_file(**changed):
    return folder(version(1, [group({**WORKED, **changed})]))


def with_column(**changed):
    return folder(version(1, [group(WORKED)], [{**column('x', 0), **changed}]))


def invalid():
    good = version(1, [group(WORKED)])
    text = seal(good)
    for name, path in [('up', '../worked.tsl'), ('root', '/worked.tsl'), ('empty', ''), ('double', 'data//x.tsl'),
                       ('dot', './x.tsl'), ('manifest', 'Manifest/x.tsl'), ('backslash', 'data\\x.tsl'), ('drive', 'c:x.tsl'), ('control', 'a\nb'), ('long', 'a' * 1025)]:
        yield 'M-1.3-' + name, with_file(path=path)
    yield 'M-2.1-flipped', folder(text.replace(b'made by hand', b'made by hend'))
    yield 'M-2.1-cut-off', folder(text[:-1])
    yield 'M-2.1-more', folder(text + b'\n')
    yield 'M-2.1-capitals', folder(text[:-35] + text[DIGITS].upper() + text[-3:])
    yield 'M-2.2-no-object', folder(seal_text('[{'))
    yield 'M-2.2-other-member', folder(version(1, [group(WORKED)], comment=''))
    yield 'M-2.2-missing-member', folder({name: value for name, value in good.items() if name != 'change'})
    yield 'M-2.2-twice', folder(seal_text(text[:-46].decode() + '"change": "", '))
    yield 'M-2.2-twice-in-metadata', folder(seal_text(text[:-46].decode().replace('"metadata": {},\n"col', '"metadata": {"a": "", "a": ""},\n"col')))
    yield 'M-2.2-twice-in-layout', folder(seal_text(text[:-46].decode().replace('{"x": 0}', '{"x": 0, "x": 0}')))
    yield 'M-2.2-bool-as-number', folder(version(1, [group(WORKED)], time=True))
    yield 'M-2.2-twice-by-escape', folder(seal_text(text[:-46].decode() + '"ch\\u0061nge": "", '))
    yield 'M-2.2-not-a-number', folder(seal_text(text[:-46].decode().replace('1767225600', 'NaN')))
    yield 'M-2.2-number-as-text', folder(version(1, [group(WORKED)], change=1))
    yield 'M-2.2-object-as-list', folder(version(1, [group(WORKED)], layouts={'x': 0}))
    yield 'M-2.2-list-as-object', folder(version(1, [group(WORKED)], metadata=[]))
    yield 'M-2.2-null', with_column(nullable=None)
    yield 'M-2.2-text-as-number', folder(version(1, [group(WORKED)], samples='2'))
    yield 'M-2.2-no-files', folder(version(1, [{'samples': 2, 'files': []}]))
    yield 'M-2.2-id', with_file(content_id=WORKED['content_id'].replace('a', 'A'))
    yield 'M-2.2-surrogate', folder(seal_text(text[:-46].decode().replace('made by hand', '\\ud800')))
    yield 'M-2.2-not-utf-8', folder(reseal(text.replace(b'made by hand', b'\xff')))
    yield 'M-2.2-byte-order-mark', folder(reseal(b'\xef\xbb\xbf' + text))
    for name, value in [('fraction', '2.0'), ('exponent', '2e0'), ('negative', '-2'), ('large', '9007199254740992'), ('minus-zero', '-0')]:
        yield 'M-2.3-' + name, folder(seal_text(text[:-46].decode().replace('1767225600', value)))
    yield 'M-2.3-empty-group', folder(version(1, [group(WORKED), group(WORKED, samples=0)]))
    yield 'M-2.3-sum', folder(version(1, [group(WORKED, samples=manifest.LARGEST), group(WORKED, samples=1)], samples=2))
    yield 'M-2.3-run', folder(version(1, [group(WORKED)], order={'run': 1 << 32, 'window': 1, 'streams': 1}))
    yield 'M-2.3-window', folder(version(1, [group(WORKED)], order={'run': 1, 'window': 0, 'streams': 1}))
    yield 'M-2.3-streams', folder(version(1, [group(WORKED)], order={'run': 1, 'window': 1, 'streams': 2048}))
    yield 'M-2.3-streams-power', folder(version(1, [group(WORKED)], order={'run': 1, 'window': 1, 'streams': 6}))
    yield 'M-3.1-newer', folder(version(1, [group(WORKED)], format='tensilo dataset 2', more=1))
    yield 'M-3.1-missing', folder({name: value for name, value in good.items() if name != 'format'})
    yield 'M-3.1-null', folder(version(1, [group(WORKED)], format=None))
    yield 'M-3.1-number', folder(version(1, [group(WORKED)], format=1, samples='2'))
    yield 'M-3.6-feature', folder(version(1, [group(WORKED)], requires=['deleted samples'], deleted=[0]))
    yield 'M-3.6-changed-member', folder(version(1, [group(WORKED)], requires=['texts'], samples='2'))
    yield 'M-2.2-requires-text', folder(version(1, [group(WORKED)], requires='deleted samples'))
    yield 'M-2.2-requires-null', folder(version(1, [group(WORKED)], requires=None))
    yield 'M-2.2-requires-number', folder(version(1, [group(WORKED)], requires=[1]))
    yield 'M-3.2-other-number', folder(version(2, [group(WORKED)]))
    parents = version(1, [group(WORKED)]), version(2, [group(WORKED)])
    parent = {'version': 1, 'digest': seal(parents[0])[DIGITS].decode()}
    yield 'M-3.2-grandparent', folder(*parents, version(3, [group(WORKED)], parent=parent))
    yield 'M-3.2-parent', folder(version(1, [group(WORKED)], parent={'version': 1, 'digest': '00' * 16}))
    yield 'M-3.3-samples', folder(version(1, [group(WORKED)], samples=3))
    yield 'M-3.4-empty-key', folder(version(1, [group(WORKED)], metadata={'': 'x'}))
    yield 'M-3.5-id', folder(version(1, [group(WORKED)], dataset_id='00' * 16))
    yield 'M-3.5-parent-id', folder(parents[0], version(2, [group(WORKED)], parent=parent, dataset_id='00' * 16))
    yield 'M-3.5-parent-digest', folder(parents[0], version(2, [group(WORKED)], parent={**parent, 'digest': '00' * 16}))
    entry, files = page([group(WORKED), group(WORKED)])
    yield 'M-3.5-id-of-inline-groups', {**folder(version(1, [group(WORKED)], pages=[entry])), **files}
    yield 'M-4.1-dtype', with_column(dtype='float32')
    yield 'M-4.1-text-shape', with_column(dtype='utf8')
    yield 'M-4.1-empty-name', with_column(name='')
    yield 'M-4.1-no-levels', with_column(nullable_levels=[])
    yield 'M-4.1-cast', with_column(cast='bool')
    yield 'M-4.1-rank', with_column(shape=[1] * 17)
    yield 'M-4.1-extent', with_column(shape=[(1 << 32) - 1])
    yield 'M-4.1-names', folder(version(1, [group(WORKED)], [column('x', 0), column('x', 1, nullable=True)]))
    yield 'M-4.1-ids', folder(version(1, [group(WORKED)], [column('x', 0), column('y', 0)]))
    yield 'M-4.1-id', folder(version(1, [group(WORKED)], column_ids=0, layouts=[{}]))
    yield 'M-4.2-id', folder(version(1, [group(WORKED)], layouts=[{'x': 0, 'y': 1}]))
    yield 'M-4.2-ids', folder(version(1, [group(WORKED)], layouts=[{'x': 0, 'y': 0}]))
    yield 'M-4.2-layout', with_file(layout=1)
    yield 'M-4.3-dtype', with_column(dtype='f16')
    yield 'M-4.3-shape', with_column(shape=[None])
    yield 'M-4.3-cast', with_column(cast='f32')
    yield 'M-4.3-levels', with_column(nullable_levels=[False])
    yield 'M-4.3-missing', folder(version(1, [group(WORKED)], [column('y', 0)], [{'y': 0}]))
    nulls = reader.read(data_of('nullable'))
    stored = nulls['columns'][0]
    yield 'M-4.3-nulls', folder(version(1, [group(file('nullable'), samples=nulls['sample_count'])],
                                        [column(stored['name'], 0, dtype=stored['dtype'], shape=stored['shape'])],
                                        [{stored['name']: 0}]), **{WORKED['path']: 'nullable'})
    yield 'M-5.1-column-twice', folder(version(1, [group(WORKED, WORKED)]))
    yield 'M-5.1-no-file', folder(version(1, [group(WORKED)], [column('x', 0), column('y', 1)]))
    yield 'M-5.2-samples', folder(version(1, [group(WORKED, samples=3)]))
    yield 'M-5.2-footer', with_file(footer=WORKED['footer'] + 64)
    yield 'M-5.2-short', with_file(bytes=WORKED['bytes'] + 64)
    yield 'M-5.2-damaged', {**with_file(), WORKED['path']: damaged(data_of('worked'))}
    yield 'M-5.2-missing', with_file(path='nothing.tsl')
    yield 'M-7.1-replaced', with_file(content_id='00' * 16)
    groups = [group(WORKED), group(WORKED)]
    for name, changed in [('bytes', {'bytes': 1}), ('groups', {'groups': 3}), ('samples', {'samples': 5}), ('digest', {'digest': '00' * 16})]:
        entry, files = page(groups, **changed)
        yield 'M-6.1-' + name, {**folder(version(1, [], pages=[entry], dataset_id=id_of(groups))), **files}
    entry, files = page(groups)
    yield 'M-6.1-missing', folder(version(1, [], pages=[entry], dataset_id=id_of(groups)))
    for name, changed in [('M-2.3-empty-page', {'groups': 0}), ('M-2.3-page-without-samples', {'samples': 0})]:
        yield name, {**folder(version(1, [], pages=[{**entry, **changed}], samples=4, dataset_id=id_of(groups))), **files}
    entry, files = page(groups, 'tensilo dataset page 2')
    yield 'M-3.1-newer-page', {**folder(version(1, [], pages=[entry], dataset_id=id_of(groups))), **files}
    entry, files = page(groups, None)
    yield 'M-3.1-null-of-page', {**folder(version(1, [], pages=[entry], dataset_id=id_of(groups))), **files}
    entry, files = page([group({**WORKED, 'layout': 1})])
    yield 'M-6.2-layout', {**folder(version(1, [], pages=[entry], dataset_id=id_of(groups[:1]))), **files}
    entry, files = page(groups)
    without = version(1, [], [column('x', 0), column('y', 1)], pages=[entry], dataset_id=id_of(groups))
    yield 'M-6.2-no-file', {**folder(without), **files}


def damaged(data):
    """Returns the file with a wrong byte in its last footer."""
    footer = int.from_bytes(data[-32:][:8], 'little')
    return data[:footer + 70] + bytes([data[footer + 70] ^ 1]) + data[footer + 71:]


def reseal(data):
    return data[:-46] + b'"digest": "%s"}\n' % hashlib.sha256(data[:-46]).hexdigest()[:32].encode()


def tree():
    """Returns all files of the vectors. A data file is one line: the name of its vector in `vectors/valid.tar`."""
    found = {}
    for kind, vectors in ('valid', valid()), ('invalid', invalid()):
        for name, files in vectors:
            for path, data in files.items():
                if path.endswith('.tsl') and name != 'M-5.2-damaged':
                    path, data = path + '.is', vector_with(data).encode() + b'\n'
                found['manifests/%s/%s/%s' % (kind, name, path)] = data
            if kind == 'valid':
                found['manifests/valid/%s.json' % name] = json.dumps(read(files), indent=1).encode() + b'\n'
    return found


def vector_with(data):
    return next(name for name in ('worked', 'two-commits', 'nullable') if data_of(name) == data)


def read(files):
    """Returns what `manifest.py` reads from a folder with these files."""
    with tempfile.TemporaryDirectory() as folder:
        for path, data in files.items():
            path = pathlib.Path(folder) / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return manifest.read(folder)


def check_refusals():
    for name, files in invalid():
        rule = re.match(r'M-[0-9]+\.[0-9]+', name).group()
        try:
            read(files)
        except manifest.Broken as error:
            broken = str(error).split(':')[0]
            expected = {rule} | ({'M-4.2', 'M-5.1'} if rule == 'M-6.2' else set())
            if broken not in expected:
                sys.exit('%s is refused with %s' % (name, error))
        else:
            sys.exit('%s is not refused' % name)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    check = parser.parse_args().check
    check_refusals()
    path, made = VECTORS / 'manifests.tar', tree()
    wrong = archive.first_difference(path, made) if check else archive.write(path, made)
    if wrong:
        sys.exit('%s: not what make_manifests.py makes: %s' % (path.name, wrong))
