// Decodes a block with one warp, and copies its samples to their positions in a batch. Read
// `warp.h` first: it explains how the kernels are written.
//
// A launch has a list of blocks, and a list of copies for each block. One launch therefore decodes
// a batch of many columns, and a block that contains several requested samples is decoded once. For
// each block, a warp
//
// 1. chooses the decoder of the encoding: `tiers.h` or `mapped_bins.h`. *Raw* and *constant* blocks
//    are copied from their stored bytes.
// 2. decodes the elements. If a single copy requests the whole block, without conversion, they are
//    decoded at its destination. Otherwise they are decoded to the *stage*, memory of the warp. All
//    steps of a decoder work in the memory of the elements; only marks need more.
// 3. copies the elements from the stage to the destinations, and converts them on the way.
//
// Invariant: whatever a block contains, a warp reads only its stored bytes and tables, and writes
// only to its own memory and to the destinations. A decoder checks the rules of its encoding, and
// returns the number of a broken one.
#pragma once

#include "mapped_bins.h"

// The conversion of elements on delivery.
enum Conversion : uint32_t { AS_STORED, BF16_TO_F32, F16_TO_F32 };

// The ids of encodings (chapter 5 of the specification).
enum Encoding : uint32_t { RAW = 0, CONSTANT = 1, EXPONENT_TIERS = 4, RESIDUAL_TIERS = 5, BINS = 6 };

// Elements of a block, and where they go. Must match the struct in `block_list.rs`.
struct Copy {
  uint8_t* to;
  uint32_t first, count;
};

// A block. Must match the struct in `block_list.rs`.
struct Block {
  const uint8_t* stored;  // a multiple of 16
  const uint8_t* tables;  // a multiple of 16
  uint32_t stored_bytes, table_bytes;
  uint32_t elements;
  uint8_t encoding, element_bytes, conversion;
  uint8_t zero_bits;  // bits that must be zero; only for elements of one byte
  uint32_t first_copy, copy_count;
};

// The memory in which a warp decodes.
struct WarpMemory {
  BinWorkspace* work;
  uint8_t* stage;  // a multiple of 16
  uint32_t stage_bytes;
};

constexpr uint32_t MAX_CODED_ELEMENTS = 65535;
constexpr uint32_t MAX_CODED_BYTES = 1 << 24;  // no valid block of `MAX_CODED_ELEMENTS` is longer

// Returns the bytes of the stage that a block needs: for its elements, and for two bitmaps of
// marks.
DEVICE uint32_t stage_bytes(uint32_t elements, uint32_t element_bytes) {
  return align_up(elements * element_bytes, 16) + 2 * mark_bytes(elements);
}

// Copies bytes in segments of the size of the type. Addresses and length are multiples of it.
template <class Segment> DEVICE void copy_segments(const uint8_t* from, uint8_t* to, uint64_t bytes) {
  const Segment* const source = reinterpret_cast<const Segment*>(from);
  Segment* const destination = reinterpret_cast<Segment*>(to);
  const uint64_t count = bytes / sizeof(Segment);
  each_lane([=](uint32_t lane) {
    for (uint64_t i = lane; i < count; i += LANES) destination[i] = source[i];
  });
}

struct alignas(16) Segment16 {
  uint64_t low, high;
};

// Copies bytes in the widest segments that addresses and length allow.
DEVICE void copy_bytes(const uint8_t* from, uint8_t* to, uint64_t bytes) {
  const uint64_t all = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to) | bytes;
  if (all % 16 == 0) {
    copy_segments<Segment16>(from, to, bytes);
  } else if (all % 4 == 0) {
    copy_segments<uint32_t>(from, to, bytes);
  } else if (all % 2 == 0) {
    copy_segments<uint16_t>(from, to, bytes);
  } else {
    copy_segments<uint8_t>(from, to, bytes);
  }
}

// Returns whether `zero_bits` are zero in all elements, which have one byte each.
DEVICE bool has_valid_bits(const uint8_t* elements, uint64_t count, uint32_t zero_bits) {
  return ballot([=](uint32_t lane) {
           uint32_t all = 0;
           for (uint64_t i = lane; i < count; i += LANES) all |= elements[i];
           return (all & zero_bits) != 0;
         }) == 0;
}

// Copies decoded elements to their destinations. `step` is the distance of elements: 0 for a
// constant block, which has one element, else 1.
STEP Fault deliver(const Block& block, const Copy* copies, const uint8_t* elements, uint32_t step) {
  const uint32_t width = block.element_bytes;
  for (uint32_t c = 0; c < block.copy_count; c++) {
    const Copy copy = copies[block.first_copy + c];
    if (copy.first > block.elements || copy.count > block.elements - copy.first) return 14;
    const uint8_t* const from = elements + static_cast<uint64_t>(copy.first) * width * step;
    if (block.zero_bits != 0 &&
        !has_valid_bits(from, step == 0 ? min_of(copy.count, 1) : copy.count, block.zero_bits)) {
      return 3;
    }
    if (block.conversion != AS_STORED) {
      if (reinterpret_cast<uintptr_t>(copy.to) % sizeof(uint32_t) != 0) return 14;
      const bool is_bf16 = block.conversion == BF16_TO_F32;
      const uint16_t* const source = reinterpret_cast<const uint16_t*>(from);
      uint32_t* const to = reinterpret_cast<uint32_t*>(copy.to);
      each_lane([=](uint32_t lane) {
        for (uint32_t i = lane; i < copy.count; i += LANES) {
          const uint32_t bits = source[i * step];
          to[i] = is_bf16 ? bits << 16 : f32_of_f16(bits);
        }
      });
    } else if (step == 0) {
      each_lane([=](uint32_t lane) {
        for (uint32_t i = lane; i < copy.count; i += LANES) {
          for (uint32_t byte = 0; byte < width; byte++) copy.to[static_cast<uint64_t>(i) * width + byte] = from[byte];
        }
      });
    } else {
      copy_bytes(from, copy.to, static_cast<uint64_t>(copy.count) * width);
    }
  }
  return NO_FAULT;
}

// Decodes a block of tiers or bins to `out`. Marks are always in the stage.
template <class E>
DEVICE Fault decode_coded(const Block& block, WarpMemory memory, E* out) {
  const Bytes stored{block.stored, block.stored_bytes}, tables{block.tables, block.table_bytes};
  const uint32_t count = block.elements;
  if (block.encoding == EXPONENT_TIERS) return exponent_tiers(stored, tables, out, count);
  if (block.encoding == RESIDUAL_TIERS) return residual_tiers(stored, tables, out, count);
  uint32_t* const marks = reinterpret_cast<uint32_t*>(memory.stage + align_up(count * sizeof(E), 16));
  return decode_bins(stored, BinTables{tables}, memory.work, marks, out, count);
}

// Decodes a block and delivers its samples. Returns the rule that the block breaks.
DEVICE Fault decode_block(const Block& block, const Copy* copies, WarpMemory memory) {
  const uint32_t width = block.element_bytes;
  if (width != 1 && width != 2 && width != 4 && width != 8) return 1;
  if (block.conversion != AS_STORED && width != 2) return 1;
  if (block.encoding == RAW) {
    const bool has_all = static_cast<uint64_t>(block.elements) * width == block.stored_bytes;
    return has_all ? deliver(block, copies, block.stored, 1) : 3;
  }
  if (block.encoding == CONSTANT) {
    return block.stored_bytes == width ? deliver(block, copies, block.stored, 0) : 4;
  }
  if (block.encoding < EXPONENT_TIERS || block.encoding > BINS) return 1;
  if (block.elements > MAX_CODED_ELEMENTS) return 14;
  if (block.stored_bytes > MAX_CODED_BYTES) return block.encoding == BINS ? 19 : 17;
  if (stage_bytes(block.elements, width) > memory.stage_bytes) return 14;
  uint8_t* out = memory.stage;
  bool is_in_place = false;
  if (block.copy_count == 1 && block.conversion == AS_STORED && block.zero_bits == 0) {
    const Copy copy = copies[block.first_copy];
    is_in_place = copy.first == 0 && copy.count == block.elements && reinterpret_cast<uintptr_t>(copy.to) % width == 0;
    if (is_in_place) out = copy.to;
  }
  Fault fault;
  if (width == 1) {
    fault = decode_coded(block, memory, out);
  } else if (width == 2) {
    fault = decode_coded(block, memory, reinterpret_cast<uint16_t*>(out));
  } else if (width == 4) {
    fault = decode_coded(block, memory, reinterpret_cast<uint32_t*>(out));
  } else {
    fault = decode_coded(block, memory, reinterpret_cast<uint64_t*>(out));
  }
  return fault != NO_FAULT || is_in_place ? fault : deliver(block, copies, out, 1);
}

// Samples that stay in the memory of a device in their stored form. Must match the struct in
// `driver.rs`.
struct Samples {
  const Block* blocks;  // the blocks of a part are consecutive
  uint64_t block_count;
  const uint32_t* places;   // for each sample: its first block, and its first element in that block
  const uint32_t* lengths;  // for each sample: its number of elements; null if all have `elements`
  uint64_t sample_count;
  uint32_t elements;
  uint8_t conversion, zero_bits, delivered_bytes;  // bytes of a delivered element
};

// Decodes a sample, which may span several blocks, to a row. Returns the rule that a block breaks,
// or 14 if the sample does not exist or is longer than a row.
DEVICE Fault gather_sample(const Samples& samples, uint64_t sample, uint8_t* to, uint64_t row_bytes,
                           WarpMemory memory) {
  if (sample >= samples.sample_count) return 14;
  uint64_t block_number = samples.places[2 * sample];
  uint32_t first = samples.places[2 * sample + 1];
  uint32_t left = samples.lengths == nullptr ? samples.elements : samples.lengths[sample];
  if (static_cast<uint64_t>(left) * samples.delivered_bytes > row_bytes) return 14;
  while (left > 0) {
    if (block_number >= samples.block_count) return 14;
    Block block = samples.blocks[block_number];
    if (first >= block.elements) return 14;
    const Copy copy{to, first, min_of(left, block.elements - first)};
    block.conversion = samples.conversion;
    block.zero_bits = samples.zero_bits;
    block.first_copy = 0;
    block.copy_count = 1;
    if (const Fault fault = decode_block(block, &copy, memory)) return fault;
    to += static_cast<uint64_t>(copy.count) * samples.delivered_bytes;
    left -= copy.count;
    first = 0;
    block_number++;
  }
  return NO_FAULT;
}

// Returns the report of a launch: the number of a block that breaks a rule in the upper half, and
// the rule in the lower. The minimum is the first such block. All ones means that no block breaks a
// rule.
DEVICE uint64_t report_of(uint32_t block, Fault fault) { return static_cast<uint64_t>(block) << 32 | fault; }
