// A warp of 32 lanes, on a GPU and on a CPU.
//
// Problem: the kernels have to be proven where there is no GPU. Approach: a kernel is a sequence of
// phases. In a phase, each lane runs the same function of its number, with any branches and loops,
// and meets no other lane; between phases, lanes exchange values by `ballot`, `exclusive_sum` and
// `value_of`. On a GPU a lane is a thread, and a phase ends with a barrier of the warp. On a CPU a
// phase is a loop over the 32 lanes, in an order that tests change.
//
// Invariants:
// * What a phase writes, other lanes read in later phases only. A kernel that breaks this gives
//   other results if the order of the lanes changes.
// * Variables outside of `lanes` have the same value in all lanes. Phases capture them by value, so
//   the compiler refuses a phase that changes one.
//
// Overloaded operators on vectors of 32 lanes were tried on paper and rejected: each branch on the
// value of a lane would have become a selection, and code for one lane could not be shared.
#pragma once

#include <stdint.h>

// `STEP` is a function that is called once or twice for a block: it stays one, or the compiler
// would inline the same steps for each type into one function of a megabyte. `RARE_LOOP` is before a loop
// that is not worth unrolling.
#if defined(__CUDACC__)
#define DEVICE __device__ __forceinline__
#define STEP __device__ __noinline__
#define RARE_LOOP _Pragma("unroll 1")
#else
#define DEVICE inline
#define STEP inline
#define RARE_LOOP
#endif

constexpr uint32_t LANES = 32;

#if defined(__CUDACC__)

constexpr uint32_t ALL = 0xFFFFFFFF;

// A value of each lane.
template <class T> struct lanes {
  T value;
  DEVICE T& operator[](uint32_t) { return value; }
  DEVICE const T& operator[](uint32_t) const { return value; }
};

DEVICE uint32_t own_lane() { return threadIdx.x % LANES; }

// A phase: runs `phase` with the number of each lane.
template <class Phase> DEVICE void each_lane(Phase phase) {
  phase(own_lane());
  __syncwarp();
}

// Bit `i` is the result of `predicate` in lane `i`.
template <class Predicate> DEVICE uint32_t ballot(Predicate predicate) { return __ballot_sync(ALL, predicate(own_lane())); }

// The value of a lane, in all lanes.
template <class T> DEVICE T value_of(const lanes<T>& all, uint32_t lane) { return __shfl_sync(ALL, all.value, lane); }

// Each lane gets the value of the lane `distance` below it; the lowest lanes keep their own.
template <class T> DEVICE lanes<T> moved_up(const lanes<T>& all, uint32_t distance) {
  return {__shfl_up_sync(ALL, all.value, distance)};
}

// Each lane gets the value of the lane that it names.
template <class T> DEVICE lanes<T> gathered(const lanes<T>& all, const lanes<uint32_t>& from) {
  return {__shfl_sync(ALL, all.value, from.value % LANES)};
}

DEVICE uint32_t count_ones(uint32_t x) { return __popc(x); }
DEVICE uint32_t count_ones(uint64_t x) { return __popcll(x); }
DEVICE uint32_t leading_zeros(uint64_t x) { return __clzll(x); }

#else

template <class T> struct lanes {
  T values[LANES];
  T& operator[](uint32_t lane) { return values[lane]; }
  const T& operator[](uint32_t lane) const { return values[lane]; }
};

// The order in which lanes run: lane `i` of a phase is lane `i * factor + offset` of the warp.
struct LaneOrder {
  uint32_t factor = 1, offset = 0;  // the factor is odd
};
inline thread_local LaneOrder lane_order;

template <class Phase> void each_lane(Phase phase) {
  for (uint32_t i = 0; i < LANES; i++) phase((i * lane_order.factor + lane_order.offset) % LANES);
}

template <class Predicate> uint32_t ballot(Predicate predicate) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) bits |= static_cast<uint32_t>(predicate(lane) ? 1 : 0) << lane;
  return bits;
}

template <class T> T value_of(const lanes<T>& all, uint32_t lane) { return all[lane % LANES]; }

template <class T> lanes<T> moved_up(const lanes<T>& all, uint32_t distance) {
  lanes<T> moved;
  for (uint32_t lane = 0; lane < LANES; lane++) moved[lane] = all[lane < distance ? lane : lane - distance];
  return moved;
}

template <class T> lanes<T> gathered(const lanes<T>& all, const lanes<uint32_t>& from) {
  lanes<T> result;
  for (uint32_t lane = 0; lane < LANES; lane++) result[lane] = all[from[lane] % LANES];
  return result;
}

inline uint32_t count_ones(uint32_t x) { return static_cast<uint32_t>(__builtin_popcount(x)); }
inline uint32_t count_ones(uint64_t x) { return static_cast<uint32_t>(__builtin_popcountll(x)); }
inline uint32_t leading_zeros(uint64_t x) { return x == 0 ? 64 : static_cast<uint32_t>(__builtin_clzll(x)); }

#endif

// The lowest `count` bits, at most 64.
DEVICE uint64_t lowest_bits(uint32_t count) { return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0}; }

DEVICE uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }
DEVICE uint32_t max_of(uint32_t a, uint32_t b) { return a < b ? b : a; }
DEVICE uint32_t ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }
DEVICE uint32_t align_up(uint32_t x, uint32_t to) { return (x + to - 1) / to * to; }

// Adds to the value of each lane the values of the lanes at multiples of `step` below it, down to
// lane `lane - lane % row`.
template <class T> DEVICE lanes<T> inclusive_sum(lanes<T> x, uint32_t step = 1, uint32_t row = LANES) {
  for (uint32_t distance = step; distance < row; distance *= 2) {
    const lanes<T> below = moved_up(x, distance);
    each_lane([=, &x](uint32_t lane) {
      if (lane % row >= distance) x[lane] = static_cast<T>(x[lane] + below[lane]);
    });
  }
  return x;
}

// Replaces the value of each lane by the sum of the lanes below it. Returns the sum of all.
DEVICE uint32_t exclusive_sum(lanes<uint32_t>& x) {
  const lanes<uint32_t> sums = inclusive_sum(x);
  each_lane([=, &x](uint32_t lane) { x[lane] = sums[lane] - x[lane]; });
  return value_of(sums, LANES - 1);
}
