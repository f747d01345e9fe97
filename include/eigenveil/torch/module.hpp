// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/tensors.hpp"

namespace eigenveil {

/// A TorchScript file, read once: what runs, what is hashed and what is written out again are the same bytes.
struct ModuleFile {
  std::string name;  ///< without its folders
  std::string bytes;
  std::string sha256;  ///< in hex, as sha256sum prints it

  static Result<ModuleFile> read(const std::string& path);
  /// The manifest of `clip train`, which wrote the file; nothing: it was written by somebody else.
  Result<std::optional<std::string>> manifest() const;
};

/// What the module's process may take.
struct ModuleLimits {
  int threads = 1;
  std::size_t memory = std::size_t{4} << 30;  ///< bytes, of each process
  double seconds = 600;                       ///< for one answer
};

/// Whether what a module says when it fails may be repeated.
enum class RowsAre { kMadeUp, kPrivate };

/// A frozen TorchScript module that turns an image or a text into features. It runs in a process of its own behind a
/// wall (src/torch/sandbox.proof.md), sees one row at a time, and keeps nothing from one row to the next: a graph that
/// could is refused. Safe to call from several threads.
class TorchEncoder {
 public:
  virtual ~TorchEncoder() = default;
  virtual std::size_t features() const = 0;
  /// A row of features for each row. Refuses what is not finite.
  virtual Result<RowMajorMatrix> encode(const Tensor& rows) const = 0;
};

/// Calls `method` of the module if it has one of that name, otherwise forward. `like` is a row of the right shape, made
/// up; the module is tried on it and its kin, in two orders.
Result<std::unique_ptr<TorchEncoder>> torch_encoder(const ModuleFile& file, const std::string& method,
                                                    const Tensor& like, const ModuleLimits& limits);

/// A TorchScript module whose parameters are trained, in a process of its own behind the same wall. No batch leaves a
/// trace in buffers, constants, attributes or the state of a random generator: graphs that write to such things are
/// refused, and gradients of private batches are computed by forks that end soon.
class TorchTrainee {
 public:
  virtual ~TorchTrainee() = default;
  /// Those that are trained, in the order of the module, as the file has them.
  virtual const std::vector<double>& parameters() const = 0;
  /// The names of parts of a batch that the module cannot do without.
  virtual std::vector<std::string> needed() const = 0;
  /// Whether it takes these alone; otherwise all.
  virtual bool takes_no_other() const = 0;
  /// Of the loss of the whole batch. `seed` is for dropout and its like.
  virtual Result<std::vector<double>> gradient(const std::vector<Tensor>& batch, std::span<const double> parameters,
                                               std::uint64_t seed, RowsAre rows) = 0;
  /// Of the loss of each row, one after the other: a row is seen by itself, with its own seed. Of a private row whose
  /// loss is not finite the first number is none.
  virtual Result<std::vector<double>> gradients(const std::vector<Tensor>& rows, std::span<const double> parameters,
                                                const std::vector<std::uint64_t>& seeds, RowsAre are) = 0;
  /// On public rows, in evaluation mode.
  struct Losses {
    double batch;  ///< of all rows together
    double each;   ///< mean of those of each row
  };
  virtual Result<Losses> losses(const std::vector<Tensor>& rows, std::span<const double> parameters) = 0;
  /// The file as it was given, with these numbers in the places of its parameters, and a text `manifest` beside them in
  /// the archive: no process that has seen a row has a hand in it.
  virtual Result<std::string> file(std::span<const double> parameters, const std::string& manifest) const = 0;
};

struct TorchTraineeOptions {
  /// sample_loss(batch: Dict[str, Tensor]) -> Tensor of one pair; batch_loss or loss of the same kind, or
  /// forward(images, tokens) -> (Tensor, Tensor), of a whole batch
  ModuleFile module;
  std::optional<ModuleFile> loss_module = {};  ///< forward(image_embeddings, text_embeddings) -> Tensor; none: InfoNCE
  double temperature = 0.1;                    ///< of symmetric InfoNCE
  ModuleLimits limits = {};
  bool each = false;           ///< sample_loss is trained
  bool batch = true;           ///< the loss of batches is trained
  std::string train = {};      ///< a pattern that is looked for in names of parameters; empty: what wants a gradient
  std::size_t microbatch = 0;  ///< pairs whose graphs are in memory at a time; 0: all of a batch
};

Result<std::unique_ptr<TorchTrainee>> torch_trainee(const TorchTraineeOptions& options);

}  // namespace eigenveil
