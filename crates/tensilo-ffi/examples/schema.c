// Prints the columns of a file: schema FILE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensilo.h"

static int failed(tensilo_error **error) {
  fprintf(stderr, "%s\n", tensilo_error_text(*error));
  tensilo_error_free(error);
  return EXIT_FAILURE;
}

static void print_column(const tensilo_column_info *column) {
  printf("%s: %s [", column->name, column->type_name);
  for (uint32_t i = 0; i < column->ndim; i++) {
    printf("%s", i ? "," : "");
    if (column->extents[i] < 0) {
      printf("*");
    } else {
      printf("%" PRId64, column->extents[i]);
    }
  }
  printf("]%s", column->nullable ? ", nullable" : "");
  if (column->is_fixed) {
    printf(", %zu bytes", column->sample_bytes);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  tensilo_error *error = NULL;
  tensilo_reader *reader = NULL;
  if (tensilo_reader_open(argv[1], NULL, &reader, &error) != TENSILO_OK) {
    return failed(&error);
  }
  tensilo_reader_info file = {.struct_size = sizeof file};
  if (tensilo_reader_get_info(reader, &file, &error) != TENSILO_OK) {
    tensilo_reader_close(&reader);
    return failed(&error);
  }
  printf("%" PRIu64 " samples, %" PRIu64 " bytes, tensilo %s\n", file.sample_count, file.file_bytes,
         tensilo_version());
  const tensilo_schema *schema = tensilo_reader_schema(reader);
  for (size_t i = 0; i < tensilo_schema_column_count(schema); i++) {
    tensilo_column_info column = {.struct_size = sizeof column};
    if (tensilo_schema_get_column(schema, i, &column, &error) != TENSILO_OK) {
      tensilo_reader_close(&reader);
      return failed(&error);
    }
    print_column(&column);
    for (size_t k = 0; k < column.metadata_count; k++) {
      tensilo_metadata entry;
      if (tensilo_schema_get_metadata(schema, i, k, &entry, &error) == TENSILO_OK) {
        printf("  %s = %s\n", entry.key, entry.value);
      }
    }
  }
  tensilo_reader_close(&reader);
  return EXIT_SUCCESS;
}
