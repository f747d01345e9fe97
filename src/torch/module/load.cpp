// SPDX-License-Identifier: Apache-2.0
#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <sstream>

#include "modules.hpp"

namespace eigenveil {

void Answer::add(const void* data, std::size_t count) {
  if (count > capacity - bytes) throw TooLarge();
  std::memcpy(to + bytes, data, count);
  bytes += count;
}

namespace {

// Code that would run while the file is loaded, before its graphs can be looked at, and classes made elsewhere.
void check_nothing_runs(const std::string& bytes) {
  std::istringstream file(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&file);
  for (const std::string& name : reader.getAllRecords()) {
    if (!name.ends_with(".py") && !name.ends_with(".pkl")) continue;
    const auto [data, size] = reader.getRecord(name);
    const std::string_view text(static_cast<const char*>(data.get()), size);
    for (const char* word : {"__setstate__", "torch.classes."})
      if (text.find(word) != std::string_view::npos)
        throw Refusal(std::string("has code that runs while it is loaded (") + word + "); save it without");
  }
}

}  // namespace

torch::jit::Module load_module(const channel::Pieces::Piece& bytes) {
  std::istringstream file(bytes.text());
  try {
    check_nothing_runs(file.str());
    return torch::jit::load(file);
  } catch (const Refusal&) {
    throw;
  } catch (const c10::Error& error) {
    throw Refusal("is no TorchScript module; write it with torch.jit.save (" +
                  std::string(error.what_without_backtrace()).substr(0, 120) + ")");
  } catch (const std::exception& error) {
    throw Refusal("is no TorchScript module; write it with torch.jit.save (" +
                  std::string(error.what()).substr(0, 120) + ")");
  }
}

at::Tensor tensor_of(channel::Pieces& pieces, std::string& name) {
  name = pieces.next().text();
  const auto shape = pieces.next();
  const std::vector<std::int64_t> sizes(reinterpret_cast<std::int64_t*>(shape.data),
                                        reinterpret_cast<std::int64_t*>(shape.data + shape.bytes));
  const bool whole = pieces.number<std::uint64_t>() != 0;
  return at::from_blob(pieces.next().data, sizes, at::TensorOptions().dtype(whole ? at::kLong : at::kFloat));
}

bool is_tensor(const c10::TypePtr& type) { return type->isSubtypeOf(*c10::TensorType::get()); }

}  // namespace eigenveil
