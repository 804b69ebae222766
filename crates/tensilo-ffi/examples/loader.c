// Stops a training loop in mid-epoch and resumes it with another loader: loader PATH BATCH
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensilo.h"

// Takes at most `max_batches` batches, and adds up the indices of their samples.
static tensilo_status take(tensilo_batches *batches, uint64_t max_batches, uint64_t *count, uint64_t *sum,
                           tensilo_error **error) {
  for (uint64_t taken = 0; taken < max_batches; taken++) {
    tensilo_batch *batch = NULL;
    tensilo_status status = tensilo_batches_next(batches, &batch, error);
    if (status != TENSILO_OK || batch == NULL) {
      return status; // an error, or the end
    }
    tensilo_batch_info info = {.struct_size = sizeof info};
    status = tensilo_batch_get_info(batch, &info, error);
    for (size_t i = 0; status == TENSILO_OK && i < info.sample_count; i++) {
      *sum += info.indices[i];
    }
    *count += info.sample_count;
    for (size_t i = 0; status == TENSILO_OK && i < info.column_count; i++) {
      tensilo_samples column = {.struct_size = sizeof column};
      status = tensilo_batch_get_samples(batch, i, &column, error); // use column.values here
    }
    tensilo_batch_close(&batch);
    if (status != TENSILO_OK) {
      return status;
    }
  }
  return TENSILO_OK;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s PATH BATCH\n", argv[0]);
    return 2;
  }
  tensilo_error *error = NULL;
  tensilo_dataset *dataset = NULL;
  tensilo_loader *loader = NULL;
  tensilo_batches *batches = NULL;
  tensilo_loader_options options = {.struct_size = sizeof options,
                                    .batch_size = (uint32_t)strtoul(argv[2], NULL, 10),
                                    .order = TENSILO_ORDER_SHUFFLED,
                                    .last_batch = TENSILO_LAST_BATCH_EXACT,
                                    .seed = 1,
                                    .has_seed = 1};
  uint64_t count = 0, sum = 0;
  uint8_t state[TENSILO_STATE_BYTES];

  tensilo_status status = tensilo_dataset_open(argv[1], NULL, &dataset, &error);
  if (status == TENSILO_OK) status = tensilo_loader_new(dataset, &options, &loader, &error);
  if (status == TENSILO_OK) status = tensilo_loader_begin(loader, 0, &batches, &error);
  if (status == TENSILO_OK) status = take(batches, 2, &count, &sum, &error);
  if (status == TENSILO_OK) status = tensilo_batches_get_state(batches, state, sizeof state, &error);
  tensilo_batches_close(&batches); // this ends its threads
  tensilo_loader_close(&loader);
  printf("stopped after %" PRIu64 " samples\n", count);

  // a real job would save the state with its checkpoint, and another process would read it
  if (status == TENSILO_OK) status = tensilo_loader_new(dataset, &options, &loader, &error);
  if (status == TENSILO_OK) {
    status = tensilo_loader_resume(loader, state, sizeof state, &batches, &error);
  }
  if (status == TENSILO_OK) status = take(batches, UINT64_MAX, &count, &sum, &error);
  if (status == TENSILO_OK) {
    printf("%" PRIu64 " samples in all, sum %" PRIu64 "\n", count, sum);
  } else {
    fprintf(stderr, "%s\n", tensilo_error_text(error));
  }
  tensilo_error_free(&error);
  tensilo_batches_close(&batches);
  tensilo_loader_close(&loader);
  tensilo_dataset_close(&dataset);
  return status == TENSILO_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
