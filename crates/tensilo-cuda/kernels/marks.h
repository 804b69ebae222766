// Marks (5.15 of the specification): which elements of a block are gaps or outliers.
//
// Stretches of unmarked and marked elements alternate, and their lengths are Golomb-Rice codes. A
// code starts where the code before it ends, so a single lane reads them all. It sets a bit for
// each marked element. All lanes then use this bitmap, where ranks are counts of bits.
#pragma once

#include "bytes.h"

constexpr uint32_t MAX_ONES = 16;  // of a code; after this many, its value is in 16 raw bits

struct Marks {
  const uint32_t* bitmap;
  uint32_t marked;  // the number of marked elements
  uint32_t end;     // the byte after the marks
  bool is_valid;

  DEVICE uint32_t word(uint32_t i) const { return bitmap[i]; }

  // Reads the marks of `count` elements from byte `start` of a block. `memory` has a bit for each
  // element.
  STEP static Marks read(Bytes block, uint32_t start, uint32_t count, uint32_t rice_unmarked, uint32_t rice_marked,
                           uint32_t* memory) {
    const uint32_t words = ceil_div(count, 32);
    each_lane([=](uint32_t lane) {
      for (uint32_t i = lane; i < words; i += LANES) memory[i] = 0;
    });
    lanes<uint32_t> position;  // the end of the marks in bits; 0 if they are not valid
    each_lane([=, &position](uint32_t lane) {
      if (lane == 0) position[lane] = read_serially(block, 8 * start, count, rice_unmarked, rice_marked, memory);
    });
    const uint32_t end = value_of(position, 0);
    lanes<uint32_t> ones;
    each_lane([=, &ones](uint32_t lane) {
      ones[lane] = 0;
      for (uint32_t i = lane; i < words; i += LANES) ones[lane] += count_ones(memory[i]);
    });
    const uint32_t marked = exclusive_sum(ones);
    const bool is_valid = end != 0 && ceil_div(end, 8) <= block.size && block.rest_is_zero(end);
    return {memory, marked, ceil_div(end, 8), is_valid};
  }

 private:
  // Sets the bits of marked elements. Returns the position after the marks, or 0 if they are not
  // valid.
  DEVICE static uint32_t read_serially(Bytes block, uint32_t position, uint32_t count, uint32_t rice_unmarked,
                                       uint32_t rice_marked, uint32_t* memory) {
    bool is_marked = false, is_first = true;
    uint32_t i = 0;
    do {
      const uint32_t parameter = is_marked ? rice_marked : rice_unmarked;
      const uint64_t bits = block.bits(position);
      uint32_t ones = 0;
      while (ones < MAX_ONES && (bits >> ones & 1) != 0) ones++;
      uint32_t value, length;
      if (ones < MAX_ONES) {
        value = ones << parameter | static_cast<uint32_t>(bits >> (ones + 1) & lowest_bits(parameter));
        length = ones + 1 + parameter;
      } else {
        value = static_cast<uint32_t>(bits >> MAX_ONES & 0xFFFF);
        length = MAX_ONES + 16;
        if (value >> parameter < MAX_ONES) return 0;
      }
      position += length;
      const uint32_t elements = is_first ? value : value + 1;
      if (elements > count - i || position > 8 * block.size) return 0;
      if (is_marked) {
        for (uint32_t element = i; element < i + elements; element++) memory[element / 32] |= 1u << element % 32;
      }
      i += elements;
      is_marked = !is_marked;
      is_first = false;
    } while (i < count);
    return position;
  }
};
