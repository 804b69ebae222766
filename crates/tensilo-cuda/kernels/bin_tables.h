// The tables of bins in the layout for devices, which `src/codec/bins/tables.rs` of the library
// writes after it has checked them.
//
// In a file, tables take as few bytes as possible, and the offset of a field depends on the fields
// before it. Here, fields have fixed offsets, and dictionaries contain values instead of steps.
// Rewriting takes one pass per chunk, and all blocks of the chunk use the result. Values are
// clamped to their limits nevertheless, so that no content leads outside of an array.
#pragma once

#include "bytes.h"

constexpr uint32_t MAX_BINS = 64, MAX_CLASSES = 4, MAX_TAPS = 16, MAX_FILTERS = 16;

struct BinTables {
  enum Mapping : uint32_t { NONE, DICTIONARY, FLOAT_MULTIPLE, INT_MULTIPLE };
  enum Option : uint32_t { GAPS = 16, OUTLIERS = 32, FILTERS = 64 };

  Bytes bytes;

  // Bytes 0 to 15 are the transform.
  DEVICE uint32_t low_bytes() const { return min_of(bytes.u8(16), 6); }
  DEVICE uint32_t class_count() const { return min_of(bytes.u8(17), MAX_CLASSES); }
  DEVICE uint32_t mapping() const { return bytes.u8(18) & 15; }
  DEVICE bool has(Option option) const { return (bytes.u8(18) & option) != 0; }
  DEVICE uint32_t number_bytes() const { return bytes.u8(19); }
  DEVICE uint32_t float_type() const { return bytes.u8(20); }
  DEVICE uint32_t detail_bits() const { return min_of(bytes.u8(21), 15); }
  DEVICE uint32_t gap_rice(bool is_marked) const { return bytes.u8(is_marked ? 23 : 22) & 15; }
  DEVICE uint32_t upper_bits() const { return min_of(bytes.u8(24), 48); }
  DEVICE uint32_t outlier_rice(bool is_marked) const { return bytes.u8(is_marked ? 26 : 25) & 15; }
  DEVICE uint32_t taps() const { return min_of(bytes.u8(27), MAX_TAPS); }
  DEVICE uint32_t filter_count() const { return min_of(bytes.u8(28), MAX_FILTERS); }
  DEVICE uint32_t dictionary_count() const { return max_of(bytes.u8(29), 1); }
  DEVICE uint32_t filter_zero() const { return bytes.u16(30); }
  DEVICE uint32_t restart_segments() const { return max_of(bytes.u16(32), 1); }
  DEVICE int32_t exponent() const { return static_cast<int16_t>(bytes.u16(34)); }
  DEVICE uint32_t divisor() const { return bytes.u32(36); }
  DEVICE uint64_t filler() const { return bytes.integer(40, 8); }
  DEVICE uint64_t factor() const { return bytes.integer(48, 8); }
  DEVICE uint32_t bits(uint32_t bin) const { return bytes.u8(56 + bin) & 15; }
  DEVICE uint32_t frequency(uint32_t c, uint32_t bin) const { return bytes.u8(120 + c * MAX_BINS + bin); }

  // Returns a coefficient. Coefficients are stored filter by filter.
  DEVICE int32_t coefficient(uint32_t filter, uint32_t tap) const {
    return static_cast<int16_t>(bytes.u16(376 + 2 * (filter * MAX_TAPS + tap)));
  }
  // Returns the index after the last value of dictionary `i`.
  DEVICE uint32_t dictionary_end(uint32_t i) const { return bytes.u32(888 + 4 * i); }
  DEVICE uint32_t values_at() const { return align_up(888 + 4 * dictionary_count(), 8); }
};

// Codes of 0, 1, 2 or 4 bits, as few as the number of choices needs: class codes and filter codes.
struct Codes {
  Bytes block;
  uint32_t at, choices;

  DEVICE uint32_t width() const { return choices <= 2 ? choices - 1 : choices <= 4 ? 2 : 4; }
  DEVICE uint32_t get(uint32_t i) const {
    const uint32_t bit = i * width();
    return width() == 0 ? 0 : min_of(block.u8(at + bit / 8) >> (bit % 8) & ((1u << width()) - 1), choices - 1);
  }
  DEVICE uint32_t end(uint32_t count) const { return at + ceil_div(count * width(), 8); }

  // Returns whether all codes are less than `choices`, and the padding bits are zero.
  DEVICE bool are_valid(uint32_t count) const {
    const Codes codes = *this;
    const uint32_t w = width();
    const uint32_t wrong = ballot([=](uint32_t lane) {
      bool is_wrong = false;
      for (uint32_t i = lane; i < count && w > 0; i += LANES) {
        const uint32_t bit = i * w;
        is_wrong = is_wrong || (codes.block.u8(codes.at + bit / 8) >> (bit % 8) & ((1u << w) - 1)) >= codes.choices;
      }
      return is_wrong;
    });
    const uint32_t bits = count * w;
    return wrong == 0 && (bits % 8 == 0 || block.u8(at + bits / 8) >> (bits % 8) == 0);
  }
};
