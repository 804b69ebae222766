"""A second implementation of ORDER.md, which uses lists instead of arithmetic. It writes the vectors.

    order.py            writes vectors/order.json
    order.py --check    exits with 1 unless vectors/order.json is what it would write
"""
import argparse
import json
import pathlib
import struct
import sys
import zlib
from itertools import zip_longest

VECTORS = pathlib.Path(__file__).resolve().parent / 'vectors' / 'order.json'
MASK = (1 << 64) - 1
BLOCK = 4096


# 1. Numbers

def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def absorb(h, word):
    return mix(h ^ word) + 0x9E3779B97F4A7C15 & MASK


def key(*words):
    h = 0
    for word in words:
        h = absorb(h, word)
    return h


# 2. Permutation

def permute(k, n, p):
    if n <= 1:
        return p
    bits = (n - 1).bit_length()
    high = bits // 2
    low = bits - high
    while True:
        h, l = p >> low, p % (1 << low)
        for i in range(24 if bits <= 12 else 8):
            if i % 2 == 0:
                h ^= mix(absorb(k, i) ^ l) % (1 << high)
            else:
                l ^= mix(absorb(k, i) ^ h) % (1 << low)
        p = (h << low) + l
        if p < n:
            return p


def permuted(k, samples):
    return [samples[permute(k, len(samples), p)] for p in range(len(samples))]


# 3. Modes

def order(mode, n, seed, epoch):
    """Returns all samples of an epoch, in order. `mode` is its name, with run, window and streams if it is windowed."""
    name, *sizes = mode
    if name == 'sequential':
        return list(range(n))
    if name == 'shuffled':
        return permuted(key(1, seed, epoch), list(range(n)))
    return [sample for turn in zip_longest(*streams(sizes, n, seed, epoch)) for sample in turn if sample is not None]


def streams(sizes, n, seed, epoch):
    """Returns the samples of each stream, in order."""
    run, window, count = sizes
    runs = [list(range(start, min(n, start + run))) for start in range(0, n, run)]
    found = []
    for i in range(count):
        of_stream = permuted(key(2, seed, epoch, i), runs[i::count])
        windows = [sum(of_stream[start:start + window], []) for start in range(0, len(of_stream), window)]
        found.append(sum((permuted(key(3, seed, epoch, i, w), window) for w, window in enumerate(windows)), []))
    return found


def streams_of_positions(mode, n):
    """Returns the stream of each position."""
    if mode[0] != 'windowed':
        return [0] * n
    lengths = [len(samples) for samples in streams(mode[1:], n, 0, 0)]
    return [i for turn in range(max(lengths)) for i, length in enumerate(lengths) if turn < length]


# 4. Steps and ranks

def rev(stream, count):
    return sum(1 << bit for bit in range(count.bit_length() - 1) if stream & count >> 1 >> bit)


def division(mode, last_batch, n, batch, world, start=0):
    """Returns the positions of each rank in each step from `start` to the end of the epoch."""
    of_positions, count = streams_of_positions(mode, n), (mode[3:] or [1])[0]
    left, steps = list(range(start, n)), []
    while left:
        now, left = left[:batch * world], left[batch * world:]
        if len(now) < batch * world:
            if last_batch == 'drop':
                break
            if last_batch == 'pad':
                now = list(range(now[0], now[0] + batch * world))
        now.sort(key=lambda x: (rev(of_positions[x % n], count), x))
        cuts = [r * len(now) // world for r in range(world + 1)]
        steps.append([[x % n for x in sorted(now[start:end])] for start, end in zip(cuts, cuts[1:])])
    return steps


# 5. Views

def split(seed, start, end, n):
    return [s for s in range(n) if start <= key(4, seed, s) >> 32 < end]


def shares(samples, weights):
    counts = [samples * weight // sum(weights) for weight in weights]
    remainders = [samples * weight % sum(weights) for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-remainders[i], i))
    for i in by_remainder[:samples - sum(counts)]:
        counts[i] += 1
    return counts


def mixture(seed, run, n, components, epoch):
    """Returns (component, its sample) for each sample of the mixture. `components`: (samples, weight)."""
    component_of = []
    for start in range(0, n, BLOCK):
        counts = shares(min(BLOCK, n - start), [weight for _, weight in components])
        component_of += [i for i, count in enumerate(counts) for _ in range(count)]
    sums = [component_of.count(i) for i in range(len(components))]
    assert all(sums)
    taken, found, orders = [epoch * s for s in sums], [], {}
    for i in component_of:
        samples, of_component = components[i][0], taken[i] // components[i][0] & MASK
        if (i, of_component) not in orders:
            orders[i, of_component] = order(('windowed', run, 1, 1), samples, key(5, seed, i), of_component)
        found.append((i, orders[i, of_component][taken[i] % samples]))
        taken[i] += 1
    return found


# 6. State

def state(mode, last_batch, dataset_id, version, view, n, seed, epoch, position, receipt):
    name, *sizes = mode
    run, window, streams = sizes or (0, 0, 0)
    number = ['sequential', 'shuffled', 'windowed'].index(name)
    fields = struct.pack('<4sHBB16sQQQQQQIIQI', b'TSLO', 2, number, ['drop', 'pad', 'exact'].index(last_batch), dataset_id, version,
                         view, n, seed, epoch, position, run, window, receipt, streams)
    return fields + struct.pack('<I', zlib.crc32(fields))


def broken_states():
    """Yields (fault, bytes) for each broken state."""
    right = state(('windowed', 4, 2, 8), 'exact', bytes(16), 1, 0, 1000, 5, 2, 128, 7)
    faults = [('magic', 0, b'X'), ('version of an old order', 4, b'\1'), ('version', 4, b'\3'), ('mode', 6, b'\3'), ('a run without its mode', 6, b'\1'), ('tail', 7, b'\3'),
              ('n', 40, struct.pack('<Q', (1 << 63) + 1)), ('n, and position', 40, struct.pack('<Q', 128)), ('run', 72, bytes(4)),
              ('window', 76, bytes(4)), ('no streams', 88, bytes(4)),
              ('streams that are not a power of two', 88, b'\6'), ('streams', 88, struct.pack('<I', 2048))]
    for what, at, value in faults:
        fields = right[:at] + value + right[at + len(value):-4]
        yield what, fields + struct.pack('<I', zlib.crc32(fields))
    yield 'crc', right[:-1] + bytes([right[-1] ^ 1])
    yield 'length', right + bytes(1)


# 7. Receipt

def receipt(samples, epoch):
    return sum(key(6, sample, epoch) for sample in samples) & MASK


# 8. Substitutes

def substitute(n, seed, epoch, v, attempt):
    return key(7, seed, epoch, v, attempt) % n


# 9. Vectors

def hexes(numbers):
    return ['%016x' % number for number in numbers]


def pairs(numbers):
    """Formats numbers as texts: they can exceed 2^53, which JSON readers may round."""
    return [[str(a), str(b)] for a, b in numbers]


def vectors():
    seeds = [(0, 0), (1, 2), (2, 1), (MASK, 3)]
    modes = [('sequential',), ('shuffled',), ('windowed', 4, 3, 1), ('windowed', 4, 3, 2), ('windowed', 1, 1, 4), ('windowed', 7, 2, 4), ('windowed', 1, 2, 1024)]
    large = [4096, 4097, 1 << 16, 100_003, 1 << 32, (1 << 40) + 15, 10 ** 12, (1 << 63) - 25, 1 << 63]
    components = [(50, 3), (7, 1), (200, 2)]
    part = key(8, 2, 1, 0, 1 << 31)
    views = [(bytes(range(16)), 0), (bytes(16), part), (bytes([255] * 16), key(8, 1, 1, 3))]
    words = [struct.unpack('<QQ', dataset_id) for dataset_id, _ in views]

    def a_mixture(run, n, epoch, members):
        found = mixture(9, run, n, members, epoch)
        identity = key(8, 3, 9, run, n, *(word for (first, second), (_, view), (samples, weight) in zip(words, views, members)
                                          for word in (first, second, view, samples, weight)))
        numbers = range(n) if n <= 100 else range(0, n, n // 97)
        listed = [{'dataset_id': dataset_id.hex(), 'view': '%016x' % view, 'samples': samples, 'weight': weight}
                  for (dataset_id, view), (samples, weight) in zip(views, members)]
        return {'seed': '%016x' % 9, 'run': run, 'n': n, 'epoch': epoch, 'components': listed, 'identity': '%016x' % identity,
                'samples': [[v, *found[v]] for v in numbers]}

    def a_state(mode, last_batch):
        taken = order(mode, 1000, 5, 2)[:128]
        fields = bytes(range(16)), 3, part, 1000, 5, 2, 128, receipt(taken, 2)
        return {'mode': mode, 'tail': last_batch, 'dataset_id': fields[0].hex(), 'dataset_version': 3, 'view': '%016x' % part, 'n': 1000,
                'seed': '%016x' % 5, 'epoch': 2, 'position': 128, 'receipt': '%016x' % fields[-1], 'bytes': state(mode, last_batch, *fields).hex()}

    return {
        'keys': [{'words': hexes(words), 'key': '%016x' % key(*words)} for words in [(), (0,), (1, 2), (2, 1), (1, 2, 0), (MASK,)]],
        'permutations': [{'key': '%016x' % key(1, *seed), 'n': n, 'order': [permute(key(1, *seed), n, p) for p in range(n)]}
                         for seed in seeds for n in [0, 1, 2, 3, 4, 5, 8, 13, 64]],
        'large_permutations': [{'key': '%016x' % key(1, 1, 2), 'n': str(n),
                                'pairs': pairs((p, permute(key(1, 1, 2), n, p)) for p in [0, 1, n // 3, n - 1])} for n in large],
        'orders': [{'mode': mode, 'n': n, 'seed': '%016x' % seed, 'epoch': epoch, 'order': order(mode, n, seed, epoch)}
                   for mode in modes for n in [0, 1, 4, 5, 12, 13, 97] for seed, epoch in seeds[1:]],
        'large_orders': [{'mode': mode, 'n': n, 'seed': '%016x' % 1, 'epoch': 2,
                          'pairs': pairs((p, found[p]) for p in range(0, n, n // 41))}
                         for mode, n in [(('windowed', 64, 512, 1), 100_003), (('windowed', 64, 4, 64), 100_003), (('windowed', 5, 4096, 8), 50_001),
                                 (('windowed', 3, 2, 1024), 50_001), (('shuffled',), 50_001)]
                         for found in [order(mode, n, 1, 2)]],
        'divisions': [{'mode': mode, 'tail': last_batch, 'n': n, 'batch': batch, 'world': world, 'start': start,
                       'steps': division(mode, last_batch, n, batch, world, start)}
                      for mode in [('shuffled',), ('windowed', 2, 2, 4), ('windowed', 3, 1, 8)] for last_batch in ['drop', 'pad', 'exact']
                      for n, start in [(0, 0), (1, 0), (7, 0), (12, 0), (13, 6), (41, 16), (100, 0)]
                      for batch, world in [(1, 1), (2, 3), (5, 4), (40, 3)] if n * 3 > batch],
        'splits': [{'seed': '%016x' % seed, 'from': start, 'to': end, 'n': 100, 'samples': split(seed, start, end, 100),
                    'identity': '%016x' % key(8, 2, seed, start, end)}
                   for seed, start, end in [(1, 0, 1 << 31), (1, 1 << 31, 1 << 32), (7, 0, 1 << 32), (7, 5, 6)]],
        'lists': [{'samples': samples, 'identity': '%016x' % key(8, 1, len(samples), *samples)} for samples in [[], [3], [5, 1, 5]]],
        'mixtures': [a_mixture(*sizes, components) for sizes in [(1, 60, 0), (4, 60, 5), (16, 5000, 2), (3, 8192, 1)]]
        + [a_mixture(2, 4100, 3, [(10, 1), (20, 1), (30, 1)])],
        'states': [a_state(mode, last_batch) for mode, last_batch in [(('sequential',), 'drop'), (('shuffled',), 'pad'), (('windowed', 64, 512, 16), 'exact')]],
        'substitutes': [{'n': str(n), 'seed': '%016x' % seed, 'epoch': epoch, 'sample': str(sample),
                         'attempts': [str(substitute(n, seed, epoch, sample, attempt)) for attempt in range(3)]}
                        for n, sample in [(1, 0), (7, 3), (1000, 999), ((1 << 63) - 25, 1 << 40)] for seed, epoch in seeds[1:]],
        'broken_states': [{'wrong': what, 'bytes': fields.hex()} for what, fields in broken_states()],
    }


def text():
    """Returns the vectors as JSON, one line each, so that diffs are readable."""
    groups = []
    for name, members in vectors().items():
        lines = ',\n'.join('    ' + json.dumps(member, separators=(', ', ': ')) for member in members)
        groups.append('  %s: [\n%s\n  ]' % (json.dumps(name), lines))
    return '{\n' + ',\n'.join(groups) + '\n}\n'


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    if parser.parse_args().check:
        if VECTORS.read_text('utf-8') != text():
            sys.exit('%s is not what order.py writes' % VECTORS)
    else:
        VECTORS.write_text(text(), 'utf-8')
