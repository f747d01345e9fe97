// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// What passes between the program and eigenveil-module: records of fixed size through a socket, numbers through a
/// piece of shared memory. The program believes nothing that comes back.
namespace eigenveil::channel {

constexpr int kSocket = 3;  ///< of the module's process
constexpr int kMemory = 4;

enum class Ask : std::uint32_t {
  kOpenEncoder,  ///< module, name of the method
  kOpenTrainee,  ///< module, marked module, loss module, settings as JSON
  kEncode,       ///< tensor of rows; each is encoded by itself
  kGradient,     ///< parameters, nothing, tensors: of the loss of the batch
  kGradients,    ///< parameters, seeds, tensors: of the loss of each row by itself
  kLoss,         ///< parameters, nothing, tensors of public rows: of the batch, and the mean of those of its rows
  kEnd,          ///< to a fork alone
};

struct Request {
  Ask ask;
  std::uint32_t threads;
  std::uint32_t made_up;  ///< 1: rows that nobody owns. The process rehearses on them, which makes its forks quick
  std::uint32_t padding;
  std::uint64_t number;  ///< a gradient's random seed; the features of a row, 0 if they are not known yet
  std::uint64_t answer;  ///< where in the memory the answer goes
  std::uint64_t size;    ///< of the memory
};

enum class Outcome : std::uint32_t {
  kDone,
  kRefused,    ///< with a sentence: what the module is not
  kFailed,     ///< with what was thrown
  kNotFinite,  ///< the loss or a feature
  kTooLarge,   ///< the answer does not fit
  kDied,       ///< killed, by a signal or a limit
};

struct Reply {
  Outcome outcome;
  std::uint32_t text_size;
  std::uint64_t bytes;  ///< of the answer
  char text[600];
};

constexpr std::size_t kAlignment = 64;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Pieces that are to lie in the memory one after the other, each aligned: a length, then the bytes.
class Body {
 public:
  void add(const void* data, std::size_t bytes) { pieces_.push_back({data, bytes}); }
  void add(const std::string& text) { add(text.data(), text.size()); }
  void add(std::string&&) = delete;  // what is added must live until it is copied
  std::size_t size() const {
    std::size_t total = 0;
    for (const Piece& piece : pieces_) total += kAlignment + aligned(piece.bytes);
    return total;
  }
  void copy_to(char* to) const {
    for (const Piece& piece : pieces_) {
      const std::uint64_t bytes = piece.bytes;
      std::memcpy(to, &bytes, sizeof bytes);
      if (bytes > 0) std::memcpy(to + kAlignment, piece.data, bytes);
      to += kAlignment + aligned(bytes);
    }
  }

 private:
  struct Piece {
    const void* data;
    std::size_t bytes;
  };
  std::vector<Piece> pieces_;
};

/// Reads what Body wrote, in place.
class Pieces {
 public:
  explicit Pieces(char* from) : at_(from) {}
  struct Piece {
    char* data;
    std::size_t bytes;
    std::string text() const { return {data, bytes}; }
  };
  Piece next() {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at_, sizeof bytes);
    const Piece piece{at_ + kAlignment, bytes};
    at_ += kAlignment + aligned(bytes);
    return piece;
  }
  template <class T>
  T number() {
    T value{};
    std::memcpy(&value, next().data, sizeof value);
    return value;
  }

 private:
  char* at_;
};

}  // namespace eigenveil::channel
