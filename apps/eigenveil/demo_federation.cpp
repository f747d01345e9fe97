// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

#ifdef EIGENVEIL_ENGINES
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/coordinator.hpp"
#include "eigenveil/linalg/eigen.hpp"
#endif

namespace eigenveil::app {
#ifdef EIGENVEIL_ENGINES
namespace {

constexpr const char* kFolder = "/usr/share/datasets/fashion-mnist";
constexpr std::size_t kPixels = 784;
constexpr std::size_t kSites = 4;
constexpr const char* kNames[kSites] = {"north", "east", "south", "west"};

/// A program of ours that runs beside this one; what it prints goes to a file. Killed if it is still there at the end.
class SiteProcess {
 public:
  SiteProcess(const std::string& config, const std::string& log) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // whoever stops the demonstration stops its sites
    const int out = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execl("/proc/self/exe", "eigenveil", "site", "serve", "--config", config.c_str(), "--approve", "policy", "--once",
            "--threads", "1", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  SiteProcess(const SiteProcess&) = delete;
  SiteProcess& operator=(const SiteProcess&) = delete;
  ~SiteProcess() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
    wait();
  }
  void wait() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

void append_big_endian(std::string& bytes, std::size_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
}

// The ten classes go round among the sites, so each has other clothes: one IDX file per site.
Status split_by_class(const std::string& folder) {
  auto images = EIGENVEIL_TRY(open_source(fmt::format("{}/train-images-idx3-ubyte.gz", kFolder), {}));
  auto labels = EIGENVEIL_TRY(open_source(fmt::format("{}/train-labels-idx1-ubyte.gz", kFolder), {}));
  std::vector<std::string> pixels(kSites);
  RawBatch image;
  RawBatch label;
  for (;;) {
    EIGENVEIL_TRY(images->next(image, 1000));
    EIGENVEIL_TRY(labels->next(label, 1000));
    if (image.rows != label.rows) return bad_input("Fashion-MNIST has images without labels");
    if (image.rows == 0) break;
    for (std::size_t i = 0; i < image.rows; ++i) {
      std::string& to = pixels[static_cast<std::size_t>(label.values[i]) % kSites];
      for (std::size_t j = 0; j < kPixels; ++j) to += static_cast<char>(image.values[i * kPixels + j]);
    }
  }
  for (std::size_t s = 0; s < kSites; ++s) {
    std::string header("\0\0\x08\x02", 4);  // unsigned bytes, two dimensions
    append_big_endian(header, pixels[s].size() / kPixels);
    append_big_endian(header, kPixels);
    EIGENVEIL_TRY(write_file(fmt::format("{}/{}.idx", folder, kNames[s]), header + pixels[s]));
  }
  return {};
}

const federation::Validity kMonth{.until = 31LL * 24 * 3600};

// Each party makes its own key; here they all live in one folder.
Status make_party(const std::string& folder, const std::string& name, federation::Role role) {
  EIGENVEIL_TRY(federation::make_request(folder + "/" + name, {name, role}));
  std::ifstream in(folder + "/" + name + ".csr");
  const auto party = federation::sign_request(folder + "/ca", {std::istreambuf_iterator<char>(in), {}}, role, kMonth);
  return party ? Status() : Status(party.error());
}

Result<federation::Identity> identity_of(const std::string& folder, const std::string& name, federation::Role role) {
  return federation::Identity::read(role, folder + "/ca/ca.crt", fmt::format("{}/ca/{}.crt", folder, name),
                                    fmt::format("{}/{}.key", folder, name));
}

// What the parties told each other about their keys.
Result<federation::Pins> keys_of_sites(const std::string& folder) {
  federation::Pins pins;
  for (const std::string name : kNames) {
    const auto identity = EIGENVEIL_TRY(identity_of(folder, name, federation::Role::kSite));
    pins[name] = identity.party.key_hash;
  }
  return pins;
}

Status prepare(const std::string& folder, bool force) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const std::string marker = folder + "/.eigenveil-demo";
  if (fs::exists(folder) && !fs::is_empty(folder, failure) && !fs::exists(marker))
    return usage_error(fmt::format("{} has something else in it: give --folder a new one", folder));
  if (fs::exists(marker) && !force)
    return usage_error(
        fmt::format("{} has an earlier demonstration in it: give --folder a new one, or say --force", folder));
  fs::remove_all(folder, failure);
  fs::create_directories(folder, failure);
  if (failure) return usage_error(fmt::format("cannot make the folder {}: {}", folder, failure.message()));
  EIGENVEIL_TRY(write_file(marker, "made by eigenveil demo federation\n"));
  EIGENVEIL_TRY(split_by_class(folder));
  std::string schema;
  for (std::size_t i = 1; i <= kPixels; ++i)
    schema += fmt::format("[[column]]\nname = \"{}\"\nkind = \"numeric\"\nlower = 0\nupper = 255\n", i);
  EIGENVEIL_TRY(write_file(folder + "/schema.toml", schema));
  EIGENVEIL_TRY(federation::make_authority(folder + "/ca", "the demonstration", kMonth));
  EIGENVEIL_TRY(make_party(folder, "coordinator", federation::Role::kCoordinator));
  for (const std::string name : kNames) {
    EIGENVEIL_TRY(make_party(folder, name, federation::Role::kSite));
    auto ledger = EIGENVEIL_TRY(Ledger::open(fmt::format("{}/{}.db", folder, name)));
    EIGENVEIL_TRY(ledger.create({.name = "images", .limit = {{*Epsilon::of(3), *Delta::of(1e-6)}}}));
  }
  return {};
}

Status write_config(const std::string& folder, const std::string& name, int port, const std::string& coordinator_key,
                    const federation::Pins& peers) {
  std::string text = fmt::format(
      "coordinator = \"127.0.0.1:{0}\"\ncoordinator_name = \"coordinator\"\ncoordinator_key = \"{1}\"\n"
      "data = \"{2}.idx\"\nschema = \"schema.toml\"\nledger = \"{2}.db\"\ndataset = \"images\"\n"
      "state = \"state-{2}\"\n\n[tls]\nauthority = \"ca/ca.crt\"\ncertificate = \"ca/{2}.crt\"\nkey = \"{2}.key\"\n\n"
      "[policy]\nestimators = [\"pca\"]\nmost_epsilon = 1\n\n[peers]\n",
      port, coordinator_key, name);
  for (const auto& [peer, pin] : peers) text += fmt::format("{} = \"{}\"\n", peer, pin);
  return write_file(fmt::format("{}/{}.toml", folder, name), text);
}

PcaJob job_for(const std::string& folder, const std::string& name) {
  PcaJob job{.fit = {.rows = {},
                     .privacy = {.epsilon = *Epsilon::of(1), .delta = *Delta::of(1e-6)},
                     .run = {},
                     .out = fmt::format("{}/{}.npz", folder, name),
                     .report = fmt::format("{}/{}.html", folder, name),
                     .report_options = {ReportOptions::ImageShape{28, 28}}},
             .components = 10};
  job.fit.rows.schema = folder + "/schema.toml";
  job.fit.rows.missing = MissingPolicy::kZeroRow;
  job.fit.rows.center = Center::kPrivate;
  job.fit.rows.row_bound = *RowBound::of(20);
  return job;
}

Result<Release> run_study(const std::string& folder, federation::Aggregation aggregation, const std::string& name,
                          bool quiet) {
  std::vector<std::unique_ptr<SiteProcess>> sites;
  federation::CoordinatorOptions options;
  auto identity = EIGENVEIL_TRY(identity_of(folder, "coordinator", federation::Role::kCoordinator));
  auto peers = EIGENVEIL_TRY(keys_of_sites(folder));
  options.peers = peers;
  options.identity = std::move(identity);
  options.listen = "127.0.0.1:0";
  options.sites = {std::begin(kNames), std::end(kNames)};
  options.aggregation = aggregation;
  options.journal = folder + "/" + name + "-journal";
  options.estimator = "pca";
  options.patience_seconds = 120;
  options.say = [&](const std::string& line) {
    const std::size_t at = line.find("port ");
    if (at == std::string::npos || !sites.empty()) return;
    for (const std::string site : kNames) {
      const int port = std::atoi(line.c_str() + at + 5);
      if (const auto written = write_config(folder, site, port, options.identity.party.key_hash, options.peers);
          !written)
        return complain("{}\n", written.error().message);
      sites.push_back(std::make_unique<SiteProcess>(fmt::format("{}/{}.toml", folder, site),
                                                    fmt::format("{}/{}.log", folder, site)));
    }
  };
  auto engine = EIGENVEIL_TRY(federation::federated_engine(options));
  PcaJob job = job_for(folder, name);
  job.fit.run.engine = std::move(engine);
  Terminal terminal(quiet);
  auto outcome = release(study(std::move(job)), terminal);
  for (auto& site : sites) site->wait();
  return outcome;
}

// Share of the images' variance in the span of the components. Not private: the demonstration owns these images.
Result<double> captured(const Model& model, const Matrix& covariance) {
  const Matrix V = model.array("components")->transpose();
  return (V.transpose() * covariance * V).trace() / covariance.trace();
}

Result<Matrix> covariance_of(const std::string& images) {
  auto source = EIGENVEIL_TRY(open_source(images, {}));
  Vector sum = Vector::Zero(kPixels);
  Matrix gram = Matrix::Zero(kPixels, kPixels);
  double n = 0;
  for (RawBatch batch;;) {
    EIGENVEIL_TRY(source->next(batch, 4096));
    if (batch.rows == 0) break;
    const Eigen::Map<const RowMajorMatrix> rows(batch.values.data(), batch.rows, kPixels);
    sum += rows.colwise().sum().transpose();
    gram.noalias() += rows.transpose() * rows;
    n += static_cast<double>(batch.rows);
  }
  return Matrix(gram / n - (sum / n) * (sum / n).transpose());
}

void show_sites(const std::string& folder) {
  for (const std::string name : kNames) {
    std::ifstream log(fmt::format("{}/{}.log", folder, name));
    tell("Site '{}'\n", name);
    for (std::string line; std::getline(log, line);)
      if (line.starts_with("  Asks") || line.starts_with("  Alone") || line.starts_with("  Costs") ||
          line.starts_with("Answered") || line.find("finished") != std::string::npos)
        tell("  {}\n", line.substr(line.find_first_not_of(' ')));
    if (auto ledger = Ledger::open(fmt::format("{}/{}.db", folder, name)))
      if (const auto status = ledger->show("images"))
        tell("  its ledger: epsilon {:.3g} of {:g} spent after {} studies\n", status->spent_epsilon,
             status->budget.limit->epsilon.value(), status->reservations.size());
  }
}

int run_demo(const std::string& folder, bool quiet, bool force) {
  const std::string images = fmt::format("{}/train-images-idx3-ubyte.gz", kFolder);
  if (!std::filesystem::exists(images))
    return fail(
        bad_input(fmt::format("{} is missing; install it with: apt-get install dataset-fashion-mnist", images)));
  if (!quiet)
    complain(
        "Four sites hold the images of Fashion-MNIST by class, so that no two have the same clothes. A "
        "coordinator, who "
        "sees no image, runs private PCA over mutual TLS at epsilon 1, delta 1e-6.\n\n");
  if (const auto ready = prepare(folder, force); !ready) return fail(ready.error());
  const auto covariance = covariance_of(images);
  if (!covariance) return fail(covariance.error());
  struct Line {
    const char* what;
    double share;
  };
  std::vector<Line> lines;
  for (const auto& [aggregation, name, what] :
       {std::tuple{federation::Aggregation::kLocal, "local", "four sites, each with the full noise (local)"},
        std::tuple{federation::Aggregation::kSecure, "secure", "four sites, masked shares of the noise (secure)"}}) {
    const auto outcome = run_study(folder, aggregation, name, quiet);
    if (!outcome) return fail(outcome.error());
    lines.push_back({what, *captured(outcome->model, *covariance)});
    tell("{}\n", what);
    show_sites(folder);
    tell("\n");
  }
  PcaJob central = job_for(folder, "central");
  central.fit.rows.data = images;
  central.fit.privacy.use_ledger = false;
  auto outcome = [&] {
    Terminal terminal(quiet);
    return release(study(std::move(central)), terminal);
  }();
  if (!outcome) return fail(outcome.error());
  lines.push_back({"all images in one place (central)", *captured(outcome->model, *covariance)});
  const auto exact = top_eigenpairs(*covariance, 10);
  if (!exact) return fail(exact.error());
  lines.push_back({"without privacy", exact->values.sum() / covariance->trace()});
  tell("Share of the variance that 10 released components capture:\n");
  for (const Line& line : lines) tell("  {:<50} {:.4f}\n", line.what, line.share);
  tell("\nModels, reports, ledgers, certificates and what each site printed: {}/\n", folder);
  return 0;
}

}  // namespace

Command demo_federation_command(CLI::App& demo) {
  auto* app = demo.add_subcommand("federation", "Private PCA of images that four sites hold, compared with one place");
  struct Flags {
    std::string folder = "eigenveil-demo-federation";
    bool quiet = false;
    bool force = false;
  };
  auto flags = std::make_shared<Flags>();
  app->add_option("--folder", flags->folder, "Where everything goes")->capture_default_str();
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->add_flag("--force", flags->force, "Replace an earlier demonstration in the folder");
  app->footer("\nExample:\n  eigenveil demo federation --folder four-sites");
  return {app, [flags] { return run_demo(flags->folder, flags->quiet, flags->force); }};
}
#else
Command demo_federation_command(CLI::App& demo) {
  auto* app = demo.add_subcommand("federation", "Private PCA of images that four sites hold (not in this build)");
  return {app, [] { return fail(usage_error(kNoEngines)); }};
}
#endif

}  // namespace eigenveil::app
