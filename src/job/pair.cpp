#include "eigenveil/job/pair.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/pair.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kMostMatrixColumns = 5000;

Result<Matrix> read_matrix(const std::string& path) {
  const auto source = EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo}));
  const std::size_t d = source->columns().size();
  if (d > kMostMatrixColumns)
    return bad_input(fmt::format("{}: has {} columns; a matrix may have at most {}", path, d, kMostMatrixColumns));
  const auto width = static_cast<Eigen::Index>(d);
  Matrix M(width, width);
  RawBatch batch;
  Eigen::Index row = 0;
  for (;;) {
    EIGENVEIL_TRY(source->next(batch, 256));
    if (batch.rows == 0) break;
    for (std::size_t i = 0; i < batch.rows; ++i, ++row) {
      if (row == width) return bad_input(fmt::format("{}: has {} columns but more rows; it must be square", path, d));
      M.row(row) = Eigen::Map<const Eigen::RowVectorXd>(&batch.values[i * d], width);
    }
  }
  if (row < width) return bad_input(fmt::format("{}: has {} columns but {} rows; it must be square", path, d, row));
  return M;
}

nlohmann::json manifest_of(const PairJob& job, const Charge& charge, const GepResult& fit, const GepOptions& options,
                           std::size_t d) {
  nlohmann::json chosen = {{"sensitivity_a", job.sensitivity_a}, {"sensitivity_b", job.sensitivity_b}};
  add_choices(chosen, options);
  nlohmann::json manifest =
      common_manifest("gep", name(options.noise), chosen, job.privacy, charge, static_cast<double>(job.rows));
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= d; ++i) names.push_back(std::to_string(i));
  add_columns(manifest, ColumnMap::identity(names));
  manifest["warnings"].push_back(
      "The guarantee rests on the two sensitivities that were given: nobody but their author can check them.");
  add_solution(manifest, fit.ridge, fit.noise_edge, fit.values, fit.notes);
  return manifest;
}

Result<PrivatePair> read_pair(const PairJob& job) {
  auto A = EIGENVEIL_TRY(read_matrix(job.matrix_a));
  auto B = EIGENVEIL_TRY(read_matrix(job.matrix_b));
  PrivatePair pair{std::move(A), std::move(B), job.sensitivity_a, job.sensitivity_b};
  EIGENVEIL_TRY(PairOracle::check(pair));
  return pair;
}

}  // namespace

Result<FitOutcome> run_pair(const PairJob& job, Observer& observer) {
  GepOptions options = gep_options(job.gep, job.privacy, job.run, 1);
  EIGENVEIL_TRY(check_job(options, job.privacy, job.out, job.report));
  if (job.privacy.adjacency != Adjacency::kReplaceOne)
    return usage_error("given matrices are averages or sums whose number of rows is public: use replace-one");
  observer.step("reading matrices");
  const auto pair = EIGENVEIL_TRY(read_pair(job));
  const auto d = static_cast<std::size_t>(pair.A.rows());
  EIGENVEIL_TRY(check(options, d));

  const PrivacyPlan plan = options.as_in_paper
                               ? paper_plan_pair(job.privacy.adjacency, options, job.privacy.epsilon, job.privacy.delta)
                               : plan_pair(job.privacy.adjacency, options);
  auto charged = EIGENVEIL_TRY(
      charge_plan(plan, PairOracle::largest_sensitivity(), job.privacy, job.run, {job.matrix_a, job.matrix_b},
                  fmt::format("gep --noise {} --components {}", name(options.noise), options.components), observer));
  auto oracle = EIGENVEIL_TRY(PairOracle::make(pair, std::move(charged.reservation), std::move(charged.random)));
  observer.step("asking");
  const auto fit = EIGENVEIL_TRY(fit_pair(oracle, options));
  if (!oracle.complete()) return internal_error("the fit did not ask for all that was planned");

  const auto width = static_cast<Eigen::Index>(d);
  Model model{{{"vectors", fit.vectors},
               {"eigenvalues", fit.values, true},
               {"mean", Vector::Zero(width), true},
               {"offset", Vector::Zero(width), true},
               {"scale", Vector::Ones(width), true}},
              manifest_of(job, charged, fit, options, d)};
  EIGENVEIL_TRY(write_release(model, job.out, job.report, job.report_options, observer));
  return FitOutcome{std::move(model), {}};
}

}  // namespace eigenveil
