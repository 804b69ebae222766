// Bins (5.13 of the specification): an rANS decoder with 64 states, two in each lane.
//
// State `i` codes element `i` of every group of 64, so a warp decodes a group at once. The lowest 8
// bits of a state are a slot, whose bin is looked up. The state advances, and the raw bits of the
// offset in the bin are taken from it. After each of these two steps, a state that fell below
// `MIN_STATE` takes a byte of the stream: a refill. Bins of 256 values or more take another byte
// for the lowest 8 bits of the offset. In the last group, these bits come from the states
// themselves.
//
// All states share one stream, in the order of the elements, so the position of a byte depends on
// the states before it. This is the only dependency between lanes, and it takes a ballot and a
// count: the rank of a state among the states that need a byte is the offset of its byte. Groups
// are serial, because each continues with the states that the group before it has left.
#pragma once

#include "bin_tables.h"
#include "bit_planes.h"
#include "tiers.h"

constexpr uint32_t MIN_STATE = 256;

// The lookup tables of a warp: the bin of each slot, and the fields of each bin.
struct BinWorkspace {
  uint8_t bin_of[MAX_CLASSES][256];
  uint8_t frequency[MAX_CLASSES][MAX_BINS];
  uint8_t first_slot[MAX_CLASSES][MAX_BINS];
  uint16_t value[MAX_BINS];
  uint8_t bits[MAX_BINS];

  STEP void fill(BinTables tables) {
    lanes<uint32_t> low, high;
    each_lane([=, &low, &high](uint32_t lane) {
      bits[lane] = static_cast<uint8_t>(tables.bits(lane));
      bits[lane + 32] = static_cast<uint8_t>(tables.bits(lane + 32));
      low[lane] = 1u << bits[lane];
      high[lane] = 1u << bits[lane + 32];
    });
    uint32_t total = exclusive_sum(low);
    exclusive_sum(high);
    each_lane([=, &low, &high](uint32_t lane) {
      value[lane] = static_cast<uint16_t>(low[lane]);
      value[lane + 32] = static_cast<uint16_t>(total + high[lane]);
    });
    for (uint32_t c = 0; c < tables.class_count(); c++) {
      each_lane([=, &low, &high](uint32_t lane) {
        low[lane] = frequency[c][lane] = static_cast<uint8_t>(tables.frequency(c, lane));
        high[lane] = frequency[c][lane + 32] = static_cast<uint8_t>(tables.frequency(c, lane + 32));
      });
      total = exclusive_sum(low);
      exclusive_sum(high);
      each_lane([=, &low, &high](uint32_t lane) {
        first_slot[c][lane] = static_cast<uint8_t>(low[lane]);
        first_slot[c][lane + 32] = static_cast<uint8_t>(total + high[lane]);
      });
      each_lane([=](uint32_t lane) {
        for (uint32_t bin = 0; bin < MAX_BINS; bin++) {
          const uint32_t end = min_of(first_slot[c][bin] + frequency[c][bin], 256);
          for (uint32_t slot = first_slot[c][bin] + lane; slot < end; slot += LANES) {
            bin_of[c][slot] = static_cast<uint8_t>(bin);
          }
        }
      });
    }
  }
};

// A stream of bytes, from which the elements of a group take in order.
struct Stream {
  Bytes block;
  uint32_t at;

  // Takes a byte for each element in `mask`, and passes lane, half and byte to `use`. Returns
  // whether the stream has enough bytes.
  template <class Use> DEVICE bool take(uint64_t mask, Use use) {
    const uint32_t first = at, count = count_ones(mask);
    const Bytes bytes = block;
    each_lane([=](uint32_t lane) {
      if (mask >> lane & 1) use(lane, 0, bytes.u8(first + count_ones(mask & lowest_bits(lane))));
      if (mask >> (lane + 32) & 1) use(lane, 1, bytes.u8(first + count_ones(mask & lowest_bits(lane + 32))));
    });
    at = min_of(first + count, block.size);
    return count <= block.size - first;
  }
};

// Decodes the coded integers of a block, without their bits above the window. Byte `at` is the
// start of the class codes.
template <class N>
STEP Fault decode_windows(Bytes block, uint32_t at, BinTables tables, BinWorkspace* work, N* out, uint32_t count) {
  if (count == 0) return at == block.size ? NO_FAULT : 19;
  const uint32_t groups = ceil_div(count, GROUP), states = min_of(count, GROUP), low_bytes = tables.low_bytes();
  const Codes classes{block, at, tables.class_count()};
  const uint32_t low_at = classes.end(groups), states_at = low_at + low_bytes * count;
  Stream stream{block, states_at + 2 * states};
  if (stream.at > block.size || !classes.are_valid(groups)) return 19;
  work->fill(tables);
  Pair<uint32_t> state;
  each_lane([=, &state](uint32_t lane) {
    const auto first = [=](uint32_t i) {
      return i < states ? block.u8(states_at + i) | block.u8(states_at + states + i) << 8 : MIN_STATE;
    };
    state.low[lane] = first(lane);
    state.high[lane] = first(lane + 32);
  });
  const auto short_states = [&state](uint64_t present) {
    return present & ballot_of_group([&state](uint32_t lane, uint32_t half) {
             return (half == 0 ? state.low[lane] : state.high[lane]) < MIN_STATE;
           });
  };
  const auto refill = [&stream, &state, &short_states](uint64_t present) {
    return stream.take(short_states(present), [&state](uint32_t lane, uint32_t half, uint32_t byte) {
      uint32_t& s = half == 0 ? state.low[lane] : state.high[lane];
      s = s << 8 | byte;
    });
  };
  if (short_states(~uint64_t{0}) != 0) return 19;
  bool is_right = true;
  for (uint32_t group = 0; group < groups && is_right; group++) {
    const uint32_t members = min_of(count - group * GROUP, GROUP), c = classes.get(group);
    const bool is_last = group + 1 == groups;
    const uint64_t present = lowest_bits(members);
    Pair<uint32_t> bins, windows;
    each_lane([=, &state, &bins](uint32_t lane) {
      const auto step = [=](uint32_t i, uint32_t& s, uint32_t& bin) {
        const uint32_t slot = s & 255;
        bin = work->bin_of[c][slot];
        if (i < members) s = work->frequency[c][bin] * (s >> 8) + slot - work->first_slot[c][bin];
      };
      step(lane, state.low[lane], bins.low[lane]);
      step(lane + 32, state.high[lane], bins.high[lane]);
    });
    is_right = refill(present);
    each_lane([=, &state, &bins, &windows](uint32_t lane) {
      const auto take_bits = [=](uint32_t i, uint32_t& s, uint32_t bin, uint32_t& window) {
        const uint32_t width = work->bits[bin];
        const uint32_t bits = width >= 8 ? width - 8 : is_last ? 0 : width;
        const uint32_t raw = s & ((1u << bits) - 1);
        window = work->value[bin] + (width >= 8 ? raw << 8 : raw);
        if (i < members) s >>= bits;
      };
      take_bits(lane, state.low[lane], bins.low[lane], windows.low[lane]);
      take_bits(lane + 32, state.high[lane], bins.high[lane], windows.high[lane]);
    });
    is_right = refill(present) && is_right;
    if (is_last) {
      each_lane([=, &state, &windows](uint32_t lane) {
        windows.low[lane] += state.low[lane] & 255;
        windows.high[lane] += state.high[lane] & 255;
      });
      const uint64_t beyond = ballot_of_group([=, &state, &bins](uint32_t lane, uint32_t half) {
        const uint32_t s = half == 0 ? state.low[lane] : state.high[lane];
        return (s & 255) >> min_of(work->bits[half == 0 ? bins.low[lane] : bins.high[lane]], 8) != 0;
      });
      is_right = (beyond & present) == 0 && is_right;
    } else {
      const uint64_t has_byte = present & ballot_of_group([=, &bins](uint32_t lane, uint32_t half) {
        return work->bits[half == 0 ? bins.low[lane] : bins.high[lane]] >= 8;
      });
      const bool is_there = stream.take(has_byte, [&windows](uint32_t lane, uint32_t half, uint32_t byte) {
        (half == 0 ? windows.low[lane] : windows.high[lane]) += byte;
      });
      is_right = is_there && is_right;
    }
    each_lane([=, &windows](uint32_t lane) {
      for (uint32_t half = 0; half < 2; half++) {
        const uint32_t i = group * GROUP + half * 32 + lane;
        if (i >= count) continue;
        const uint32_t window = half == 0 ? windows.low[lane] : windows.high[lane];
        Wide<N> y = low_bytes < sizeof(N) ? static_cast<Wide<N>>(window) << (8 * low_bytes) : 0;
        for (uint32_t byte = 0; byte < low_bytes; byte++) {
          y |= static_cast<Wide<N>>(block.u8(low_at + byte * count + i)) << (8 * byte);
        }
        out[i] = static_cast<N>(y);
      }
    });
  }
  const uint32_t last_members = count - (groups - 1) * GROUP;
  const uint64_t wrong = ballot_of_group([=, &state](uint32_t lane, uint32_t half) {
    const uint32_t s = half == 0 ? state.low[lane] : state.high[lane];
    return s > 511 || (lane + 32 * half >= last_members && s != MIN_STATE);
  });
  return is_right && wrong == 0 && stream.at == block.size ? NO_FAULT : 19;
}
