// A block of bins with its mapping and options (5.14 and 5.15 of the specification).
//
// A block stores its layers from the outside in: gap marks, patches and details of the mapping,
// outlier marks, filter codes, bins. Decoding finds the sections in this order and undoes the
// layers in reverse: bins give integers, outliers add their upper bits, filters or a transform turn
// residuals into numbers, the mapping turns numbers into elements, and gaps are filled in.
//
// Layers share the memory of the elements. Numbers are decoded to its end, and elements are written
// from its start. A number has at most as many bytes as an element, so an element never overwrites
// a number that is still needed. The elements between gaps are expanded in the same way. Only marks
// need memory of their own.
#pragma once

#include "bins.h"
#include "floats.h"
#include "marks.h"

// Undoes *filters*. Rounding makes prediction serial, so each lane takes the numbers between two
// restarts.
STEP void undo_filters(BinTables tables, Codes codes, uint16_t* k, uint32_t count) {
  constexpr uint32_t SEGMENT = 128;
  const uint32_t restart = tables.restart_segments() * SEGMENT, taps = tables.taps(), zero = tables.filter_zero();
  each_lane([=](uint32_t lane) {
    for (uint32_t start = lane * restart; start < count; start += LANES * restart) {
      const uint32_t end = min_of(start + restart, count);
      for (uint32_t i = start; i < end; i++) {
        const uint32_t filter = codes.get(i / SEGMENT);
        uint32_t sum = 2048;  // rounds; only bits 12 to 27 of the sum matter, so it may wrap
        for (uint32_t tap = 0; tap < min_of(taps, i - start); tap++) {
          const int32_t before = static_cast<int16_t>(k[i - 1 - tap] - zero);
          sum += static_cast<uint32_t>(tables.coefficient(filter, tap) * before);
        }
        k[i] = static_cast<uint16_t>(zero + (sum >> 12) + from_zigzag(k[i]));
      }
    }
  });
}

// Adds their bits above the window to the outliers.
template <class N>
STEP void add_uppers(Bytes block, Marks marks, uint32_t upper_bits, uint32_t low_bytes, N* y, uint32_t count) {
  uint32_t position = 8 * marks.end;
  for (uint32_t first = 0; first < count; first += LANES) {
    const uint32_t mask = marks.word(first / LANES);
    each_lane([=](uint32_t lane) {
      if ((mask >> lane & 1) == 0) return;
      const uint32_t rank = count_ones(mask & static_cast<uint32_t>(lowest_bits(lane)));
      const uint64_t upper = block.bits(position + rank * upper_bits) & lowest_bits(upper_bits);
      const uint32_t shift = 8 * low_bytes + 16;
      if (shift < 8 * sizeof(N)) y[first + lane] |= static_cast<N>(static_cast<Wide<N>>(upper) << shift);
    });
    position += count_ones(mask) * upper_bits;
  }
}

// The sections that a mapping adds to a block, from `patch_count` to the details. `positions`,
// `patches` and `details` are offsets of sections; `numbers` is the offset after them.
struct MappedHeader {
  uint32_t patch_count, positions, patches, details, numbers;
  int64_t base;
  bool is_valid;

  DEVICE static MappedHeader read(Bytes block, uint32_t at, BinTables tables, uint32_t element_bytes, uint32_t count) {
    MappedHeader header{0, at, at, at, at, 0, true};
    const uint32_t mapping = tables.mapping();
    if (mapping == BinTables::NONE) return header;
    header.patch_count = block.u16(at);
    at += 2;
    if (mapping != BinTables::DICTIONARY) {
      header.base = static_cast<int64_t>(block.integer(at, 8));
      at += 8;
    }
    uint32_t detail_bytes = 0;
    if (mapping == BinTables::FLOAT_MULTIPLE && tables.detail_bits() > 0) {
      detail_bytes = block.u32(at);
      at += 4;
    }
    header.positions = at;
    header.patches = at + 2 * header.patch_count;
    header.details = header.patches + element_bytes * header.patch_count;
    header.is_valid = header.details <= block.size && detail_bytes <= block.size - header.details;
    header.numbers = header.details + (header.is_valid ? detail_bytes : 0);
    const MappedHeader copy = header;
    const uint32_t wrong = ballot([=](uint32_t lane) {
      bool is_wrong = false;
      for (uint32_t i = lane; i < copy.patch_count; i += LANES) {
        const uint32_t position = block.u16(copy.positions + 2 * i);
        is_wrong = is_wrong || position >= count || (i > 0 && block.u16(copy.positions + 2 * i - 2) >= position);
      }
      return is_wrong;
    });
    header.is_valid = header.is_valid && wrong == 0;
    return header;
  }
};

// Numbers of 1, 2, 4 or 8 bytes.
struct Numbers {
  const uint8_t* at;
  uint32_t bytes;

  DEVICE uint64_t get(uint32_t i) const {
    if (bytes == 1) return at[i];
    if (bytes == 2) return reinterpret_cast<const uint16_t*>(at)[i];
    if (bytes == 4) return reinterpret_cast<const uint32_t*>(at)[i];
    return reinterpret_cast<const uint64_t*>(at)[i];
  }
};

// Writes the elements of numbers, which are at the end of the memory of the elements.
template <class E>
STEP Fault map_numbers(Bytes block, BinTables tables, const MappedHeader& header, Numbers numbers, E* out,
                       uint32_t count) {
  const uint32_t mapping = tables.mapping();
  const FloatMultiple multiple{tables.float_type(), tables.detail_bits(), tables.divisor(), tables.exponent()};
  const E base = static_cast<E>(header.base), factor = static_cast<E>(tables.factor());
  uint32_t position = 8 * header.details;
  bool is_right = true;
  for (uint32_t first = 0; first < count; first += GROUP) {
    Pair<uint64_t> k;
    each_lane([=, &k](uint32_t lane) {
      k.low[lane] = first + lane < count ? numbers.get(first + lane) : 0;
      k.high[lane] = first + lane + 32 < count ? numbers.get(first + lane + 32) : 0;
    });
    Pair<uint32_t> details;
    if (mapping == BinTables::FLOAT_MULTIPLE) {
      Pair<uint32_t> lengths;
      each_lane([=, &k, &lengths, &details](uint32_t lane) {
        const auto set = [=](uint32_t i, uint64_t& number, uint32_t& length, uint32_t& detail) {
          number = static_cast<uint64_t>(multiple.sum(header.base, number));
          length = i < count ? multiple.detail_length(static_cast<int64_t>(number)) : 0;
          detail = 0;
        };
        set(first + lane, k.low[lane], lengths.low[lane], details.low[lane]);
        set(first + lane + 32, k.high[lane], lengths.high[lane], details.high[lane]);
      });
      position = add_bit_planes(block, position, lengths, details);
    } else if (mapping == BinTables::DICTIONARY) {
      const uint64_t beyond = ballot_of_group([=, &k](uint32_t lane, uint32_t half) {
        const uint32_t i = first + lane + 32 * half, dictionary = i % tables.dictionary_count();
        const uint32_t start = dictionary == 0 ? 0 : tables.dictionary_end(dictionary - 1);
        const uint64_t number = half == 0 ? k.low[lane] : k.high[lane];
        return i < count && number >= tables.dictionary_end(dictionary) - start;
      });
      is_right = is_right && beyond == 0;
    }
    each_lane([=, &k, &details](uint32_t lane) {
      for (uint32_t half = 0; half < 2; half++) {
        const uint32_t i = first + lane + 32 * half;
        const uint64_t number = half == 0 ? k.low[lane] : k.high[lane];
        if (i >= count) continue;
        if (mapping == BinTables::DICTIONARY) {
          const uint32_t dictionary = i % tables.dictionary_count();
          const uint32_t start = dictionary == 0 ? 0 : tables.dictionary_end(dictionary - 1);
          const uint32_t at = tables.values_at() + (start + static_cast<uint32_t>(number)) * sizeof(E);
          out[i] = static_cast<E>(tables.bytes.integer(at, sizeof(E)));
        } else if (mapping == BinTables::INT_MULTIPLE) {
          out[i] = static_cast<E>(static_cast<Wide<E>>(base) + static_cast<Wide<E>>(number) * factor);
        } else {
          const uint32_t detail = half == 0 ? details.low[lane] : details.high[lane];
          out[i] = static_cast<E>(multiple.element(static_cast<int64_t>(number), detail));
        }
      }
    });
  }
  if (mapping == BinTables::FLOAT_MULTIPLE && multiple.detail_bits > 0) {
    is_right = is_right && ceil_div(position, 8) == header.numbers && block.rest_is_zero(position);
  }
  each_lane([=](uint32_t lane) {
    for (uint32_t i = lane; i < header.patch_count; i += LANES) {
      const uint32_t at = block.u16(header.positions + 2 * i);
      if (at < count) out[at] = static_cast<E>(block.integer(header.patches + i * sizeof(E), sizeof(E)));
    }
  });
  return is_right ? NO_FAULT : 21;
}

// Returns the bytes of a bitmap of `count` elements.
DEVICE uint32_t mark_bytes(uint32_t count) { return 4 * ceil_div(count, 32); }

// Decodes the numbers of a block. Byte `at` is the start of the outlier marks, or of the section
// that follows them.
template <class N>
STEP Fault decode_numbers(Bytes block, uint32_t at, BinTables tables, BinWorkspace* work, uint32_t* marks_memory,
                          N* out, uint32_t count) {
  bool is_valid;
  const Transform transform = Transform::read(tables.bytes, is_valid);
  if (!is_valid || transform.kind == Transform::ROTATE) return 7;
  Marks outliers{};
  if (tables.has(BinTables::OUTLIERS)) {
    outliers = Marks::read(block, at, count, tables.outlier_rice(false), tables.outlier_rice(true), marks_memory);
    if (!outliers.is_valid) return 23;
    const uint32_t end = 8 * outliers.end + outliers.marked * tables.upper_bits();
    at = ceil_div(end, 8);
    if (at > block.size || !block.rest_is_zero(end)) return 23;
  }
  const Codes filter_codes{block, at, tables.filter_count()};
  if (tables.has(BinTables::FILTERS)) {
    at = filter_codes.end(ceil_div(count, 128));
    if (at > block.size || !filter_codes.are_valid(ceil_div(count, 128))) return 23;
  }
  if (const Fault fault = decode_windows(block, at, tables, work, out, count)) return fault;
  if (tables.has(BinTables::OUTLIERS)) {
    add_uppers(block, outliers, tables.upper_bits(), tables.low_bytes(), out, count);
  }
  if constexpr (sizeof(N) == 2) {
    if (tables.has(BinTables::FILTERS)) undo_filters(tables, filter_codes, out, count);
  }
  undo_transform(transform, out, count);
  return NO_FAULT;
}

// Decodes the elements of a block between the gaps. Byte `at` is the end of the gap marks.
template <class E>
STEP Fault decode_present(Bytes block, uint32_t at, BinTables tables, BinWorkspace* work, uint32_t* marks_memory,
                          E* out, uint32_t count) {
  if (tables.mapping() == BinTables::NONE) return decode_numbers(block, at, tables, work, marks_memory, out, count);
  const MappedHeader header = MappedHeader::read(block, at, tables, sizeof(E), count);
  if (!header.is_valid) return 21;
  const uint32_t number_bytes = tables.number_bytes();
  if (number_bytes == 0 || number_bytes > sizeof(E) || (number_bytes & (number_bytes - 1)) != 0) return 20;
  uint8_t* const numbers = reinterpret_cast<uint8_t*>(out + count) - number_bytes * count;
  const auto decode = [=](auto* typed) {
    return decode_numbers(block, header.numbers, tables, work, marks_memory, typed, count);
  };
  Fault fault;
  if (number_bytes == 1) {
    fault = decode(numbers);
  } else if (number_bytes == 2) {
    fault = decode(reinterpret_cast<uint16_t*>(numbers));
  } else if (number_bytes == 4) {
    fault = decode(reinterpret_cast<uint32_t*>(numbers));
  } else {
    fault = decode(reinterpret_cast<uint64_t*>(numbers));
  }
  return fault != NO_FAULT ? fault : map_numbers(block, tables, header, Numbers{numbers, number_bytes}, out, count);
}

// Decodes a block of *bins*. `marks_memory` has two bitmaps of `count` elements: one for gaps, one
// for outliers.
template <class E>
STEP Fault decode_bins(Bytes block, BinTables tables, BinWorkspace* work, uint32_t* marks_memory, E* out,
                       uint32_t count) {
  if (!tables.has(BinTables::GAPS)) {
    return decode_present(block, 0, tables, work, marks_memory, out, count);
  }
  const Marks gaps = Marks::read(block, 0, count, tables.gap_rice(false), tables.gap_rice(true), marks_memory);
  if (!gaps.is_valid) return 23;
  const E* const present = out + gaps.marked;
  uint32_t* const rest = marks_memory + mark_bytes(count) / 4;
  const Fault fault = decode_present(block, gaps.end, tables, work, rest, out + gaps.marked, count - gaps.marked);
  if (fault != NO_FAULT) return fault;
  const E filler = static_cast<E>(tables.filler());
  uint32_t before = 0;
  for (uint32_t first = 0; first < count; first += LANES) {
    const uint32_t mask = ~gaps.word(first / LANES) & static_cast<uint32_t>(lowest_bits(count - first));
    lanes<E> elements;
    each_lane([=, &elements](uint32_t lane) {
      const uint32_t rank = before + count_ones(mask & static_cast<uint32_t>(lowest_bits(lane)));
      elements[lane] = mask >> lane & 1 ? present[rank] : filler;
    });
    each_lane([=, &elements](uint32_t lane) {
      if (first + lane < count) out[first + lane] = elements[lane];
    });
    before += count_ones(mask);
  }
  return NO_FAULT;
}
