#include "run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "eigenveil/release/npz.hpp"

namespace eigenveil {
namespace {

constexpr const char* kRun = "run.json";
constexpr const char* kCheckpoint = "checkpoint.npz";
constexpr const char* kLock = "run.lock";
constexpr const char* kStopped = "stopped.txt";

/// A copy of a file has another number.
std::uint64_t file_number(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

Result<nlohmann::json> read_json(const std::string& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return bad_input(fmt::format("{}: is damaged; start a new run in another folder", path));
  return json;
}

}  // namespace

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)), run_(std::move(other.run_)) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

Result<RunFolder> RunFolder::locked(const std::string& path) {
  RunFolder folder(path, open((path + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (folder.lock_ < 0) return usage_error(fmt::format("--checkpoint {}: cannot be written", path));
  if (flock(folder.lock_, LOCK_EX | LOCK_NB) != 0)
    return usage_error(fmt::format("--checkpoint {}: another process trains there; wait for it to end", path));
  return folder;
}

Result<RunFolder> RunFolder::begin(const std::string& path, nlohmann::json run) {
  std::error_code failure;
  std::filesystem::create_directory(path, failure);
  auto folder = locked(path);
  if (!folder) return folder.error();
  if (std::filesystem::exists(folder->file(kRun), failure))
    return usage_error(
        fmt::format("--checkpoint {}: holds a run already; go on with it by --resume, or choose another folder", path));
  run["folder"] = file_number(folder->lock_);
  EIGENVEIL_TRY(write_text_file(folder->file(kRun), run.dump(1) + "\n"));
  folder->run_ = std::move(run);
  return folder;
}

Result<RunFolder> RunFolder::reopen(const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::exists(path + "/" + kRun, failure))
    return usage_error(fmt::format("--resume: there is no run in {}; leave --resume out to begin one", path));
  auto folder = locked(path);
  if (!folder) return folder.error();
  auto run = read_json(folder->file(kRun));
  if (!run) return run.error();
  if (run->value("folder", std::uint64_t{0}) != file_number(folder->lock_))
    return usage_error(
        fmt::format("--resume: {} is a copy. The original may have gone on from the same state, and both together "
                    "would release more "
                    "than was charged; resume the original, or begin a new run",
                    path));
  if (std::ifstream stopped(folder->file(kStopped)); stopped) {
    std::string why;
    std::getline(stopped, why);
    return usage_error(fmt::format(
        "--resume: the run in {} was stopped ({}). To try the same step again until it works would tell more than was "
        "charged; begin a new run",
        path, why));
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, failure))  // of a process that was killed
    if (entry.path().filename().string().starts_with(".eigenveil-")) std::filesystem::remove(entry.path(), failure);
  folder->run_ = *std::move(run);
  return folder;
}

Result<std::optional<TrainingState>> RunFolder::load() const {
  std::error_code failure;
  if (!std::filesystem::exists(file(kCheckpoint), failure)) return std::optional<TrainingState>();
  const auto contents = read_npz(file(kCheckpoint));
  if (!contents) return contents.error();
  TrainingState state;
  bool has_step = false;
  for (const NamedArray& array : contents->arrays) {
    if (array.name == "step" && array.values.size() == 1)
      state.descent.steps = static_cast<long long>(array.values(0)), has_step = true;
    if (array.name == "parameters") state.parameters = array.values.reshaped();
    if (array.name == "first") state.descent.first = array.values.reshaped();
    if (array.name == "second") state.descent.second = array.values.reshaped();
  }
  if (!has_step || state.parameters.size() == 0 || !state.parameters.allFinite() ||
      state.descent.first.size() != state.descent.second.size())
    return bad_input(fmt::format("{}: is damaged; start a new run in another folder", file(kCheckpoint)));
  return std::optional(std::move(state));
}

Status RunFolder::save(const TrainingState& state) const {
  std::vector<NamedArray> arrays = {{"step", Vector::Constant(1, static_cast<double>(state.descent.steps)), true},
                                    {"parameters", state.parameters, true}};
  if (state.descent.first.size() > 0) {
    arrays.push_back({"first", state.descent.first, true});
    arrays.push_back({"second", state.descent.second, true});
  }
  return write_npz(file(kCheckpoint), arrays, {{"run.json", run_.dump(1) + "\n"}});
}

Status RunFolder::stop(const std::string& why) const { return write_text_file(file(kStopped), why + "\n"); }

void RunFolder::discard() const {
  std::error_code failure;
  for (const char* name : {kRun, kLock}) std::filesystem::remove(file(name), failure);
  std::filesystem::remove(path_, failure);  // if it is empty now
}

}  // namespace eigenveil
