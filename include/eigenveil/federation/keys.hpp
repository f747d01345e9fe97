// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "eigenveil/federation/masks.hpp"

namespace eigenveil::federation {

/// What a site keeps secret in one study. After ask r everything moves on by a one-way step, so that what is in the
/// file says nothing about noise and masks of asks that were answered.
struct StudyKeys {
  std::uint32_t index = 0;         ///< asks that these keys have left behind
  Secret noise;                    ///< K_index
  Secret data;                     ///< of the keyed hash of the data file; the same all the time
  std::optional<Secret> exchange;  ///< a_i, until the roster is known and the masks follow from it
  std::vector<Mask> masks = {};    ///< one shared with each other site, from then on

  static StudyKeys draw() { return {0, Secret::draw(), Secret::draw(), Secret::draw()}; }
  /// Past the ask whose head is h_{index + 1}.
  void advance(std::string_view head);
};

/// The file of such keys: readable by its owner alone, and written in place. Two slots take turns; the one that is not
/// in use is overwritten with zeros.
class KeyFile {
 public:
  explicit KeyFile(std::string path) : path_(std::move(path)) {}
  /// Nothing: there is no file, or one that was never filled or was being erased when its process ended. Refuses one
  /// that others can read, and one that is damaged.
  Result<std::optional<StudyKeys>> load() const;
  /// On disk before it returns.
  Status save(const StudyKeys& keys) const;
  /// Overwritten, and gone.
  void erase() const;

 private:
  std::string path_;
};

}  // namespace eigenveil::federation
