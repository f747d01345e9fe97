#include "anchor.hpp"

#include <fmt/format.h>

#include <fstream>

#include "../release/atomic_file.hpp"

namespace eigenveil::federation {

Status check_anchor(const std::string& path, std::uint64_t generation) {
  if (path.empty()) return {};
  std::ifstream in(path);
  if (!in) return {};  // before the first study
  std::uint64_t anchored = 0;
  if (!(in >> anchored)) return bad_input(fmt::format("{}: the anchor is damaged", path));
  if (generation >= anchored) return {};
  return budget_refused(fmt::format(
      "the ledger is an older copy (change {}, where {} says {}): charges since then are forgotten. Bring the "
      "newer ledger back, or state what was spent, close open studies and remove the anchor",
      generation, path, anchored));
}

Status write_anchor(const std::string& path, std::uint64_t generation) {
  if (path.empty()) return {};
  auto file = EIGENVEIL_TRY(AtomicFile::create(path));
  EIGENVEIL_TRY(file.append(fmt::format("{}\n", generation)));
  return file.commit();
}

}  // namespace eigenveil::federation
