// Checks every byte of a file and lists the damage: verify FILE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensilo.h"

static int32_t show(void *user, uint64_t checked_bytes, uint64_t file_bytes) {
  uint64_t *shown = user;
  if (checked_bytes == file_bytes && *shown != checked_bytes) {
    printf("%" PRIu64 " bytes checked\n", checked_bytes);
  }
  *shown = checked_bytes;
  return 0; // continue
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  uint64_t shown = 0;
  tensilo_verify_options options = {
      .struct_size = sizeof options, .deep = 1, .progress = show, .user = &shown};
  tensilo_error *error = NULL;
  tensilo_report *report = NULL;
  tensilo_report_info info = {.struct_size = sizeof info};
  tensilo_status status = tensilo_verify(argv[1], &options, &report, &error);
  if (status == TENSILO_OK) status = tensilo_report_get_info(report, &info, &error);
  for (size_t i = 0; status == TENSILO_OK && i < info.finding_count; i++) {
    tensilo_finding damage = {.struct_size = sizeof damage};
    status = tensilo_report_get_finding(report, i, &damage, &error);
    if (status == TENSILO_OK) {
      printf("damaged: %s\n", tensilo_error_text(damage.error));
    }
  }
  if (status != TENSILO_OK) {
    fprintf(stderr, "%s\n", tensilo_error_text(error));
  }
  int intact = status == TENSILO_OK && info.finding_count == 0;
  printf(intact ? "intact\n" : "not intact\n");
  tensilo_error_free(&error);
  tensilo_report_close(&report);
  return intact ? EXIT_SUCCESS : EXIT_FAILURE;
}
