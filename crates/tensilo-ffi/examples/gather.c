// Gathers samples of a column with a fixed shape into a buffer: gather FILE COLUMN INDEX...
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensilo.h"

static int gather(const tensilo_reader *reader, const char *name, const uint64_t *indices, size_t count,
                  tensilo_error **error) {
  const tensilo_schema *schema = tensilo_reader_schema(reader);
  tensilo_column_info column = {.struct_size = sizeof column};
  size_t number = 0;
  tensilo_status status = tensilo_schema_find_column(schema, name, &number, error);
  if (status == TENSILO_OK) {
    status = tensilo_schema_get_column(schema, number, &column, error);
  }
  tensilo_cursor *cursor = NULL;
  if (status == TENSILO_OK) {
    status = tensilo_cursor_open(reader, name, &cursor, error);
  }
  if (status != TENSILO_OK) {
    return status;
  }
  // in a loop, reuse the buffer, and one cursor for each thread and column
  size_t out_bytes = count * column.sample_bytes, nulls = 0;
  uint8_t *out = malloc(out_bytes > 0 ? out_bytes : 1);
  if (out == NULL) {
    fprintf(stderr, "out of memory\n");
    abort();
  }
  status = tensilo_cursor_gather(cursor, indices, count, out, out_bytes, &nulls, error);
  if (status == TENSILO_OK) {
    printf("%zu samples of %zu bytes, %zu of them null\n", count, column.sample_bytes, nulls);
    for (size_t i = 0; i < count; i++) {
      printf("%" PRIu64 ":", indices[i]);
      for (size_t k = 0; k < column.sample_bytes && k < 16; k++) {
        printf(" %02x", out[i * column.sample_bytes + k]);
      }
      printf("\n");
    }
  }
  free(out);
  tensilo_cursor_close(&cursor);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s FILE COLUMN INDEX...\n", argv[0]);
    return 2;
  }
  size_t count = (size_t)argc - 3;
  uint64_t *indices = malloc(count * sizeof *indices);
  if (indices == NULL) {
    return EXIT_FAILURE;
  }
  for (size_t i = 0; i < count; i++) {
    indices[i] = strtoull(argv[i + 3], NULL, 10);
  }
  tensilo_error *error = NULL;
  tensilo_reader *reader = NULL;
  tensilo_status status = tensilo_reader_open(argv[1], NULL, &reader, &error);
  if (status == TENSILO_OK) {
    status = gather(reader, argv[2], indices, count, &error);
  }
  if (status != TENSILO_OK) {
    fprintf(stderr, "%s\n", tensilo_error_text(error));
  }
  tensilo_error_free(&error);
  tensilo_reader_close(&reader);
  free(indices);
  return status == TENSILO_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
