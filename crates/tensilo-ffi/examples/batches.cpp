// Prints the size of each column in each batch of an epoch: batches PATH BATCH
#include <cstdlib>
#include <iostream>

#include "tensilo.hpp"

int main(int argc, char **argv) try {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " PATH BATCH\n";
    return 2;
  }
  auto dataset = tensilo::make<tensilo::Dataset>(tensilo_dataset_open, argv[1], nullptr);
  auto options = tensilo::sized<tensilo_loader_options>();
  options.batch_size = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  auto loader = tensilo::make<tensilo::Loader>(tensilo_loader_new, dataset.get(), &options);
  auto batches = tensilo::make<tensilo::Batches>(tensilo_loader_begin, loader.get(), 0);
  while (auto batch = tensilo::make<tensilo::Batch>(tensilo_batches_next, batches.get())) {
    auto info = tensilo::sized<tensilo_batch_info>();
    tensilo::call(tensilo_batch_get_info, batch.get(), &info);
    std::cout << info.sample_count << " samples:";
    for (size_t i = 0; i < info.column_count; i++) {
      auto column = tensilo::sized<tensilo_column_info>();
      tensilo::call(tensilo_schema_get_column, tensilo_batch_schema(batch.get()), i, &column);
      auto samples = tensilo::sized<tensilo_samples>();
      tensilo::call(tensilo_batch_get_samples, batch.get(), i, &samples);
      std::cout << ' ' << column.name << ' ' << samples.value_bytes;
    }
    std::cout << '\n';
  }
  return EXIT_SUCCESS;
} catch (const tensilo::Error &error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
