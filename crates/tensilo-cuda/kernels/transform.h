// Transforms (5.6 of the specification), undone in place.
//
// An element is predicted from elements before it. Addition modulo 2^b is associative, so prefix
// sums replace the serial loop. *Delta* is a sum along the first row, then down all columns.
// *Lorenzo* is a sum along all rows, then down all columns. A sum along a row is a scan of the
// warp, 32 elements at a time. A sum down the columns is a loop with a lane for each column. Rows
// of at most 16 elements would leave at least half of the lanes idle, so a warp takes several of
// them at once.
//
// *Separable* rounds its products, so its sums cannot be reordered. Each lane first takes rows, to
// undo the prediction along them, and then columns. With any predictor, a short segment between
// restarts is left to one lane.
#pragma once

#include "bytes.h"

struct Transform {
  enum Kind : uint32_t { NONE, ROTATE, DELTA, LORENZO, SEPARABLE };
  uint32_t kind, weight_left, weight_above, restart, stride;

  // Reads the transform at the start of tables. Sets whether it obeys, as far as that does
  // not depend on the encoding.
  DEVICE static Transform read(Bytes tables, bool& is_valid) {
    Transform t{tables.u8(0), tables.u8(2), tables.u8(3), tables.u32(4), tables.u32(8)};
    const bool predicts = t.kind == DELTA || t.kind == LORENZO || t.kind == SEPARABLE;
    const bool has_weights = t.weight_left != 0 || t.weight_above != 0;
    is_valid = t.kind <= SEPARABLE && tables.u8(1) == 0 && tables.u32(12) == 0 &&
               (predicts ? t.restart > 0 && t.stride > 0 : t.restart == 0 && t.stride == 0) &&
               (t.kind == SEPARABLE ? t.weight_left <= 8 && t.weight_above <= 8 : !has_weights);
    return t;
  }
};

// Segments with fewer elements are undone by one lane each.
constexpr uint32_t SHORT_SEGMENT = 64;

// Returns `v * weight / 8`, with `v` as a signed integer, rounded to the nearest, ties up.
template <class E> DEVICE E part(E v, uint32_t weight) {
  const Wide<E> eighths = static_cast<Wide<E>>(static_cast<Signed<E>>(v) >> 3);
  const Wide<E> rest = (weight * (static_cast<Wide<E>>(v) & 7) + 4) >> 3;
  return static_cast<E>(weight * eighths + rest);
}

template <class E> DEVICE E from_zigzag(E y) {
  return static_cast<E>((y >> 1) ^ (0 - (static_cast<Wide<E>>(y) & 1)));
}

// Replaces the residuals of a segment by its elements, one by one, in one lane.
template <class E> DEVICE void undo_serially(Transform t, E* x, uint32_t count) {
  for (uint32_t j = 1; j < count; j++) {
    if (j < t.stride) {
      x[j] = static_cast<E>(x[j] + x[j - 1]);
      continue;
    }
    const bool is_first = j % t.stride == 0;
    if (t.kind == Transform::DELTA) {
      x[j] = static_cast<E>(x[j] + x[j - t.stride]);
    } else if (t.kind == Transform::LORENZO) {
      const E left = is_first ? E{0} : static_cast<E>(x[j - 1] - x[j - t.stride - 1]);
      x[j] = static_cast<E>(x[j] + x[j - t.stride] + left);
    } else {
      const auto down = [=](uint32_t i) {
        const E above = x[i - t.stride];
        if (i < 2 * t.stride) return above;
        return static_cast<E>(above + part(static_cast<E>(above - x[i - 2 * t.stride]), t.weight_above));
      };
      const E left = is_first ? E{0} : part(static_cast<E>(x[j - 1] - down(j - 1)), t.weight_left);
      x[j] = static_cast<E>(x[j] + down(j) + left);
    }
  }
}

// Adds to each element all elements before it in its row. Rows have `stride` elements and are
// adjacent.
template <class E> DEVICE void sum_rows(E* x, uint32_t count, uint32_t stride) {
  if (stride <= LANES / 2) {  // several rows at a time
    const uint32_t span = LANES / stride * stride;
    for (uint32_t first = 0; first < count; first += span) {
      lanes<Wide<E>> values;
      each_lane([=, &values](uint32_t lane) {
        values[lane] = lane < span && first + lane < count ? x[first + lane] : 0;
      });
      values = inclusive_sum(values, 1, stride);
      each_lane([=](uint32_t lane) {
        if (lane < span && first + lane < count) x[first + lane] = static_cast<E>(values[lane]);
      });
    }
    return;
  }
  for (uint32_t row = 0; row < count; row += stride) {
    const uint32_t length = min_of(stride, count - row);
    Wide<E> before = 0;
    for (uint32_t first = 0; first < length; first += LANES) {
      lanes<Wide<E>> values;
      each_lane([=, &values](uint32_t lane) { values[lane] = first + lane < length ? x[row + first + lane] : 0; });
      values = inclusive_sum(values);
      each_lane([=](uint32_t lane) {
        if (first + lane < length) x[row + first + lane] = static_cast<E>(values[lane] + before);
      });
      before += value_of(values, LANES - 1);
    }
  }
}

// Adds to each element all elements above it. Rows have `stride` elements and are adjacent.
template <class E> DEVICE void sum_columns(E* x, uint32_t count, uint32_t stride) {
  if (stride > LANES / 2) {
    each_lane([=](uint32_t lane) {
      for (uint32_t column = lane; column < stride; column += LANES) {
        Wide<E> above = 0;
        for (uint32_t i = column; i < count; i += stride) {
          above += x[i];
          x[i] = static_cast<E>(above);
        }
      }
    });
    return;
  }
  const uint32_t span = LANES / stride * stride;
  lanes<Wide<E>> above;
  each_lane([=, &above](uint32_t lane) { above[lane] = 0; });
  for (uint32_t first = 0; first < count; first += span) {
    lanes<Wide<E>> values;
    each_lane([=, &values](uint32_t lane) {
      values[lane] = lane < span && first + lane < count ? x[first + lane] : 0;
    });
    values = inclusive_sum(values, stride);
    lanes<uint32_t> last;
    each_lane([=, &values, &last](uint32_t lane) {
      values[lane] += above[lane];
      if (lane < span && first + lane < count) x[first + lane] = static_cast<E>(values[lane]);
      last[lane] = span - stride + lane % stride;
    });
    above = gathered(values, last);
  }
}

// Undoes *separable* for all rows but the first, which is already summed.
template <class E> DEVICE void undo_separable(Transform t, E* x, uint32_t count) {
  each_lane([=](uint32_t lane) {
    for (uint32_t row = t.stride * (lane + 1); row < count; row += t.stride * LANES) {
      const uint32_t end = min_of(row + t.stride, count);
      for (uint32_t i = row + 1; i < end; i++) x[i] = static_cast<E>(x[i] + part(x[i - 1], t.weight_left));
    }
  });
  const uint32_t columns = min_of(t.stride, count);  // a segment may end within its first row
  each_lane([=](uint32_t lane) {
    for (uint32_t column = lane; column < columns; column += LANES) {
      E above = x[column], before = above;
      for (uint32_t i = column + t.stride; i < count; i += t.stride) {
        const E down = static_cast<E>(above + part(static_cast<E>(above - before), t.weight_above));
        before = above;
        above = static_cast<E>(x[i] + down);
        x[i] = above;
      }
    }
  });
}

// Replaces the coded integers of a block by its elements.
template <class E> STEP void undo_transform(Transform t, E* x, uint32_t count) {
  if (t.kind == Transform::NONE) return;
  const bool rotates = t.kind == Transform::ROTATE;
  each_lane([=](uint32_t lane) {
    for (uint32_t i = lane; i < count; i += LANES) {
      const E y = x[i];
      x[i] = rotates ? static_cast<E>((y >> 1) | (static_cast<Wide<E>>(y) << (8 * sizeof(E) - 1))) : from_zigzag(y);
    }
  });
  if (rotates) return;
  t.restart = min_of(t.restart, max_of(count, 1));
  t.stride = min_of(t.stride, t.restart);
  if (t.restart < SHORT_SEGMENT && t.restart < count) {
    each_lane([=](uint32_t lane) {
      for (uint32_t start = lane * t.restart; start < count; start += LANES * t.restart) {
        undo_serially(t, x + start, min_of(t.restart, count - start));
      }
    });
    return;
  }
  for (uint32_t start = 0; start < count; start += t.restart) {
    E* const segment = x + start;
    const uint32_t length = min_of(t.restart, count - start), first_row = min_of(t.stride, length);
    if (t.kind == Transform::LORENZO) {
      sum_rows(segment, length, t.stride);
    } else {
      sum_rows(segment, first_row, first_row);
    }
    if (t.kind == Transform::SEPARABLE) {
      undo_separable(t, segment, length);
    } else {
      sum_columns(segment, length, t.stride);
    }
  }
}
