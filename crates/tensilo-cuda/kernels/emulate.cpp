// The kernels on a CPU, for tests: one emulated warp decodes all blocks, one after the other.
#include "decode.h"

extern "C" {

// Decodes blocks. `stage` has `stage_bytes` bytes at a multiple of 16. In each phase, turn `i`
// belongs to lane `i * lane_factor + lane_offset`, modulo 32; an even factor is made odd. Returns
// the report of the launch.
uint64_t tensilo_emulate(const Block* blocks, uint32_t block_count, const Copy* copies, uint8_t* stage,
                         uint32_t stage_bytes, uint32_t lane_factor, uint32_t lane_offset) {
  lane_order = {lane_factor | 1, lane_offset};
  BinWorkspace work{};
  const WarpMemory memory{&work, stage, stage_bytes};
  uint64_t report = ~uint64_t{0};
  for (uint32_t i = 0; i < block_count; i++) {
    const Fault fault = decode_block(blocks[i], copies, memory);
    if (fault != NO_FAULT && report_of(i, fault) < report) report = report_of(i, fault);
  }
  return report;
}

// Decodes samples of resident data to rows. As `tensilo_emulate`, but the report names a row.
uint64_t tensilo_emulate_gather(const Samples* samples, const int64_t* indices, uint32_t count, uint8_t* rows,
                                uint64_t row_bytes, uint8_t* stage, uint32_t stage_bytes, uint32_t lane_factor,
                                uint32_t lane_offset) {
  lane_order = {lane_factor | 1, lane_offset};
  BinWorkspace work{};
  const WarpMemory memory{&work, stage, stage_bytes};
  uint64_t report = ~uint64_t{0};
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t sample = static_cast<uint64_t>(indices[i]);
    const Fault fault = gather_sample(*samples, sample, rows + i * row_bytes, row_bytes, memory);
    if (fault != NO_FAULT && report_of(i, fault) < report) report = report_of(i, fault);
  }
  return report;
}
}
