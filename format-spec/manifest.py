"""A second reader of manifests, written from MANIFEST.md, which checks the files of a dataset with `reader.py`.

    manifest.py DIR [VERSION]            the dataset as one line of JSON, after all checks
    manifest.py --verify DIR [VERSION]   "ok", or the first rule that is broken
"""
import argparse
import hashlib
import json
import math
import pathlib
import re
import sys

import reader

SEAL = re.compile(rb'"digest": "([0-9a-f]{32})"}\n\Z')
HEX = re.compile(r'[0-9a-f]{32}\Z')
LARGEST = (1 << 53) - 1
FEATURES = ()  # none has been assigned


class Broken(Exception):
    pass


def need(condition, rule, what):
    if not condition:
        raise Broken('%s: %s' % (rule, what))


# 2. Text

def digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def unique(pairs):
    need(len({name for name, _ in pairs}) == len(pairs), 'M-2.2', 'a member occurs twice')
    return dict(pairs)


def refuse_number(text):
    raise Broken('M-2.3: %s is not a number of this format' % text)


def refuse_constant(text):
    raise Broken('M-2.2: %s is not JSON' % text)


def whole_number(text):
    need(not text.startswith('-') and int(text) <= LARGEST, 'M-2.3', '%s is out of range' % text)
    return int(text)


def unseal(data, limit):
    need(len(data) <= limit, 'M-2.4', '%d bytes' % len(data))
    seal = SEAL.search(data)
    need(seal, 'M-2.1', 'the text does not end with a digest')
    need(digest(data[:seal.start()]).encode() == seal.group(1), 'M-2.1', 'the digest does not match the text')
    try:
        text = data.decode('utf-8')
        found = json.loads(text, object_pairs_hook=unique, parse_float=refuse_number, parse_int=whole_number,
                           parse_constant=refuse_constant)
        json.dumps(found, ensure_ascii=False).encode('utf-8')  # no lone surrogates
    except (ValueError, RecursionError) as error:
        raise Broken('M-2.2: %s' % error)
    return found


def members(value, names, optional=()):
    need(isinstance(value, dict), 'M-2.2', 'an object is missing')
    need(set(names) <= value.keys() <= {*names, *optional}, 'M-2.2', 'the members are %s' % sorted(value))
    return [value.get(name) for name in (*names, *optional)]


def number(value, min_value=0, max_value=LARGEST):
    need(isinstance(value, int) and not isinstance(value, bool), 'M-2.2', '%r is not a number' % (value,))
    need(min_value <= value <= max_value, 'M-2.3', '%d is out of range' % value)
    return value


def of_type(kind, value):
    need(isinstance(value, kind), 'M-2.2', '%r is not a %s' % (value, kind.__name__))
    return value


def hexadecimal(value):
    need(HEX.match(of_type(str, value)), 'M-2.2', '%r is not an id' % value)
    return value


def path_of(value):
    good = 0 < len(of_type(str, value).encode()) <= 1024 and not re.search(r'[\\:\x00-\x1f\x7f]', value)
    parts = value.split('/')
    good = good and all(part not in ('', '.', '..') for part in parts) and parts[0].lower() != 'manifest'
    need(good, 'M-1.3', 'the path %r' % value)
    return value


# 3 to 6. Versions, columns, groups, pages

def metadata_of(value, rule):
    for key, text in of_type(dict, value).items():
        need(0 < len(key.encode()) <= 1024 and len(of_type(str, text).encode()) <= 16 << 20, rule, 'the metadata of %r' % key)
    need(len(value) <= 65536, rule, '%d entries of metadata' % len(value))
    return value


def column_of(value):
    (column_id, name, dtype, shape, nullable, metadata, levels, cast) = members(
        value, ('id', 'name', 'dtype', 'shape', 'nullable', 'metadata'), ('nullable_levels', 'cast'))
    number(column_id)
    of_type(bool, nullable)
    named = 0 < len(of_type(str, name).encode()) <= 1024 and not re.search(r'[\x00-\x1f\x7f]', name)
    need(named, 'M-4.1', 'the column name %r' % name)
    need(dtype in reader.DTYPES[1:], 'M-4.1', 'the dtype %r' % (dtype,))
    need(len(of_type(list, shape)) <= 16, 'M-4.1', 'the rank %d' % len(shape))
    need(all(extent is None or number(extent) < (1 << 32) - 1 for extent in shape), 'M-4.1', 'an extent')
    inner = math.prod(extent for extent in shape if extent is not None)
    need(inner * reader.ELEMENT_BYTES[reader.DTYPES.index(dtype)] <= reader.MAX_CHUNK, 'M-4.1', 'the size of an item')
    need(dtype not in ('bytes', 'utf8') or shape == [None], 'M-4.1', 'the shape of a %s column' % dtype)
    if 'nullable_levels' in value:
        need(1 <= len(of_type(list, levels)) <= 16, 'M-4.1', '%d levels' % len(levels))
        for level in levels:
            of_type(bool, level)
    if 'cast' in value:
        possible = cast in ('decimal', *reader.DTYPES[1:13]) and dtype in reader.DTYPES[1:5] and cast != dtype
        need(possible, 'M-4.1', 'a cast from %r to %s' % (cast, dtype))
    metadata_of(metadata, 'M-4.1')
    return value


def layout_of(value, column_ids):
    for name, column_id in of_type(dict, value).items():
        need(number(column_id) < column_ids, 'M-4.2', 'the id %d' % column_id)
    need(len(set(value.values())) == len(value), 'M-4.2', 'a column occurs twice in a layout')
    return value


def group_of(value, layouts, columns):
    samples, files = members(value, ('samples', 'files'))
    number(samples, 1)
    need(of_type(list, files), 'M-2.2', 'a group without files')
    found = []
    for file in files:
        layout, path, length, footer, content_id = members(file, ('layout', 'path', 'bytes', 'footer', 'content_id'))
        need(number(layout) < len(layouts), 'M-4.2', 'the layout %d' % layout)
        path_of(path)
        number(length)
        number(footer)
        hexadecimal(content_id)
        found += layouts[layout].values()
    need(len(set(found)) == len(found), 'M-5.1', 'a column is in two files of a group')
    for column in columns:
        need(column['nullable'] or column['id'] in found, 'M-5.1', 'no file has the column %r' % column['name'])
    return value


def version_of(data, version, read_page):
    value = unseal(data, 64 << 20)
    need(of_type(dict, value).get('format') == 'tensilo dataset 1', 'M-3.1', 'the format is %r' % value.get('format'))
    for feature in of_type(list, value.get('requires', [])):
        need(of_type(str, feature) in FEATURES, 'M-3.6', 'the feature %r is not known' % feature)
    (_, dataset_id, stated, parent, change, samples, order, metadata, column_ids, columns, layouts, pages, groups, _,
     time, _) = members(value, ('format', 'dataset_id', 'version', 'parent', 'change', 'samples', 'order', 'metadata',
                             'column_ids', 'columns', 'layouts', 'pages', 'groups', 'digest'), ('time', 'requires'))
    hexadecimal(dataset_id)
    of_type(str, change)
    if 'time' in value:
        number(time)
    need(number(stated) == version, 'M-3.2', 'the file of version %d has version %d' % (version, stated))
    if parent is not None:
        parent_version, parent_digest = members(parent, ('version', 'digest'))
        hexadecimal(parent_digest)
        need(1 <= number(parent_version) == version - 1, 'M-3.2', 'the parent is version %d' % parent_version)
    run, window, streams = members(order, ('run', 'window', 'streams'))
    for part in run, window:
        number(part, 1, (1 << 32) - 1)
    number(streams, 1, 1024)
    need(streams & streams - 1 == 0, 'M-2.3', '%d streams' % streams)
    metadata_of(metadata, 'M-3.4')
    number(column_ids)
    columns = [column_of(column) for column in of_type(list, columns)]
    for key in 'id', 'name':
        need(len({column[key] for column in columns}) == len(columns), 'M-4.1', 'two columns have the same %s' % key)
    need(all(column['id'] < column_ids for column in columns), 'M-4.1', 'the id of a column')
    layouts = [layout_of(layout, column_ids) for layout in of_type(list, layouts)]
    found = []
    for entry in of_type(list, pages):
        page_digest, length, count, page_samples = members(entry, ('digest', 'bytes', 'groups', 'samples'))
        page = read_page(hexadecimal(page_digest))
        need(page is not None and len(page) == number(length), 'M-6.1', 'the page %s' % page_digest)
        text = unseal(page, 4 << 20)
        need(of_type(dict, text).get('format') == 'tensilo dataset page 1', 'M-3.1', 'the format of a page')
        _, page_groups, sealed = members(text, ('format', 'groups', 'digest'))
        need(sealed == page_digest, 'M-6.1', 'the page has the digest %s' % sealed)
        page_groups = [group_of(group, layouts, columns) for group in of_type(list, page_groups)]
        stated = number(count, 1), number(page_samples, 1)
        need(stated == (len(page_groups), sum(group['samples'] for group in page_groups)), 'M-6.1', 'the sums of a page')
        found += page_groups
    found += [group_of(group, layouts, columns) for group in of_type(list, groups)]
    total = sum(group['samples'] for group in found)
    need(total <= LARGEST, 'M-2.3', 'the sum of the samples')
    need(total == number(samples), 'M-3.3', 'the sum of the samples')
    return value, columns, layouts, found


# 5.2, 7. Files

def check_file(folder, file, samples, layout, columns):
    try:
        data = (folder / file['path']).read_bytes()
    except OSError as error:
        raise Broken('M-5.2: %s' % error)
    need(len(data) >= file['bytes'], 'M-5.2', '%s has %d bytes' % (file['path'], len(data)))
    try:
        found = reader.read(data[:file['bytes']])
    except Exception as error:
        raise Broken('M-5.2: %s: %s' % (file['path'], error))
    need(found['content_id'] == file['content_id'], 'M-7.1', '%s has the content id %s' % (file['path'], found['content_id']))
    need(found['sample_count'] == samples, 'M-5.2', '%s has %d samples' % (file['path'], found['sample_count']))
    need(found['tail_bytes'] == 0, 'M-5.2', '%s has no commit that ends there' % file['path'])
    footer = int.from_bytes(data[file['bytes'] - 32:][:8], 'little')  # of the trailer
    need(footer == file['footer'], 'M-5.2', 'the footer of %s is at %d' % (file['path'], footer))
    stored = {column['name']: column for column in found['columns']}
    for name, column_id in layout.items():
        need(name in stored, 'M-4.3', '%s has no column %r' % (file['path'], name))
        for column in columns:
            if column['id'] == column_id:
                check_column(stored[name], column, file['path'])


def check_column(stored, column, path):
    cast = stored['cast'] and stored['cast']['source']
    levels, expected = stored.get('nullable_levels', []), column.get('nullable_levels', [])
    same = (stored['dtype'], stored['shape'], cast) == (column['dtype'], column['shape'], column.get('cast'))
    need(same and len(levels) == len(expected), 'M-4.3', 'the column %r of %s has another type' % (stored['name'], path))
    nulls = zip([stored['nullable'], *levels], [column['nullable'], *expected])
    need(all(may for has, may in nulls if has), 'M-4.3', 'the column %r of %s may have nulls' % (stored['name'], path))


def check_lineage(folder, value, groups):
    """Checks M-3.5 if the version before still exists."""
    if value['parent'] is None:
        ids = ''.join(file['content_id'] for group in groups for file in group['files'])
        expected = hashlib.sha256(bytes.fromhex(ids)).hexdigest()[:32]
        need(value['dataset_id'] == expected, 'M-3.5', 'the id does not match the files')
        return
    path = folder / 'manifest' / ('%010d.json' % value['parent']['version'])
    if path.exists():
        data = path.read_bytes()
        need(data[-35:-3].decode() == value['parent']['digest'], 'M-3.5', 'the digest of the parent')
        need(json.loads(data)['dataset_id'] == value['dataset_id'], 'M-3.5', 'the id differs from the id of the parent')


def newest(folder):
    names = [path.name for path in (folder / 'manifest').iterdir()]
    versions = [int(name[:10]) for name in names if re.match(r'[0-9]{10}\.json\Z', name)]
    return max((version for version in versions if version), default=None)


def read(folder, version=None):
    """Checks a version of a dataset, and returns its content."""
    folder = pathlib.Path(folder)
    version = version or newest(folder)
    need(version, 'M-1.2', 'the folder has no version')

    def read_page(page):
        path = folder / 'manifest' / 'pages' / (page + '.json')
        return path.read_bytes() if path.exists() else None

    data = (folder / 'manifest' / ('%010d.json' % version)).read_bytes()
    value, columns, layouts, groups = version_of(data, version, read_page)
    listed, start = [], 0
    for group in groups:
        for file in group['files']:
            check_file(folder, file, group['samples'], layouts[file['layout']], columns)
        listed.append({'start': start, 'samples': group['samples'],
                       'files': [{'path': file['path'], 'columns': layouts[file['layout']]} for file in group['files']]})
        start += group['samples']
    check_lineage(folder, value, groups)
    return {'dataset_id': value['dataset_id'], 'version': version, 'samples': value['samples'], 'order': value['order'],
            'metadata': value['metadata'], 'columns': columns, 'groups': listed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--verify', action='store_true')
    parser.add_argument('folder')
    parser.add_argument('version', nargs='?', type=int)
    given = parser.parse_args()
    try:
        found = read(given.folder, given.version)
    except Broken as error:
        print(error)
        sys.exit(1)
    print('ok' if given.verify else json.dumps(found))


if __name__ == '__main__':
    main()
