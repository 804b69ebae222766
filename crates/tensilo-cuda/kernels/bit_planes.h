// Bits of a group of 64 elements, stored bit plane by bit plane (5.9 and 5.14 of the
// specification).
//
// Extra bits and details have a different length for each element. Plane `b` therefore has a bit
// only for the elements that are longer than `b`. A ballot finds them. The rank of an element in
// the ballot is the position of its bit in the plane. The number of ones is the length of the
// plane.
#pragma once

#include "bytes.h"

// A value for each element of a group of 64: lane `i` has elements `i` and `i + 32`.
template <class T> struct Pair {
  lanes<T> low, high;
};

// Returns the mask of the elements of a group whose lane and half satisfy `predicate`.
template <class Predicate> DEVICE uint64_t ballot_of_group(Predicate predicate) {
  const uint32_t low = ballot([=](uint32_t lane) { return predicate(lane, 0); });
  const uint32_t high = ballot([=](uint32_t lane) { return predicate(lane, 1); });
  return low | static_cast<uint64_t>(high) << 32;
}

// Adds the bits of a group to `values`, from bit `position` of the block on. An element has as many
// bits as `counts` says. Returns the position after them. A plane has at most 64 consecutive bits,
// so one word contains it.
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
