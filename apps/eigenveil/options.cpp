// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <fmt/format.h>

#include <charconv>

#ifdef EIGENVEIL_ENGINES
#include "eigenveil/mpi/mpi.hpp"
#endif

#include "eigenveil/base/memory.hpp"
#include "first_line.hpp"
#include "flags.hpp"
#include "overwriting.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<FitJob> fit_job(const RowFlags& rows, const PrivacyFlags& privacy, const RunFlags& run,
                       const OutputFlags& output, std::optional<std::size_t> expected_rows) {
  auto spending = EIGENVEIL_TRY(privacy.options(expected_rows));
  auto reading = EIGENVEIL_TRY(rows.options());
  auto running = EIGENVEIL_TRY(run.options());
  const auto reporting = EIGENVEIL_TRY(output.report_options());
  return FitJob{std::move(reading), std::move(spending), std::move(running), output.out, output.report, reporting};
}

namespace {

// Concerns are heard by whoever said --yes, asked of a person, and end a run that nobody watches.
Status confirmed(const std::vector<Concern>& concerns, const OutputFlags& output) {
  const auto words = [&](bool all) {
    std::string text;
    for (const Concern& concern : concerns)
      if (all || !concern.of_rows) text += with_flags(concern.words) + ". ";
    return text;
  };
  if (output.yes) {
    // Whoever said so in advance hears nothing that rows decide: such a run ends in the same words for any rows.
    const std::string known = words(false);
    if (!output.quiet && !known.empty()) complain("eigenveil: {}\n", known);
    return {};
  }
  const auto answer = output.json ? std::nullopt : ask_yes_or_no("eigenveil: " + words(true) + "Go on?");
  if (!answer) return unconfirmed(concerns);
  return *answer ? Status() : Status(usage_error("nothing was charged"));
}

}  // namespace

Confirm confirm_by(const OutputFlags& output) {
  return [output](const std::vector<Concern>& concerns) { return confirmed(concerns, output); };
}

Bearings bearings_of(const FitJob& job) {
  // Sites have ledgers of their own, and go on with a study whose coordinator comes back.
  if (elsewhere(job.rows) && !job.rows.pairs)
    return {.ledger = false,
            .again =
                "Sites that took part have charged their own ledgers, once. The same command, with the same "
                "--journal, goes on where this one stopped; nothing is charged twice.",
            .at_once = true};
  return Bearings::of(job.privacy);
}

Result<Release> released(const Result<Study>& study, const OutputFlags& output) {
  if (!study) return study.error();
  // Whoever said --yes in advance hears nothing that rows decide.
  Terminal terminal(output.quiet, bearings_of(study->job), output.yes);
  Study asked = *study;
  asked.job.confirm = confirm_by(output);
  asked.job.existing = output.existing();
  auto outcome = release(asked, terminal);
  // A file whose header nobody stated was refused; its operator sees its first line.
  const RowOptions& rows = study->job.rows;
  if (const auto facts = file_facts(rows); !outcome && facts && !rows.data.empty())
    EIGENVEIL_TRY(header_stated(rows.data, facts->source));
  return outcome;
}

bool elsewhere(const CLI::App& app) {
  return app.get_parent() != nullptr && app.get_parent()->get_name() == "coordinate";
}

std::optional<std::size_t> count_from_text(const std::string& text) {
  const auto value = number<std::size_t>(text);
  return value && *value > 0 ? value : std::nullopt;
}

CLI::Validator from_one() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto value = number<double>(text);
        return value && *value >= 1 ? std::string() : fmt::format("must be a number from 1, but is '{}'", text);
      },
      "");
}

Result<Delta> delta_from_text(const std::string& text) {
  const auto value = number<double>(text);
  if (!value) return usage_error(fmt::format("--delta must be a number or auto, but is '{}'", text));
  return Delta::of(*value);
}

Result<std::size_t> bytes_from_text(const std::string& text) {
  if (text == "auto") return memory_by_default();
  std::string digits = text;
  std::size_t unit = 1;
  if (!digits.empty()) {
    const std::size_t power = std::string("KMGT").find(static_cast<char>(std::toupper(digits.back())));
    if (power != std::string::npos) {
      unit = std::size_t{1} << (10 * (power + 1));
      digits.pop_back();
    }
  }
  const auto value = number<std::size_t>(digits);
  if (!value || *value == 0 || *value > SIZE_MAX / unit)
    return usage_error(fmt::format("--memory must be a size such as 2G or 512M, or auto, but is '{}'", text));
  return *value * unit;
}

void SourceFlags::add_to(CLI::App& app) {
  app.add_option("--columns", columns, "Columns to use, by name or 1-based position or range: a,b,c or 1-50")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Rows");
  if (elsewhere(app)) return;
  app.add_option("--header", header,
                 "Does the first line of a CSV file hold column names? yes or no. Not needed with a schema whose names "
                 "are in that line, or that says it")
      ->check(CLI::IsMember({"yes", "no"}))
      ->group("Rows");
  app.add_option("--delimiter", delimiter,
                 "CSV delimiter: comma (default), semicolon, tab, bar, space, or one character")
      ->group("Rows");
  app.add_option("--fields", fields,
                 "How many fields a line of a CSV file without a header has, or values an image; default: those of the "
                 "first of several, and all must agree")
      ->check(from_one())
      ->group("Rows");
  app.add_option("--member", member, "Array inside an NPZ file, or data set inside an HDF5 file")->group("Rows");
}

Result<SourceOptions> SourceFlags::options() const {
  SourceOptions options;
  options.columns = columns;
  options.header = header.empty() ? HeaderRule::kUnstated : header == "yes" ? HeaderRule::kYes : HeaderRule::kNo;
  if (!delimiter.empty()) {
    const auto found = delimiter_from_name(delimiter);
    if (!found)
      return usage_error(fmt::format(
          "--delimiter must be comma, semicolon, tab, bar, space or one character, but is '{}'", delimiter));
    options.delimiter = *found;
  }
  options.fields = fields;
  options.member = member;
  return options;
}

void add_missing_option(CLI::App& app, std::string& missing, const char* group, bool cells) {
  constexpr const char* kRows = "A row with a value that is missing or cannot be read: error, or count it as zero-row";
  constexpr const char* kCells =
      "A value that is missing or cannot be read: error; zero-row: its row counts as zero; value: it counts as the "
      "middle of its range, or as the schema says; category: likewise, but a category that is missing is one of its "
      "own";
  app.add_option("--missing", missing, cells ? kCells : kRows)
      ->check(cells ? CLI::IsMember({"error", "zero-row", "value", "category"}) : CLI::IsMember({"error", "zero-row"}))
      ->capture_default_str()
      ->group(group);
}

MissingPolicy missing_policy(const std::string& missing) {
  return missing == "error"      ? MissingPolicy::kError
         : missing == "zero-row" ? MissingPolicy::kZeroRow
         : missing == "value"    ? MissingPolicy::kValue
                                 : MissingPolicy::kCategory;
}

void RowFlags::add_to(CLI::App& app) {
  if (!elsewhere(app))
    app.add_option("DATA", data, "Rows: CSV, CSV.gz, NPY, NPZ, IDX, IDX.gz or HDF5, or a folder of such files")
        ->required();
  app.add_option("--schema", schema, "TOML file with the public bounds of each column (see: eigenveil schema init)")
      ->group("Rows");
  app.add_option("--range", ranges, "Public bounds LO:HI of all columns, or COLUMN=LO:HI of one; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Rows");
  app.add_option("--row-bound", row_bound,
                 "Longest Euclidean norm a row may keep; longer ones are scaled down. auto: found with a share of the "
                 "budget, below what the ranges allow, or auto:MAX below that; range: what they allow; or a number. "
                 "Default: auto, but for regress")
      ->group("Rows");
  app.add_option(
         "--center", center,
         "What becomes zero: none; range, the middle of each range; mean, found privately with what it needs of "
         "the budget; private, a mean with 5% of it. Default: mean for pca, covariance and cca, else range")
      ->check(CLI::IsMember({"none", "range", "private", "mean"}))
      ->group("Rows");
  add_missing_option(app, missing, "Rows", true);
  source.add_to(app);
  person.add_to(app);
}

void PersonFlags::add_to(CLI::App& app) {
  auto* named =
      elsewhere(app)
          ? app.add_flag_callback(
                "--people", [this] { column = "each site's own"; },
                "What is protected is a person, with all their rows at a site; each site's file "
                "names its own column")
          : app.add_option("--person", column,
                           "Column that says whose a row is, by name or position: what is protected is then a person, "
                           "with all their rows");
  named->group("People");
  app.add_option("--person-weight", weight,
                 "equal: every person counts alike; rows:M: every row counts, up to M of a person (a share of the "
                 "budget tells how much all weigh)")
      ->capture_default_str()
      ->needs(named)
      ->group("People");
  app.add_option("--max-rows-per-person", most_rows, "Keep so many rows of a person, chosen by chance")
      ->check(from_one())
      ->needs(named)
      ->group("People");
  app.add_option("--missing-person", missing, "A row without an id: error, or own, a person of its own")
      ->check(CLI::IsMember({"error", "own"}))
      ->capture_default_str()
      ->needs(named)
      ->group("People");
}

Result<std::optional<PersonOptions>> PersonFlags::options() const {
  if (column.empty()) return std::optional<PersonOptions>();
  PersonOptions options{column, 1, most_rows, missing == "own"};
  if (weight == "equal") return std::optional(options);
  const auto least = weight.starts_with("rows:") ? count_from_text(weight.substr(5)) : std::nullopt;
  if (!least)
    return usage_error(fmt::format("--person-weight must be equal or rows:M such as rows:20, but is '{}'", weight));
  options.least_rows = *least;
  return std::optional(options);
}

Result<RowOptions> RowFlags::options() const {
  RowOptions options;
  options.data = data;
  if (!schema.empty()) options.schema = schema;
  options.ranges = ranges;
  std::string bound_text = row_bound;
  if (row_bound == "auto" || row_bound.starts_with("auto:")) {
    options.find_row_bound = true;
    bound_text = row_bound.size() > 5 ? row_bound.substr(5) : "";
  } else if (row_bound == "range") {
    options.find_row_bound = false;
    bound_text.clear();
  }
  if (!bound_text.empty()) {
    const auto value = number<double>(bound_text);
    if (!value)
      return usage_error(fmt::format("--row-bound must be auto, auto:MAX, range or a number, but is '{}'", row_bound));
    options.row_bound = EIGENVEIL_TRY(RowBound::of(*value));
  }
  options.center = center == "none"      ? Center::kNone
                   : center == "range"   ? Center::kRange
                   : center == "private" ? Center::kPrivate
                   : center == "mean"    ? Center::kMean
                                         : Center::kUsual;
  options.missing = missing_policy(missing);
  options.source = EIGENVEIL_TRY(source.options());
  options.person = EIGENVEIL_TRY(person.options());
  return options;
}

void PrivacyFlags::add_to(CLI::App& app) {
  app.add_option("--epsilon", epsilon, "Privacy loss; smaller is more private, 1 is a common choice")
      ->required()
      ->group("Privacy");
  app.add_option("--delta", delta, "Probability that epsilon does not hold; below 1 / number of rows. auto: rows^-1.1")
      ->required()
      ->group("Privacy");
  app.add_option("--adjacency", adjacency,
                 "What is protected: replace-one row, or add-remove-one (hides the row count)")
      ->capture_default_str()
      ->group("Privacy");
  app.add_option("--accounting", accounting, "tight, or zcdp (rests on the discrete law's own theorem, a bit looser)")
      ->check(CLI::IsMember({"tight", "zcdp"}))
      ->capture_default_str()
      ->group("Privacy");
  app.add_option("--calibration", calibration,
                 "tight: the least noise that keeps the budget; paper: the method's paper's own noise, for comparison")
      ->check(CLI::IsMember({"tight", "paper"}))
      ->capture_default_str()
      ->group("Privacy");
  if (elsewhere(app)) return;  // each site has a ledger of its own
  app.add_option("--dataset", dataset, "Data set in the ledger whose budget pays (see: eigenveil ledger create)")
      ->group("Privacy");
  auto* path = app.add_option("--ledger", ledger, "Ledger file; default: ~/.local/share/eigenveil/ledger.db");
  path->group("Privacy");
  app.add_flag("--no-ledger", no_ledger, "Charge nobody; the release says so")->excludes(path)->group("Privacy");
}

Result<PrivacyOptions> PrivacyFlags::options(std::optional<std::size_t> expected_rows) const {
  const auto e = EIGENVEIL_TRY(Epsilon::of(epsilon));
  const auto a = EIGENVEIL_TRY(adjacency_from_name(adjacency));
  // `auto` is settled once the number of rows is known; a private one by a public guess.
  const bool guessed = delta == "auto" && a == Adjacency::kAddRemoveOne && expected_rows;
  const auto d = EIGENVEIL_TRY(guessed           ? Result<Delta>(delta_for(*expected_rows))
                               : delta == "auto" ? Delta::of(0.5)
                                                 : delta_from_text(delta));
  if (no_ledger && !dataset.empty())
    return usage_error("--dataset names who pays, but --no-ledger charges nobody: use one");
  PrivacyOptions options{e, d, a};
  options.accounting = accounting == "tight" ? Accounting::kTight : Accounting::kZcdp;
  options.calibration = calibration == "tight" ? Calibration::kTight : Calibration::kPaper;
  options.auto_delta = delta == "auto" && !guessed;
  options.use_ledger = !no_ledger;
  options.ledger = ledger;
  options.dataset = dataset;
  return options;
}

void add_scale(CLI::App& app, std::string& scale) {
  app.add_option("--scale", scale,
                 "range: columns are comparable by their public ranges; correlation: by their deviations too, from the "
                 "released covariance (gram), at no further cost")
      ->check(CLI::IsMember({"range", "correlation"}))
      ->capture_default_str()
      ->group("Method");
}

CLI::Option* add_score_plot(CLI::App& app, std::optional<double>& share) {
  return app
      .add_option("--score-plot", share,
                  "Count the rows along the first two components, with this share of the budget (default 0.1): a "
                  "private picture of them, drawn in the report")
      ->expected(0, 1)
      ->default_str("0.1")
      ->check(CLI::Range(0.001, 0.9));
}

void SpikedFlags::add_to(CLI::App& app) {
  app.add_option("--rank", rank, "Rank of the spiked model, or auto: as many as stand out of the noise")
      ->group("Spiked model");
  app.add_option("--guarantee", guarantee,
                 "strict: holds for every data set; model: the paper's algorithm, private only if the rows are draws "
                 "from the model (the data set must allow it)")
      ->check(CLI::IsMember({"strict", "model"}))
      ->capture_default_str()
      ->group("Spiked model");
  app.add_option("--noise-variance", noise_variance, "sigma^2, if it is publicly known; default: released too")
      ->group("Spiked model");
  app.add_option("--spike", spike, "model: lambda, the spikes' eigenvalue above sigma^2, if publicly known")
      ->group("Spiked model");
}

Result<SpikedOptions> SpikedFlags::options() const {
  SpikedOptions options;
  if (!rank.empty() && rank != "auto") {
    const auto value = number<std::size_t>(rank);
    if (!value || *value < 1)
      return usage_error(fmt::format("--rank must be a whole number from 1, or auto, but is '{}'", rank));
    options.rank = *value;
  }
  options.guarantee = guarantee == "model" ? Guarantee::kModel : Guarantee::kStrict;
  options.noise_variance = noise_variance;
  options.spike = spike;
  return options;
}

void GuessFlags::add_to(CLI::App& app) {
  app.add_option("--spectrum", spectrum,
                 "File with a public guess of the covariance's eigenvalues; default: eigenvalue i in proportion to 1/i")
      ->group("Forecast");
  app.add_option("--expected-rows", expected_rows, "A public guess of the number of rows, where it is private")
      ->check(from_one())
      ->group("Forecast");
  app.add_option("--signal-share", signal_share,
                 "Share of the rows that carry the top components; small when a few heavy rows make them")
      ->capture_default_str()
      ->group("Forecast");
}

void RunFlags::add_to(CLI::App& app) {
  app.add_option("--memory", memory,
                 "Memory (of each rank) to stay within, such as 2G; auto: half of what is free, 2G per rank of MPI. "
                 "Rows beyond it wait in "
                 "an unnamed temporary file")
      ->capture_default_str()
      ->group("Running");
  if (elsewhere(app)) {
    federation = std::make_shared<FederationFlags>();
    federation->add_to(app);
    return;
  }
  app.add_option("--threads", threads, "Threads (of each rank); default: as many as cores")
      ->check(CLI::Range(1, 1024))
      ->group("Running");
  app.add_option("--insecure-seed", insecure_seed,
                 "Repeatable noise, for tests only: the release is stamped NOT PRIVATE")
      ->group("Running");
}

void RunFlags::add_engine_to(CLI::App& app) {
  if (elsewhere(app)) return;
  app.add_option("--engine", engine,
                 "Who holds the rows: local, this process; mpi, all ranks (mpirun -n R eigenveil ...), a share each")
      ->check(CLI::IsMember({"local", "mpi"}))
      ->capture_default_str()
      ->group("Running");
}

Result<RunOptions> RunFlags::options() const {
  RunOptions options;
  std::string memory_of_rank = memory;
  options.threads = threads;
  if (engine == "mpi") {
#ifdef EIGENVEIL_ENGINES
    options.engine = mpi::engine();
    if (memory == "auto") memory_of_rank = "2G";  // ranks may share a machine
    if (threads == 0) options.threads = mpi::threads_of_rank();
#else
    return usage_error(
        "--engine mpi: this program was built without MPI; install it with scripts/install-packages engines, and build "
        "again");
#endif
  }
  options.memory = EIGENVEIL_TRY(bytes_from_text(memory_of_rank));
  if (!insecure_seed.empty()) {
    options.insecure_seed = number<std::uint64_t>(insecure_seed);
    if (!options.insecure_seed)
      return usage_error(fmt::format("--insecure-seed must be a whole number, but is '{}'", insecure_seed));
  }
  if (federation) {
    auto engine = EIGENVEIL_TRY(federation->engine());
    options.engine = std::move(engine);
  }
  return options;
}

void OutputFlags::add_to(CLI::App& app) {
  app.add_option("--out", out, "Model file to write")->capture_default_str()->group("Output");
  app.add_option("--report", report, "HTML report to write")->group("Output");
  app.add_option("--image-shape", image_shape, "Draw components as images in the report: HEIGHTxWIDTH")
      ->group("Output");
  app.add_flag("--json", json, "Print one JSON object on stdout and nothing else there")->group("Output");
  app.add_flag("--quiet", quiet, "No progress on stderr")->group("Output");
  app.add_flag("--yes", yes,
               "Go on where nothing will be learnt, epsilon is above 10, delta above 1 / rows, or rows count as zero")
      ->group("Output");
  app.add_flag("--force", force, kForceHelp)->group("Output");
  app.add_flag("--diagnostics", diagnostics,
               "Show the operator how many rows were shortened (not private: do not share)")
      ->group("Output");
}

Result<ReportOptions> OutputFlags::report_options() const {
  ReportOptions options;
  if (image_shape.empty()) return options;
  const std::size_t x = std::min(image_shape.find('x'), image_shape.size() - 1);
  const std::size_t height = number<std::size_t>(image_shape.substr(0, x)).value_or(0);
  const std::size_t width = number<std::size_t>(image_shape.substr(x + 1)).value_or(0);
  if (height == 0 || width == 0 || height > 65535 || width > 65535)
    return usage_error(fmt::format("--image-shape must be HEIGHTxWIDTH such as 28x28, but is '{}'", image_shape));
  options.image_shape = {height, width};
  return options;
}

}  // namespace eigenveil::app
