// The kernels on a GPU: each warp decodes one block, or one sample, after another.
//
// The stage of a warp is shared memory if the block fits in it, else global memory, the *scratch*.
// Warps do not wait for each other. They share only the report: its minimum over all faults is the
// first block that breaks a rule, in whatever order the warps run.
#include "decode.h"

constexpr uint32_t WARPS = 4;  // of a thread block

// Decodes blocks, with a warp for each. In addition to its lookup tables, a warp has `shared_bytes`
// of shared memory, and `scratch_bytes` of `scratch` for blocks that do not fit there. `report` is
// initially all ones.
extern "C" __global__ void __launch_bounds__(WARPS* LANES)
    tensilo_decode(const Block* blocks, uint32_t block_count, const Copy* copies, uint32_t shared_bytes,
                   uint8_t* scratch, uint32_t scratch_bytes, unsigned long long* report) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ BinWorkspace works[WARPS];
  const uint32_t own = threadIdx.x / LANES, warp = blockIdx.x * WARPS + own;
  for (uint64_t i = warp; i < block_count; i += gridDim.x * WARPS) {
    const Block block = blocks[i];
    const bool fits = stage_bytes(block.elements, block.element_bytes) <= shared_bytes;
    const WarpMemory memory =
        fits ? WarpMemory{&works[own], shared + own * shared_bytes, shared_bytes}
             : WarpMemory{&works[own], scratch + static_cast<uint64_t>(warp) * scratch_bytes, scratch_bytes};
    const Fault fault = decode_block(block, copies, memory);
    if (fault != NO_FAULT && own_lane() == 0) {
      atomicMin(report, static_cast<unsigned long long>(report_of(static_cast<uint32_t>(i), fault)));
    }
    __syncwarp();
  }
}

// Decodes samples of resident data to the rows of a batch, with a warp for each. `shared_bytes` and
// the scratch are as in `tensilo_decode`. `report` names a row instead of a block.
extern "C" __global__ void __launch_bounds__(WARPS* LANES)
    tensilo_gather(Samples samples, const int64_t* indices, uint32_t count, uint8_t* rows, uint64_t row_bytes,
                   uint32_t shared_bytes, uint8_t* scratch, uint32_t scratch_bytes, unsigned long long* report) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ BinWorkspace works[WARPS];
  const uint32_t own = threadIdx.x / LANES, warp = blockIdx.x * WARPS + own;
  const WarpMemory memory =
      scratch_bytes <= shared_bytes
          ? WarpMemory{&works[own], shared + own * shared_bytes, shared_bytes}
          : WarpMemory{&works[own], scratch + static_cast<uint64_t>(warp) * scratch_bytes, scratch_bytes};
  for (uint64_t i = warp; i < count; i += gridDim.x * WARPS) {
    const uint64_t sample = static_cast<uint64_t>(indices[i]);
    const Fault fault = gather_sample(samples, sample, rows + i * row_bytes, row_bytes, memory);
    if (fault != NO_FAULT && own_lane() == 0) {
      atomicMin(report, static_cast<unsigned long long>(report_of(static_cast<uint32_t>(i), fault)));
    }
    __syncwarp();
  }
}
