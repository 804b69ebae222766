"""Batches in GPU memory as PyTorch tensors.

PyTorch's allocator provides the memory, and tensilo decodes into it on its own stream. The allocator must be told of
every stream that uses the memory. Otherwise, it could reuse the memory while a stream still reads it.
"""

import torch

from . import _gpu
from ._torch_tensors import dtype_of, has_tensor, masks_of, or_list


class TorchDevice:
    """A GPU whose memory comes from PyTorch's allocator.

    The memory of a batch belongs to the stream that decodes the batch, so decoding does not wait for the work
    that the training loop has enqueued. Each stream that uses a batch is recorded with the allocator.
    """

    def __init__(self, device):
        number = _gpu.number_of(str(device))
        if number is None:
            number = torch.cuda.current_device() if torch.cuda.is_available() else 0
        self.gpu = _gpu.opened(number)
        self.stream = self.gpu.stream
        if self.gpu.is_emulated:
            self.device = torch.device("cpu")
            return
        if not torch.cuda.is_available():
            raise RuntimeError(f"PyTorch {torch.__version__} has no CUDA support: install a CUDA build, or omit device")
        self.device = torch.device("cuda", number)
        self._torch_stream = torch.cuda.ExternalStream(self.stream, device=self.device)

    def allocate(self, byte_count):
        """Returns memory for a prefetched batch."""
        if self.gpu.is_emulated:
            return torch.empty(byte_count, dtype=torch.uint8)
        with torch.cuda.stream(self._torch_stream):
            return torch.empty(byte_count, dtype=torch.uint8, device=self.device)

    def current_stream(self):
        """Returns the current stream of the caller."""
        return 0 if self.gpu.is_emulated else torch.cuda.current_stream(self.device).cuda_stream

    def tensors(self, batch, memory, *, null_masks=False):
        """Returns the columns of a batch that was decoded into ``memory``, which ``allocate`` returned."""
        if not self.gpu.is_emulated:
            memory.record_stream(torch.cuda.current_stream(self.device))
        tensors = {name: self._tensor(column, memory) for name, column in batch.items()}
        if null_masks:
            tensors |= {name: mask.to(self.device) for name, mask in masks_of(batch).items()}
        return tensors

    def _tensor(self, column, memory):
        if column._device_range is None:
            return or_list(column)
        start, end = column._device_range
        values, dtype = memory[start:end], dtype_of(column.dtype)
        if column.is_tensor:
            return values.view(dtype).view(column.shape)
        if not has_tensor(column):
            return [None if slot is None else _at(values, dtype, *slot) for slot in column._sample_slots()]
        offsets = torch.from_dlpack(column._row_offsets())
        rows = values.view(dtype).view(int(offsets[-1]), *column.shape[2:])
        # by default, PyTorch uses the total number of rows as the maximum length
        longest = int(offsets.diff().max()) if len(column) else 0
        return torch.nested.nested_tensor_from_jagged(rows, offsets.to(self.device), max_seqlen=longest)


def _at(values, dtype, start, shape):
    """Returns the tensor that starts at a byte offset."""
    count = dtype.itemsize
    for extent in shape:
        count *= extent
    return values[start : start + count].view(dtype).view(shape)
