// Bounds-checked access to stored bytes, and the integer types of elements.
//
// A block may contain anything. Reads past the end therefore return zeros instead of failing: a
// decoder reads without a check at each step, and compares the ends of sections with the size.
#pragma once

#include "warp.h"

// The bytes of a block or of its tables. `at` is a multiple of 16.
struct Bytes {
  const uint8_t* at;
  uint32_t size;

  DEVICE uint32_t u8(uint32_t i) const { return i < size ? at[i] : 0; }
  DEVICE uint32_t u16(uint32_t i) const { return u8(i) | u8(i + 1) << 8; }
  DEVICE uint32_t u32(uint32_t i) const { return u16(i) | u16(i + 2) << 16; }

  // Returns `count` bytes, at most 8, as one integer.
  DEVICE uint64_t integer(uint32_t i, uint32_t count) const {
    uint64_t value = 0;
    RARE_LOOP for (uint32_t byte = 0; byte < count; byte++) {
      value |= static_cast<uint64_t>(u8(i + byte)) << (8 * byte);
    }
    return value;
  }

  // Returns 8 bytes. `i` is a multiple of 8.
  DEVICE uint64_t word(uint32_t i) const {
    if (i < size && size - i >= 8) return *reinterpret_cast<const uint64_t*>(at + i);
    return integer(i, 8);
  }

  // Returns 64 bits from bit `position` on. Bit `i` of the bytes is bit `i mod 8` of byte `i / 8`.
  DEVICE uint64_t bits(uint32_t position) const {
    const uint32_t first = position / 64 * 8, shift = position % 64;
    const uint64_t low = word(first) >> shift;
    return shift == 0 ? low : low | word(first + 8) << (64 - shift);
  }

  // Returns whether the bits from `position` to the end of its byte are zero.
  DEVICE bool rest_is_zero(uint32_t position) const {
    return position % 8 == 0 || u8(position / 8) >> (position % 8) == 0;
  }

  // Returns whether bytes `from` to `to - 1` are zero.
  DEVICE bool is_zero(uint32_t from, uint32_t to) const {
    uint32_t all = 0;
    RARE_LOOP for (uint32_t i = from; i < to; i++) all |= u8(i);
    return all == 0;
  }
};

// The rule that a block breaks: its number after `R-5.` in the specification, or `NO_FAULT`.
using Fault = uint32_t;
constexpr Fault NO_FAULT = 0;

// An unsigned integer of `W` bytes, the type in which a lane computes with it, and the signed type.
template <uint32_t W> struct Integer;
template <> struct Integer<1> { using Stored = uint8_t; using Wide = uint32_t; using Signed = int8_t; };
template <> struct Integer<2> { using Stored = uint16_t; using Wide = uint32_t; using Signed = int16_t; };
template <> struct Integer<4> { using Stored = uint32_t; using Wide = uint32_t; using Signed = int32_t; };
template <> struct Integer<8> { using Stored = uint64_t; using Wide = uint64_t; using Signed = int64_t; };
template <class E> using Wide = typename Integer<sizeof(E)>::Wide;
template <class E> using Signed = typename Integer<sizeof(E)>::Signed;
