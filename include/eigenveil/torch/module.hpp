#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eigenveil/data/tensors.hpp"

namespace eigenveil {

/// A frozen TorchScript module that turns one image or one text into features. Safe to call from several threads.
class TorchEncoder {
 public:
  virtual ~TorchEncoder() = default;
  /// A single row, so that no row's features can depend on another's. Refuses what is not finite.
  virtual Result<std::vector<double>> encode(const Tensor& one) const = 0;
};

/// A TorchScript module whose parameters are trained. It keeps nothing between calls: every gradient is computed by a
/// fresh copy of the file's module with the given parameters, so that no batch leaves a trace in buffers, attributes
/// or the state of a random generator.
class TorchTrainee {
 public:
  virtual ~TorchTrainee() = default;
  /// Those that want a gradient (requires_grad), in the order of the module, as the file has them.
  virtual std::vector<double> parameters() const = 0;
  /// The names of parts of a batch that the module asks for.
  virtual std::vector<std::string> wanted() const = 0;
  /// Of the loss of the whole batch. `seed` is for dropout and its like.
  virtual Result<std::vector<double>> gradient(const std::vector<Tensor>& batch, std::span<const double> parameters,
                                               std::uint64_t seed) = 0;
  /// Whether the last gradient's copy had changed its own buffers, as batch normalisation does.
  virtual bool changed_buffers() const = 0;
  /// The bytes of the file's module with these parameters, and a text `manifest` beside them in the archive.
  virtual Result<std::string> file(std::span<const double> parameters, const std::string& manifest) const = 0;
};

struct TorchTraineeOptions {
  std::string module;  ///< forward(images, tokens) -> (Tensor, Tensor), or loss(batch: Dict[str, Tensor]) -> Tensor
  std::string loss_module;   ///< forward(image_embeddings, text_embeddings) -> Tensor; empty: symmetric InfoNCE
  double temperature = 0.1;  ///< of InfoNCE
  int threads = 1;
};

/// What the plugin eigenveil-torch.so offers. libtorch is in that plugin alone: it loads hundreds of libraries, and
/// most commands need none.
class TorchPlugin {
 public:
  virtual ~TorchPlugin() = default;
  /// Calls `method` of the module if it has one of that name, otherwise forward.
  virtual Result<std::unique_ptr<TorchEncoder>> encoder(const std::string& path, const std::string& method) const = 0;
  virtual Result<std::unique_ptr<TorchTrainee>> trainee(const TorchTraineeOptions& options) const = 0;
};

/// Loads the plugin beside the program, once. A build without libtorch says so.
Result<const TorchPlugin*> torch_plugin();

}  // namespace eigenveil
