"""Checks `reader.py` with all vectors.

The reader must accept each valid vector and read the content of its JSON, and must refuse each invalid vector for the
rule that it breaks. Exits with 1 otherwise. Any other verifier passes if it does the same.
"""
import json
import pathlib
import sys

import archive
import reader

VECTORS = pathlib.Path(__file__).resolve().parent / 'vectors'


def problems():
    files = {**archive.read(VECTORS / 'valid.tar'), **archive.read(VECTORS / 'invalid.tar')}
    for vector in json.loads((VECTORS / 'manifest.json').read_text('utf-8'))['vectors']:
        name = vector['file']
        data = bytes.fromhex(' '.join(line.split('#')[0] for line in files[name].decode('utf-8').splitlines()))
        violation = reader.verify(data)
        if vector['valid'] and violation:
            yield '%s: refused: %s' % (name, violation)
        elif vector['valid'] and reader.read(data) != json.loads(files[name.replace('.hex', '.json')]):
            yield '%s: read as something else' % name
        elif not vector['valid'] and (violation and violation.rule) not in (vector['rule'], *vector.get('also', ())):
            yield '%s: expected %s, found %s' % (name, vector['rule'], violation or 'no violation')


if __name__ == '__main__':
    found = list(problems())
    print('\n'.join(found) or 'ok')
    sys.exit(1 if found else 0)
