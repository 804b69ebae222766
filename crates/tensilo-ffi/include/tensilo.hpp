// C++17 wrappers for tensilo.h: handles that close themselves, and errors as exceptions.
//
// Each handle is a std::unique_ptr whose deleter is the close function, so it costs no more than
// the C pointer. `make` and `call` append the `error` argument and throw tensilo::Error.
#ifndef TENSILO_HPP
#define TENSILO_HPP

#include <memory>
#include <stdexcept>

#include "tensilo.h"

namespace tensilo {

template <auto close>
struct Deleter {
  template <class Handle>
  void operator()(Handle *handle) const {
    close(&handle);
  }
};

using Reader = std::unique_ptr<tensilo_reader, Deleter<tensilo_reader_close>>;
using Cursor = std::unique_ptr<tensilo_cursor, Deleter<tensilo_cursor_close>>;
using Buffer = std::unique_ptr<tensilo_buffer, Deleter<tensilo_buffer_close>>;
using Dataset = std::unique_ptr<tensilo_dataset, Deleter<tensilo_dataset_close>>;
using Loader = std::unique_ptr<tensilo_loader, Deleter<tensilo_loader_close>>;
using Batches = std::unique_ptr<tensilo_batches, Deleter<tensilo_batches_close>>;
using Batch = std::unique_ptr<tensilo_batch, Deleter<tensilo_batch_close>>;
using SampleReader = std::unique_ptr<tensilo_sample_reader, Deleter<tensilo_sample_reader_close>>;
using Report = std::unique_ptr<tensilo_report, Deleter<tensilo_report_close>>;

// An error of tensilo. `what()` returns its full text; `handle()` gives access to its fields.
class Error : public std::runtime_error {
 public:
  explicit Error(tensilo_error *error)
      : std::runtime_error(tensilo_error_text(error)), error_(error, [](tensilo_error *it) {
          tensilo_error_free(&it);
        }) {}
  tensilo_status status() const { return tensilo_error_status(error_.get()); }
  const tensilo_error *handle() const { return error_.get(); }

 private:
  std::shared_ptr<tensilo_error> error_;
};

// Calls a function of tensilo.h with all arguments except `error`. Throws its error.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  tensilo_error *error = nullptr;
  if (function(arguments..., &error) != TENSILO_OK) throw Error(error);
}

// Calls a function that creates a handle, with all arguments except the handle and `error`, and
// returns the handle. Throws its error.
template <class Handle, class Function, class... Arguments>
Handle make(Function function, Arguments... arguments) {
  typename Handle::pointer handle = nullptr;
  call(function, arguments..., &handle);
  return Handle(handle);
}

// Returns a struct of tensilo.h with its size set and all other members zero.
template <class Struct>
Struct sized() {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}

}  // namespace tensilo

#endif
