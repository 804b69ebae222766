"""Reads the list of free pages of an LMDB file.

LMDB never writes a page that the same transaction allocates and frees. If the last pages of the database are such
pages, a valid file is shorter than its page count says. To tell such a file from a truncated one, this module reads the
free list, which LMDB stores in a separate B-tree. Each value of the tree is a 64-bit count, followed by that many
64-bit page numbers.
"""

import struct

_HEADER_BYTES = 16
_BRANCH, _IS_ON_PAGES = 1, 1
_NO_PAGE = 2**64 - 1


def free_pages(file, page_bytes):
    """Returns the numbers of the pages that are free after the last transaction.

    Raises:
        ValueError, struct.error: the list is truncated or damaged.
    """

    def read(number, byte_count):
        file.seek(number * page_bytes)
        found = file.read(byte_count)
        if len(found) < byte_count:
            raise ValueError("the page is beyond the end of the file")
        return found

    metas = [read(number, page_bytes) for number in (0, 1)]
    meta = max(metas, key=lambda meta: struct.unpack_from("=Q", meta, _HEADER_BYTES + 128))
    free, seen, pages = set(), {_NO_PAGE}, list(struct.unpack_from("=Q", meta, _HEADER_BYTES + 64))
    while pages:
        number = pages.pop()
        if number in seen:
            continue
        seen.add(number)
        page = read(number, page_bytes)
        flags, end = struct.unpack_from("=HH", page, 10)
        for (node,) in struct.iter_unpack("=H", page[_HEADER_BYTES:end]):
            low, high, node_flags, key_bytes = struct.unpack_from("=4H", page, node)
            if flags & _BRANCH:
                pages.append(low | high << 16 | node_flags << 32)
                continue
            start, byte_count = node + 8 + key_bytes, low | high << 16
            numbers = page[start : start + byte_count]
            if node_flags & _IS_ON_PAGES:
                (first,) = struct.unpack_from("=Q", page, start)
                numbers = read(first, _HEADER_BYTES + byte_count)[_HEADER_BYTES:]
            count, *numbers = (number for (number,) in struct.iter_unpack("=Q", numbers))
            free.update(numbers[:count])
    return free
