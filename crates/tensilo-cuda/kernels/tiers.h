// Tiers (5.7 to 5.9 of the specification): *exponent-tiers* and *residual-tiers*.
//
// An escape code takes the next symbol of the next tier, so the position of that symbol depends on
// the number of escapes before it. Decoding one code after the other would use a single lane.
// Instead, escapes are counted without decoding: an escape code is all ones, so the AND of the
// words of a group of 64 codes is the mask of its escapes. Each lane counts one of 32 groups, a
// scan of the warp sums the counts, and every group knows its position in the next tier before it
// is expanded. Within a group, the rank of an escape is the number of ones below it in the mask.
// Tiers are expanded from the last, which escapes to literals, to the first.
//
// No memory is needed besides the elements. The symbols that a tier escapes to are at the end of
// the elements, and the tier is expanded to memory that starts before them. Each remaining symbol
// belongs to a code that still expands to at least one byte, so writes never overtake reads.
#pragma once

#include "bit_planes.h"
#include "transform.h"

constexpr uint32_t GROUP = 64;
constexpr uint32_t MAX_WIDTH = 4;
constexpr uint32_t TIER_TABLE_BYTES = 48;
constexpr uint32_t WIDTHS_AT = 16, RANKS_AT = 19, RANKS = 29;
constexpr uint32_t BLOCK_HEADER_BYTES = 8;

struct Tier {
  uint32_t start, width, count;

  DEVICE uint32_t groups() const { return ceil_div(count, GROUP); }
  DEVICE uint32_t escape() const { return (1u << width) - 1; }
  // Returns the bytes of a word of the last group, which is cut if it has fewer than 64 codes.
  DEVICE uint32_t cut_word() const { return ceil_div(count % GROUP, 8); }
  DEVICE uint32_t end() const { return start + count / GROUP * width * 8 + cut_word() * width; }

  DEVICE uint64_t word(Bytes block, uint32_t group, uint32_t plane) const {
    const uint32_t first = start + group * width * 8;
    if (group < count / GROUP) return block.word(first + plane * 8);
    return block.integer(first + plane * cut_word(), cut_word());
  }

  // Returns the mask of the codes of a group, without padding codes.
  DEVICE uint64_t present(uint32_t group) const { return lowest_bits(count - group * GROUP); }

  DEVICE uint64_t escapes(Bytes block, uint32_t group) const {
    uint64_t mask = present(group);
    for (uint32_t plane = 0; plane < width; plane++) mask &= word(block, group, plane);
    return mask;
  }

  // Returns whether the padding codes of the last group are zero.
  DEVICE bool is_filled_up(Bytes block) const {
    uint64_t filling = 0;
    if (count % GROUP != 0) {
      const uint32_t last = count / GROUP;
      for (uint32_t plane = 0; plane < width; plane++) filling |= word(block, last, plane) & ~present(last);
    }
    return filling == 0;
  }
};

// The symbols that a tier escapes to.
struct Symbols {
  const uint8_t* at;
  uint32_t count;
};

// Calls `deliver` with the number and the symbols of each group of a tier, in order. Returns
// whether the number of escapes equals the number of symbols to escape to.
template <class Deliver>
DEVICE bool expand(Bytes block, Bytes tables, Tier tier, uint32_t first_rank, Symbols escaped, Deliver deliver) {
  const uint32_t groups = tier.groups();
  uint32_t escapes = 0;
  for (uint32_t first = 0; first < groups; first += LANES) {
    lanes<uint32_t> before;
    each_lane([=, &before](uint32_t lane) {
      const uint32_t group = first + lane;
      before[lane] = group < groups ? count_ones(tier.escapes(block, group)) : 0;
    });
    const uint32_t total = exclusive_sum(before);
    const uint32_t end = min_of(first + LANES, groups);
    for (uint32_t group = first; group < end; group++) {
      const uint32_t base = escapes + value_of(before, group - first);
      Pair<uint32_t> symbols;
      each_lane([=, &symbols](uint32_t lane) {
        uint64_t words[MAX_WIDTH];
        uint64_t mask = tier.present(group);
        for (uint32_t plane = 0; plane < MAX_WIDTH; plane++) {
          words[plane] = plane < tier.width ? tier.word(block, group, plane) : 0;
          if (plane < tier.width) mask &= words[plane];
        }
        const auto symbol = [=](uint32_t i) {
          uint32_t code = 0;
          for (uint32_t plane = 0; plane < MAX_WIDTH; plane++) {
            code |= static_cast<uint32_t>(words[plane] >> i & 1) << plane;
          }
          if ((mask >> i & 1) == 0) {
            const uint32_t rank = first_rank + code;  // a padding code has no element
            return rank < RANKS ? tables.u8(RANKS_AT + rank) : 0u;
          }
          const uint32_t at = base + count_ones(mask & lowest_bits(i));
          return at < escaped.count ? static_cast<uint32_t>(escaped.at[at]) : 0u;
        };
        symbols.low[lane] = symbol(lane);
        symbols.high[lane] = symbol(lane + 32);
      });
      deliver(group, symbols);
    }
    escapes += total;
  }
  return escapes == escaped.count;
}

// Expands a tier to bytes.
STEP bool expand_to(Bytes block, Bytes tables, Tier tier, uint32_t first_rank, Symbols escaped, uint8_t* to) {
  return expand(block, tables, tier, first_rank, escaped, [=](uint32_t group, const Pair<uint32_t>& symbols) {
    each_lane([=, &symbols](uint32_t lane) {
      const uint32_t i = group * GROUP + lane;
      if (i < tier.count) to[i] = static_cast<uint8_t>(symbols.low[lane]);
      if (i + 32 < tier.count) to[i + 32] = static_cast<uint8_t>(symbols.high[lane]);
    });
  });
}

// The sections of a block of tiers.
struct TierBlock {
  Tier tiers[3];
  uint32_t first_ranks[3];
  uint32_t literal_count, literals, end;

  // Finds the sections of a block of `count` symbols whose tiers begin after `low_bytes`, and
  // checks everything that does not depend on symbols.
  STEP Fault split(Bytes block, Bytes tables, uint32_t count, uint32_t low_bytes) {
    const uint32_t counts[3] = {count, block.u16(0), block.u16(2)};
    literal_count = block.u16(4);
    uint32_t at = BLOCK_HEADER_BYTES + low_bytes, rank = 0;
    bool is_filled_up = block.u16(6) == 0;
    for (uint32_t i = 0; i < 3; i++) {
      const uint32_t width = tables.u8(WIDTHS_AT + i);
      if (width < 1 || width > (i < 2 ? 3u : 4u)) return 8;
      tiers[i] = {align_up(at, 8), width, counts[i]};
      first_ranks[i] = rank;
      rank += tiers[i].escape();
      is_filled_up = is_filled_up && block.is_zero(at, tiers[i].start) && tiers[i].is_filled_up(block);
      at = tiers[i].end();
    }
    literals = at;
    end = at + literal_count;
    if (end > block.size) return 17;
    if (!is_filled_up) return 8;
    const bool has_codes = counts[1] <= count && counts[2] <= counts[1] && literal_count <= counts[2];
    return has_codes ? NO_FAULT : 9;
  }
};

// Calls `deliver` with the groups of tier 1, as `expand` does. The memory of the elements ends at
// `end`, and has at least one byte for each element.
template <class Deliver>
DEVICE Fault expand_all(Bytes block, Bytes tables, const TierBlock& sections, uint8_t* end, Deliver deliver) {
  const Symbols literals{block.at + sections.literals, sections.literal_count};
  Symbols escaped = literals;
  bool is_right = true;
  for (uint32_t i = 2; i > 0; i--) {
    const Tier tier = sections.tiers[i];
    uint8_t* const to = end - tier.count;
    is_right = expand_to(block, tables, tier, sections.first_ranks[i], escaped, to) && is_right;
    escaped = {to, tier.count};
  }
  is_right = expand(block, tables, sections.tiers[0], 0, escaped, deliver) && is_right;
  return is_right ? NO_FAULT : 9;
}

// Decodes a block of *exponent-tiers* (5.8).
template <class E> STEP Fault exponent_tiers(Bytes block, Bytes tables, E* out, uint32_t count) {
  bool is_valid;
  const Transform transform = Transform::read(tables, is_valid);
  if (!is_valid || transform.kind == Transform::SEPARABLE) return 7;
  if (transform.kind > Transform::ROTATE) return 10;
  constexpr uint32_t LOW = sizeof(E) - 1;
  TierBlock sections;
  if (const Fault fault = sections.split(block, tables, count, LOW * count)) return fault;
  if (sections.end != block.size) return 17;
  const bool rotates = transform.kind == Transform::ROTATE;
  uint8_t* const end = reinterpret_cast<uint8_t*>(out + count);
  return expand_all(block, tables, sections, end, [=](uint32_t group, const Pair<uint32_t>& symbols) {
    each_lane([=, &symbols](uint32_t lane) {
      for (uint32_t half = 0; half < 2; half++) {
        const uint32_t i = group * GROUP + half * 32 + lane;
        if (i >= count) continue;
        Wide<E> y = static_cast<Wide<E>>(half == 0 ? symbols.low[lane] : symbols.high[lane]) << (8 * LOW);
        for (uint32_t byte = 0; byte + 1 < sizeof(E); byte++) {
          y |= static_cast<Wide<E>>(block.u8(BLOCK_HEADER_BYTES + byte * count + i)) << (8 * byte);
        }
        out[i] = static_cast<E>(rotates ? (y >> 1) | (y << (8 * sizeof(E) - 1)) : y);
      }
    });
  });
}

// Decodes a block of *residual-tiers* (5.9).
template <class E> STEP Fault residual_tiers(Bytes block, Bytes tables, E* out, uint32_t count) {
  constexpr uint32_t BITS = 8 * sizeof(E);
  bool is_valid;
  const Transform transform = Transform::read(tables, is_valid);
  if (!is_valid || transform.kind == Transform::SEPARABLE) return 7;
  bool has_lengths = transform.kind != Transform::ROTATE;
  for (uint32_t rank = 0; rank < RANKS; rank++) has_lengths = has_lengths && tables.u8(RANKS_AT + rank) <= BITS;
  TierBlock sections;
  const Fault fault = has_lengths ? sections.split(block, tables, count, 0) : 11;
  if (fault != NO_FAULT) return fault;
  uint32_t position = 8 * sections.end;
  bool has_symbols = true;
  const auto deliver = [=, &position, &has_symbols](uint32_t group, const Pair<uint32_t>& symbols) {
    Pair<uint32_t> counts;
    Pair<Wide<E>> values;
    each_lane([=, &symbols, &counts, &values](uint32_t lane) {
      const auto set = [=](uint32_t i, uint32_t symbol, uint32_t& extra, Wide<E>& value) {
        const uint32_t length = i < count ? min_of(symbol, BITS) : 0;
        extra = length == 0 ? 0 : length - 1;
        value = length == 0 ? 0 : Wide<E>{1} << extra;
      };
      set(group * GROUP + lane, symbols.low[lane], counts.low[lane], values.low[lane]);
      set(group * GROUP + 32 + lane, symbols.high[lane], counts.high[lane], values.high[lane]);
    });
    const uint64_t wrong = ballot_of_group([=, &symbols](uint32_t lane, uint32_t half) {
      return (half == 0 ? symbols.low[lane] : symbols.high[lane]) > BITS;
    });
    has_symbols = has_symbols && (wrong & lowest_bits(count - group * GROUP)) == 0;
    position = add_bit_planes(block, position, counts, values);
    each_lane([=, &values](uint32_t lane) {
      const uint32_t i = group * GROUP + lane;
      if (i < count) out[i] = static_cast<E>(values.low[lane]);
      if (i + 32 < count) out[i + 32] = static_cast<E>(values.high[lane]);
    });
  };
  const Fault escapes = expand_all(block, tables, sections, reinterpret_cast<uint8_t*>(out + count), deliver);
  if (escapes != NO_FAULT) return escapes;
  if (!has_symbols) return 11;
  if (ceil_div(position, 8) != block.size) return 17;
  if (!block.rest_is_zero(position)) return 11;
  undo_transform(transform, out, count);
  return NO_FAULT;
}
