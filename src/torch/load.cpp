#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "eigenveil/torch/module.hpp"

namespace eigenveil {
namespace {

Result<const TorchPlugin*> load_plugin() {
  const auto missing = [](const std::string& why) {
    return usage_error(fmt::format(
        "TorchScript modules need libtorch, and {}: run scripts/install-packages torch and build again", why));
  };
  std::error_code failure;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  std::filesystem::path file;
  for (const auto& folder : {here, here / "../lib/eigenveil"})
    if (file.empty() && std::filesystem::exists(folder / "eigenveil-torch.so", failure))
      file = folder / "eigenveil-torch.so";
  if (file.empty()) return missing("this build has none");
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing(fmt::format("it cannot be loaded ({})", dlerror()));
  using Entry = const TorchPlugin* (*)(const char*);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "eigenveil_torch_plugin"));
  const TorchPlugin* plugin = entry == nullptr ? nullptr : entry(EIGENVEIL_VERSION);
  if (plugin == nullptr) return missing(fmt::format("{} is of another version", file.string()));
  return plugin;
}

}  // namespace

Result<const TorchPlugin*> torch_plugin() {
  static const Result<const TorchPlugin*> plugin = load_plugin();
  return plugin;
}

}  // namespace eigenveil
