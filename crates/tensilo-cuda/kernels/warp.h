// A warp of 32 lanes, on a GPU and on a CPU.
//
// The kernels must be testable without a GPU, from the same source. A kernel is therefore a
// sequence of *phases*. Within a phase, every lane calls the same function with its number. The
// function may branch and loop, but it does not communicate with other lanes. Between phases, lanes
// exchange values through `ballot`, `value_of`, `moved_up` and `gathered`, and the sums built on
// them. On a GPU, a lane is a thread, and a phase ends with a barrier of the warp. On a CPU, a
// phase is a loop over the 32 lanes, in an order that tests vary.
//
// Invariants:
// * A lane reads what another lane has written only in a later phase. If a kernel breaks this, its
//   result depends on the order of the lanes, which tests detect.
// * A variable that is not of type `lanes` has the same value in all lanes. Phases capture such
//   variables by value, so the compiler rejects a phase that assigns to one.
//
// Overloaded operators on vectors of 32 lanes were tried on paper and rejected: every branch on
// the value of a lane would have become a select, and code for a single lane could not be shared.
#pragma once

#include <stdint.h>

// `STEP` marks functions that run once or twice per block. They are not inlined: otherwise, the
// compiler inlines the same steps for each type into one function of a megabyte. `RARE_LOOP` marks
// loops that are not worth unrolling.
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

// One value per lane.
template <class T> struct lanes {
  T value;
  DEVICE T& operator[](uint32_t) { return value; }
  DEVICE const T& operator[](uint32_t) const { return value; }
};

DEVICE uint32_t own_lane() { return threadIdx.x % LANES; }

// Runs a phase: calls `phase` with the number of each lane.
template <class Phase> DEVICE void each_lane(Phase phase) {
  phase(own_lane());
  __syncwarp();
}

// Returns a mask whose bit `i` is the result of `predicate` in lane `i`.
template <class Predicate> DEVICE uint32_t ballot(Predicate predicate) {
  return __ballot_sync(ALL, predicate(own_lane()));
}

// Returns the value of one lane, to all lanes.
template <class T> DEVICE T value_of(const lanes<T>& all, uint32_t lane) { return __shfl_sync(ALL, all.value, lane); }

// Gives each lane the value of the lane `distance` below it. The lowest lanes keep their own value.
template <class T> DEVICE lanes<T> moved_up(const lanes<T>& all, uint32_t distance) {
  return {__shfl_up_sync(ALL, all.value, distance)};
}

// Gives lane `i` the value of lane `from[i]`.
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

// The order in which lanes run: turn `i` of a phase belongs to lane `i * factor + offset`, modulo
// 32.
struct LaneOrder {
  uint32_t factor = 1, offset = 0;  // an odd factor reaches every lane
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

// Returns a mask of the lowest `count` bits, at most 64.
DEVICE uint64_t lowest_bits(uint32_t count) { return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0}; }

DEVICE uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }
DEVICE uint32_t max_of(uint32_t a, uint32_t b) { return a < b ? b : a; }
DEVICE uint32_t ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }
DEVICE uint32_t align_up(uint32_t x, uint32_t to) { return (x + to - 1) / to * to; }

// Returns prefix sums: for each lane, its value plus the values of the lanes at multiples of `step`
// below it, within its row of `row` lanes.
template <class T> DEVICE lanes<T> inclusive_sum(lanes<T> x, uint32_t step = 1, uint32_t row = LANES) {
  for (uint32_t distance = step; distance < row; distance *= 2) {
    const lanes<T> below = moved_up(x, distance);
    each_lane([=, &x](uint32_t lane) {
      if (lane % row >= distance) x[lane] = static_cast<T>(x[lane] + below[lane]);
    });
  }
  return x;
}

// Replaces the value of each lane by the sum of the lanes below it. Returns the sum of all lanes.
DEVICE uint32_t exclusive_sum(lanes<uint32_t>& x) {
  const lanes<uint32_t> sums = inclusive_sum(x);
  each_lane([=, &x](uint32_t lane) { x[lane] = sums[lane] - x[lane]; });
  return value_of(sums, LANES - 1);
}
