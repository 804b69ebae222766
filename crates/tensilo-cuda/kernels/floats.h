// Floats: integers divided by a constant (*float multiple*, 5.14 of the specification), and
// conversions between f32, bf16 and f16.
//
// A decoded float must have the same bits on every device. The specification rounds after each
// operation, so the compiler must neither fuse two operations nor approximate one. On a GPU,
// intrinsics ensure this; on a CPU, `build.rs` turns contraction off. Narrow types are rounded with
// integer arithmetic.
#pragma once

#include "bytes.h"

#if defined(__CUDACC__)
DEVICE float divided(float a, float b) { return __fdiv_rn(a, b); }
DEVICE float multiplied(float a, float b) { return __fmul_rn(a, b); }
DEVICE double divided(double a, double b) { return __ddiv_rn(a, b); }
DEVICE double multiplied(double a, double b) { return __dmul_rn(a, b); }
DEVICE float float_of(int32_t x) { return __int2float_rn(x); }
DEVICE double double_of(int64_t x) { return __ll2double_rn(x); }
DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
DEVICE uint64_t bits_of(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
DEVICE float float_from(uint32_t bits) { return __uint_as_float(bits); }
DEVICE double double_from(uint64_t bits) { return __longlong_as_double(static_cast<long long>(bits)); }
#else
#include <string.h>
inline float divided(float a, float b) { return a / b; }
inline float multiplied(float a, float b) { return a * b; }
inline double divided(double a, double b) { return a / b; }
inline double multiplied(double a, double b) { return a * b; }
inline float float_of(int32_t x) { return static_cast<float>(x); }
inline double double_of(int64_t x) { return static_cast<double>(x); }
inline uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
inline uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
inline float float_from(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
inline double double_from(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
#endif

// Returns an f32, which is not a NaN, as bf16: rounded to the nearest, ties to even.
DEVICE uint32_t bf16_of(uint32_t bits) { return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16; }

// As `bf16_of`, for f16.
DEVICE uint32_t f16_of(uint32_t bits) {
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x47800000) return sign | 0x7C00;  // at least 2^16
  if (magnitude >= 0x38800000) {                      // at least 2^-14: normal; may round up to infinity
    return sign | ((magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
  }
  if (magnitude < 0x33000000) return sign;  // below 2^-25
  const uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t result = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  return sign | (result + (rest > half || (rest == half && (result & 1)) ? 1 : 0));
}

// Returns an f16 as the bits of an f32. A NaN keeps its payload.
DEVICE uint32_t f32_of_f16(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude >= 0x7C00) return sign | 0x7F800000 | (magnitude & 0x3FF) << 13;
  if (magnitude >= 0x0400) return sign | ((magnitude << 13) + 0x38000000);
  if (magnitude == 0) return sign;
  const uint32_t top = 63 - leading_zeros(static_cast<uint64_t>(magnitude));  // 0 to 9
  return sign | (103 + top) << 23 | (magnitude << (23 - top) & 0x7FFFFF);
}

struct FloatMultiple {
  enum FloatType : uint32_t { BF16 = 1, F16, F32, F64 };
  uint32_t float_type, detail_bits, divisor;
  int32_t exponent;

  DEVICE bool is_wide() const { return float_type == F64; }
  DEVICE uint32_t precision() const {
    return float_type == BF16 ? 8 : float_type == F16 ? 11 : float_type == F32 ? 24 : 53;
  }

  // Returns `s` of the specification: base plus number, sign-extended.
  DEVICE int64_t sum(int64_t base, uint64_t number) const {
    const uint32_t unused = (is_wide() ? 0 : 32) + detail_bits;
    return static_cast<int64_t>((static_cast<uint64_t>(base) + number) << unused) >> unused;
  }

  // Returns `f` of the specification: the number of bits that an element has in the details.
  DEVICE uint32_t detail_length(int64_t s) const {
    const uint32_t length = 64 - leading_zeros(static_cast<uint64_t>(s ^ (s >> 63)));
    return min_of(detail_bits, length < precision() ? precision() - length : 0);
  }

  // Returns the bits of an element.
  DEVICE uint64_t element(int64_t s, uint32_t detail) const {
    const uint32_t shift = detail_bits - detail_length(s);
    const uint64_t n = (static_cast<uint64_t>(s) << detail_bits) + (static_cast<uint64_t>(detail) << shift);
    if (is_wide()) {
      const double scale = double_from(static_cast<uint64_t>(1023 - exponent) << 52);
      return bits_of(multiplied(divided(double_of(static_cast<int64_t>(n)), static_cast<double>(divisor)), scale));
    }
    const float scale = float_from(static_cast<uint32_t>(127 - exponent) << 23);
    const float value = divided(float_of(static_cast<int32_t>(n)), static_cast<float>(divisor));
    const uint32_t bits = bits_of(multiplied(value, scale));
    return float_type == BF16 ? bf16_of(bits) : float_type == F16 ? f16_of(bits) : bits;
  }
};
