"""The files that EXAMPLES.md shows, the check that its hex is their bytes, and the check of the index of rules in SPEC.md.

In the text, a comment such as `<!-- bytes 192 to 366 of vectors/valid/example-x.hex -->` precedes an example. Each line
of the code blocks after it has an offset from the first of these bytes, at most 16 bytes in hex, and an explanation.
"""
import re

from vector_bins import bins
from vector_encoder import *

DOCUMENTS = 'SPEC.md', 'TIERS.md', 'BINS.md', 'EXAMPLES.md'  # the documents that share the numbers of sections and rules
MARK = re.compile(r'<!-- bytes (\d+) to (\d+) of vectors/(\S*) -->')
LINE = re.compile(r' *(\d+)  ((?:[0-9A-F]{2} ){0,15}[0-9A-F]{2})(?:  .*)?$')


def one_chunk(column, samples, encoding=RAW):
    f = Tsl([column])
    f.chunk(0, samples, encoding)
    return f.commit()


def example_vectors():
    """Yields (name, description, file) for each example."""
    values = [0x3F80] * 66
    values[3], values[5], values[64], values[65] = 0x4000, 0xBF00, 0x0000, 0x4040
    yield 'example-exponent-tiers', 'the example of 12.1', one_chunk(
        col('x', 'bf16', [66]), [el('H', *values)], exponent_tiers('rotate', ranks=b'\x7F\x80\x7E'))
    rows = [[100 + 3 * i + 2 * j for j in range(11)] for i in range(6)]
    rows[2][4] += 5
    yield 'example-residual-tiers', 'the example of 12.2', one_chunk(
        col('x', 'i16', [6, 11]), [el('h', *sum(rows, []))],
        residual_tiers('lorenzo', ranks=b'\0\3\4', restart=66, stride=11))
    packings = {0: lambda s: (0, s), 1: lambda s: (2, frame(s))}
    yield 'example-planes-zstd', 'the example of 12.3', one_chunk(
        col('x', 'i32', [4]), [el('i', 1000, 1001, 1003, 1002)],
        planes_zstd(8, lambda j, s: packings.get(j, lambda s: (1, s[:1]))(s), 'delta', restart=4, stride=1))
    yield 'example-parts', 'the example of 12.4', one_chunk(
        col('x', 'i16', [None, None], nullable=True),
        [((2, 3), el('h', 1, 2, 3, 4, 5, 6)), None, ((1, 1), el('h', -7))])
    f = Tsl([col('x', 'utf8', [None], nullable=True, lists=[True])], flags=(1, 0, 0))
    f.chunk(0, [['hi', '', None], None, []])
    yield 'example-nested', 'the example of 12.5', f.commit()
    rows = [[0x3F80] * 10 for _ in range(2)]
    rows[0][3], rows[1][2], rows[1][9] = 0x4000, 0xBF00, 0x0000
    f = Tsl([col('x', 'bf16', [10])])
    f.chunk(0, [el('H', *row) for row in rows],
            exponent_tiers('rotate', ranks=b'\x7F\x80\x7E', ends=(10, 20)))
    yield 'example-blocks', 'the example of 12.6', f.commit()
    values = [0x3F80, 0x3F80, 0x3F00, 0x3F80, 0x4000, 0x3F80, 0xBF80, 0x3E80]
    yield 'example-bins', 'the example of 12.7', one_chunk(
        col('x', 'bf16', [8]), [el('H', *values)], bins((8,), (14, 14, 15), frequencies=[(0, (192, 32, 32))]))


def bytes_of(hex_file):
    return bytes.fromhex(' '.join(line.split('#')[0] for line in hex_file.splitlines()))


def index_of_rules(documents):
    """Returns the rows of the index of chapter 16, which says where rules are, given the texts of the documents by name."""
    sections = {}
    for name, text in documents.items():
        section, where = '', '' if name == 'SPEC.md' else ' (`%s`)' % name
        for line in text.splitlines():
            heading, rule = re.match(r'#+ (\d+(?:\.\d+)?)\.? ', line), re.match(r'\* \*\*R-(\d+)\.(\d+)\*\*', line)
            section = heading[1] if heading else section
            if rule:
                assert (int(rule[1]), int(rule[2])) not in sections, rule[0] + ' is defined twice'
                sections[int(rule[1]), int(rule[2])] = section + where
    rows = []
    for (chapter, number), section in sorted(sections.items()):
        if rows and rows[-1][2] == section and rows[-1][1] == (chapter, number - 1):
            rows[-1][1] = chapter, number
        else:
            rows.append([(chapter, number), (chapter, number), section])
    name = 'R-%d.%d'
    return ['| %s | %s |' % (name % a if a == b else name % a + ' to ' + name % b, section) for a, b, section in rows]


def wrong_index(documents):
    rows, spec = index_of_rules(documents), documents['SPEC.md']
    found = [line for line in spec[spec.index('## 16.'):].splitlines() if line.startswith('| R-')]
    return [] if found == rows else ['SPEC.md: the index of rules in chapter 16 is:', *rows]


def wrong_examples(text, files):
    """Returns the problems of the hex in EXAMPLES.md, given the vectors by name."""
    shown, problems, marks = {}, [], 0
    for number, line in enumerate(text.splitlines() + ['<!-- bytes 0 to 0 of vectors/ -->'], 1):
        mark, row = MARK.match(line), LINE.match(line)
        if mark:
            if marks and sorted(shown) != list(range(len(expected))):
                problems.append('EXAMPLES.md:%d: the example before this line does not show all of its bytes' % number)
            begin, end, name = int(mark[1]), int(mark[2]), mark[3]
            expected, shown, marks = bytes_of(files[name])[begin:end] if name else b'', {}, marks + 1
        elif row and marks:
            for at, byte in enumerate(bytes.fromhex(row[2]), int(row[1])):
                if at in shown or expected[at:at + 1] != bytes([byte]):
                    problems.append('EXAMPLES.md:%d: byte %d differs from the vector, or is shown twice' % (number, at))
                shown[at] = byte
    return problems + ['EXAMPLES.md: there are no examples'] * (marks < 9)
