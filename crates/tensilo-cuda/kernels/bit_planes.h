// Bits of the elements of a group, bit plane by bit plane (5.9 and 5.14 of the specification).
#pragma once

#include "bytes.h"

// The elements of a group of 64: lane `i` has elements `i` and `i + 32`.
template <class T> struct Pair {
  lanes<T> low, high;
};

// The mask of the elements of a group for which `predicate` of lane and half holds.
template <class Predicate> DEVICE uint64_t ballot_of_group(Predicate predicate) {
  const uint32_t low = ballot([=](uint32_t lane) { return predicate(lane, 0); });
  const uint32_t high = ballot([=](uint32_t lane) { return predicate(lane, 1); });
  return low | static_cast<uint64_t>(high) << 32;
}

// Adds to `values` the bits of a group that begin at bit `position` of the block: of each element,
// as many as `counts` says. Returns the position after them.
//
// A plane of a group is at most 64 bits in a row, so that one word has all of it: the rank of an
// element among those that have the bit is its place in the word.
template <class T>
DEVICE uint32_t add_bit_planes(Bytes block, uint32_t position, const Pair<uint32_t>& counts, Pair<T>& values) {
  for (uint32_t bit = 0; bit < 8 * sizeof(T); bit++) {
    const uint64_t mask = ballot_of_group([=, &counts](uint32_t lane, uint32_t half) {
      return (half == 0 ? counts.low[lane] : counts.high[lane]) > bit;
    });
    if (mask == 0) break;
    const uint64_t word = block.bits(position);
    each_lane([=, &values](uint32_t lane) {
      const auto bit_of = [=](uint32_t i) {
        return static_cast<T>((mask >> i & 1) & (word >> (count_ones(mask & lowest_bits(i)) % 64)));
      };
      values.low[lane] |= static_cast<T>(bit_of(lane) << bit);
      values.high[lane] |= static_cast<T>(bit_of(lane + 32) << bit);
    });
    position += count_ones(mask);
  }
  return position;
}
