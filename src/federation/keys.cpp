// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/keys.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "eigenveil/base/atomic_file.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kSlot = 16384;  // 64 sites with long names fit
constexpr std::string_view kMagic = "eigenveil keys 2";

/// A slot's bytes; wiped when they go.
struct Slot {
  Slot() : bytes(kSlot, '\0') {}
  ~Slot() { sodium_memzero(bytes.data(), bytes.size()); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  std::string bytes;
  std::size_t end = 0;

  bool put(std::string_view field) {
    if (field.size() > kSlot - end) return false;
    std::memcpy(bytes.data() + end, field.data(), field.size());
    end += field.size();
    return true;
  }
  bool put_number(std::uint32_t n) { return put({reinterpret_cast<const char*>(&n), sizeof n}); }
  std::string_view take(std::size_t size) {
    if (size > kSlot - end) return {};
    end += size;
    return std::string_view(bytes).substr(end - size, size);
  }
  std::uint32_t take_number() {
    std::uint32_t n = 0;
    if (const auto field = take(sizeof n); field.size() == sizeof n) std::memcpy(&n, field.data(), sizeof n);
    return n;
  }
};

bool fill(Slot& slot, const StudyKeys& keys) {
  const std::string nothing(Secret::kBytes, '\0');
  bool fits = slot.put(kMagic) && slot.put_number(keys.index) && slot.put(keys.noise.view()) &&
              slot.put(keys.data.view()) && slot.put_number(keys.exchange ? 1 : 0) &&
              slot.put(keys.exchange ? keys.exchange->view() : nothing) &&
              slot.put_number(static_cast<std::uint32_t>(keys.masks.size()));
  for (const Mask& mask : keys.masks)
    fits = fits && slot.put_number(static_cast<std::uint32_t>(mask.other().size())) && slot.put(mask.other()) &&
           slot.put(mask.shared().view()) && slot.put_number(mask.adds() ? 1 : 0);
  return fits && slot.put(hash("key file", {std::string_view(slot.bytes).substr(0, slot.end)}));
}

// Nothing: it is empty, or was not written to its end.
std::optional<StudyKeys> read(Slot& slot) {
  if (slot.take(kMagic.size()) != kMagic) return std::nullopt;
  StudyKeys keys = StudyKeys::draw();
  const auto secret = [&](Secret& to) {
    const auto read = Secret::of(slot.take(Secret::kBytes));
    if (read) to = *read;
    return read.ok();
  };
  keys.index = slot.take_number();
  bool good = secret(keys.noise) && secret(keys.data);
  const bool exchanges = slot.take_number() == 1;
  good = good && secret(*keys.exchange);
  if (!exchanges) keys.exchange.reset();
  const std::uint32_t masks = slot.take_number();
  for (std::uint32_t i = 0; good && i < masks; ++i) {
    const std::string other(slot.take(slot.take_number()));
    Secret shared = Secret::draw();
    good = secret(shared);
    keys.masks.emplace_back(other, shared, slot.take_number() == 1);
  }
  const std::string expected = hash("key file", {std::string_view(slot.bytes).substr(0, slot.end)});
  if (!good || slot.take(expected.size()) != expected) return std::nullopt;
  return keys;
}

/// Closes itself.
struct File {
  explicit File(int number) : number(number) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number >= 0) ::close(number);
  }
  int number;
};

bool write_slot(int file, std::uint32_t which, const std::string& bytes) {
  return ::pwrite(file, bytes.data(), kSlot, static_cast<off_t>(which * kSlot)) == static_cast<ssize_t>(kSlot);
}

}  // namespace

void StudyKeys::advance(std::string_view head) {
  noise = noise.derive("next", {head});
  for (Mask& mask : masks) mask.advance(head);
  ++index;
}

Result<std::optional<StudyKeys>> KeyFile::load() const {
  const File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.number < 0 && errno == ENOENT) return std::optional<StudyKeys>();
  struct stat facts {};
  if (file.number < 0 || ::fstat(file.number, &facts) != 0)
    return bad_input(fmt::format("{}: cannot be opened: {}", path_, std::strerror(errno)));
  if ((facts.st_mode & 077) != 0)
    return bad_input(fmt::format("{}: others can read the keys of this study: it cannot go on", path_));
  std::optional<StudyKeys> newest;
  bool empty = true;
  for (const std::uint32_t which : {0U, 1U}) {
    Slot slot;
    const bool got = ::pread(file.number, slot.bytes.data(), kSlot, static_cast<off_t>(which * kSlot)) >= 0;
    empty = empty && got && slot.bytes.find_first_not_of('\0') == std::string::npos;
    if (!got) continue;
    auto keys = read(slot);
    if (keys && (!newest || keys->index >= newest->index)) {
      const bool met = newest && keys->index == newest->index && keys->exchange;  // the one with pairs is newer
      if (!met) newest = std::move(keys);
    }
  }
  if (!newest && !empty) return bad_input(path_ + ": the file is damaged");
  return newest;
}

Status KeyFile::save(const StudyKeys& keys) const {
  const auto failed = [&] {
    return internal_error(fmt::format("{}: could not be written ({})", path_, std::strerror(errno)));
  };
  Slot slot;
  if (!fill(slot, keys)) return bad_input("there are too many sites for one study");
  const bool there = ::access(path_.c_str(), F_OK) == 0;
  const File file(::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.number < 0 || ::fchmod(file.number, 0600) != 0) return failed();
  // Keys that wait for the roster are in slot 0, those after ask r in slot (r + 1) mod 2.
  const std::uint32_t which = keys.exchange ? 0 : (keys.index + 1) % 2;
  if (!write_slot(file.number, which, slot.bytes) || ::fdatasync(file.number) != 0) return failed();
  // On disk with the next keys at the latest.
  if (!write_slot(file.number, 1 - which, std::string(kSlot, '\0'))) return failed();
  return there ? Status() : sync_folder_of(path_);
}

void KeyFile::erase() const {
  {
    const File file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.number < 0) return;
    const std::string zeros(kSlot, '\0');
    for (const std::uint32_t which : {0U, 1U}) (void)write_slot(file.number, which, zeros);
    ::fdatasync(file.number);
  }
  ::unlink(path_.c_str());
  (void)sync_folder_of(path_);
}

}  // namespace eigenveil::federation
