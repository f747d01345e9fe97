// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Where a TorchScript file keeps the numbers of a parameter.
struct ParameterPlace {
  std::uint64_t record;  ///< number of the member of the archive
  std::uint64_t offset;  ///< bytes
  std::uint64_t count;
  bool is_double;  ///< otherwise float
  std::uint64_t bytes() const { return count * (is_double ? sizeof(double) : sizeof(float)); }
};

/// A copy in which each record of numbers begins with its own number in the archive (4 bytes) and is zero otherwise:
/// who loads it sees which parameter came from where.
Result<std::string> marked_archive(const std::string& archive);

/// The numbers in these places. Refuses places outside of the archive's records.
Result<std::vector<double>> numbers_at(const std::string& archive, const std::vector<ParameterPlace>& places);

/// The extra file eigenveil.json, if there is one.
Result<std::optional<std::string>> manifest_in(const std::string& archive);

/// The same archive, byte for byte in every other member, with other numbers in these places and with `manifest` as its
/// extra file eigenveil.json.
Result<std::string> with_numbers(const std::string& archive, const std::vector<ParameterPlace>& places,
                                 std::span<const double> numbers, const std::string& manifest);

}  // namespace eigenveil
