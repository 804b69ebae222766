// Reads a file through the Arrow C stream interface, as any Arrow library would: arrow FILE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensilo.h"

static int print_stream(struct ArrowArrayStream *stream) {
  struct ArrowSchema schema;
  if (stream->get_schema(stream, &schema) != 0) {
    fprintf(stderr, "%s\n", stream->get_last_error(stream));
    return EXIT_FAILURE;
  }
  for (int64_t i = 0; i < schema.n_children; i++) {
    printf("%s: %s\n", schema.children[i]->name, schema.children[i]->format);
  }
  schema.release(&schema);
  for (;;) {
    struct ArrowArray array;
    if (stream->get_next(stream, &array) != 0) {
      fprintf(stderr, "%s\n", stream->get_last_error(stream));
      return EXIT_FAILURE;
    }
    if (array.release == NULL) {
      return EXIT_SUCCESS; // the end
    }
    printf("a batch of %" PRId64 " samples\n", array.length);
    for (int64_t i = 0; i < array.n_children; i++) {
      printf("  column %" PRId64 ": %" PRId64 " nulls\n", i, array.children[i]->null_count);
    }
    array.release(&array);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  tensilo_error *error = NULL;
  tensilo_reader *reader = NULL;
  struct ArrowArrayStream stream;
  tensilo_status status = tensilo_reader_open(argv[1], NULL, &reader, &error);
  if (status == TENSILO_OK) {
    status = tensilo_reader_export_stream(reader, NULL, 0, 0, &stream, &error);
  }
  tensilo_reader_close(&reader); // the stream keeps the file open
  if (status != TENSILO_OK) {
    fprintf(stderr, "%s\n", tensilo_error_text(error));
    tensilo_error_free(&error);
    return EXIT_FAILURE;
  }
  int result = print_stream(&stream);
  stream.release(&stream);
  return result;
}
