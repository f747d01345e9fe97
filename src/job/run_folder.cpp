// SPDX-License-Identifier: Apache-2.0
#include "run_folder.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/data/npz.hpp"

namespace eigenveil {
namespace {

constexpr const char* kRun = "run.json";
constexpr const char* kKept = "state.npz";
constexpr std::array<const char*, 2> kStates = {"checkpoint-1.sealed", "checkpoint-2.sealed"};
constexpr std::size_t kKeyBytes = crypto_secretbox_KEYBYTES;

// Numbers one after the other: steps, how many parameters, how many moments, then all of them.
std::string bytes_of(const TrainingState& state) {
  const std::array<std::int64_t, 3> head = {state.descent.steps, state.parameters.size(), state.descent.first.size()};
  std::string bytes(reinterpret_cast<const char*>(head.data()), sizeof head);
  for (const Vector* part : {&state.parameters, &state.descent.first, &state.descent.second})
    bytes.append(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(double));
  return bytes;
}

std::optional<TrainingState> state_of(const std::string& bytes) {
  std::array<std::int64_t, 3> head{};
  if (bytes.size() < sizeof head) return {};
  std::memcpy(head.data(), bytes.data(), sizeof head);
  const auto [steps, parameters, moments] = head;
  const auto most = static_cast<std::int64_t>(bytes.size() / sizeof(double));
  if (steps < 0 || parameters < 0 || moments < 0 || parameters > most || moments > most ||
      (parameters + 2 * moments) * sizeof(double) + sizeof head != bytes.size())
    return {};
  TrainingState state;
  state.descent.steps = steps;
  const char* from = bytes.data() + sizeof head;
  for (auto [part, size] :
       {std::pair{&state.parameters, parameters}, {&state.descent.first, moments}, {&state.descent.second, moments}}) {
    part->resize(size);
    std::memcpy(part->data(), from, size * sizeof(double));
    from += size * sizeof(double);
  }
  return state;
}

const unsigned char* raw(const std::string& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

// A key seals one file only, so the nonce may be zero.
constexpr std::array<unsigned char, crypto_secretbox_NONCEBYTES> kNonce{};

std::optional<std::string> unsealed(const std::string& file, const std::string& key) {
  if (file.size() < crypto_secretbox_MACBYTES) return {};
  std::string bytes(file.size() - crypto_secretbox_MACBYTES, '\0');
  if (crypto_secretbox_open_easy(raw(bytes), raw(file), file.size(), kNonce.data(), raw(key)) != 0) return {};
  return bytes;
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Result<RunFolder> RunFolder::begin(const std::string& path, nlohmann::json run) {
  std::error_code failure;
  std::filesystem::create_directory(path, failure);
  RunFolder folder(path);
  if (std::filesystem::exists(folder.file(kRun), failure))
    return usage_error(fmt::format(
        "`checkpoint` {}: holds a run already; go on with it by `resume`, or choose another folder", printable(path)));
  EIGENVEIL_TRY(write_file(folder.file(kRun), run.dump(1) + "\n"));
  folder.run_ = std::move(run);
  return folder;
}

Result<RunFolder> RunFolder::reopen(const std::string& path) {
  RunFolder folder(path);
  std::ifstream file(folder.file(kRun));
  if (!file)
    return usage_error(
        fmt::format("`resume`: there is no run in {}; leave `resume` out to begin one", printable(path)));
  folder.run_ = nlohmann::json::parse(file, nullptr, false);
  if (!folder.run_.is_object())
    return bad_input(fmt::format("{}/{}: is damaged; begin a new run in another folder", printable(path), kRun));
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(path, failure))  // of a process that was killed
    if (entry.path().filename().string().starts_with(AtomicFile::kTemporary))
      std::filesystem::remove(entry.path(), failure);
  return folder;
}

Result<std::string> RunFolder::save(const TrainingState& state) {
  std::string key(kKeyBytes, '\0');
  randombytes_buf(key.data(), key.size());
  const std::string bytes = bytes_of(state);
  std::string sealed(bytes.size() + crypto_secretbox_MACBYTES, '\0');
  crypto_secretbox_easy(raw(sealed), raw(bytes), bytes.size(), kNonce.data(), raw(key));
  EIGENVEIL_TRY(write_file(file(kStates[next_]), sealed));
  next_ = 1 - next_;
  std::string hex(2 * kKeyBytes + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), raw(key), key.size());
  hex.pop_back();
  return hex;
}

Result<TrainingState> RunFolder::load(const std::string& hex) {
  std::string key(kKeyBytes, '\0');
  std::size_t length = 0;
  if (sodium_hex2bin(raw(key), key.size(), hex.data(), hex.size(), nullptr, &length, nullptr) != 0 ||
      length != key.size())
    return bad_input("the ledger keeps no key of this run's state; begin a new run");
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    const auto bytes = unsealed(read_whole(file(kStates[i])), key);
    if (!bytes) continue;
    next_ = 1 - i;
    if (auto state = state_of(*bytes)) return *std::move(state);
  }
  return usage_error(fmt::format(
      "`resume`: {} does not hold the state that the ledger knows this run has come to: it is a copy, or was put "
      "back from one, and to go on from an earlier state would release more than was charged. Resume the "
      "folder that the run is in, or begin a new run",
      printable(path_)));
}

Status RunFolder::keep(const TrainingState& state) const {
  return write_npz(file(kKept),
                   {{"step", Vector::Constant(1, static_cast<double>(state.descent.steps)), true},
                    {"parameters", state.parameters, true}},
                   {{"run.json", run_.dump(1) + "\n"}});
}

void RunFolder::discard() const {
  std::error_code failure;
  std::filesystem::remove(file(kRun), failure);
  std::filesystem::remove(path_, failure);  // if it is empty now
}

}  // namespace eigenveil
