// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/gep.hpp"

#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"

namespace eigenveil {

GepOptions gep_options(const GepChoices& choices, const FitJob& job, std::size_t columns) {
  GepOptions options{.components = choices.components};
  options.preparation = preparation_of(job.rows);
  options.preparation.directions = choices.components;
  options.sparsity = choices.sparsity;
  options.start = choices.start;
  options.step = choices.step;
  options.rounds = choices.rounds;
  options.ridge = choices.ridge;
  if (choices.noise)
    options.noise = *choices.noise;
  else if (job.privacy.calibration == Calibration::kPaper ||
           sums_bytes(options, columns, 1, thread_count(job.run)) > job.run.memory / 2)
    options.noise = GepNoise::kEachStep;
  return options;
}

ForecastRequest gep_forecast(const GepModel& model, const Budget& budget, const RunOptions& run) {
  ForecastRequest request{.task = std::string(name(model.task)), .model = public_model(model), .budget = budget};
  request.kind_of_contender = "noise";
  request.subject = model.task == GepTask::kCca   ? "The canonical directions"
                    : model.task == GepTask::kFda ? "The discriminant directions"
                                                  : "The direction";
  request.remedies = "Gather more rows, use fewer columns, spend more epsilon, or tighten the row bound.";
  for (const GepNoise noise : {GepNoise::kOnce, GepNoise::kEachStep}) {
    const auto make = [model, noise](std::size_t) {
      GepOptions options{.components = model.components};
      options.noise = noise;
      options.sparsity = model.sparsity;
      if (model.task == GepTask::kCca) {
        options.preparation.mean = MeanBy::kRefined;
        return estimator(CcaOptions{options, model.x_columns});
      }
      const auto problem = model.task == GepTask::kFda ? ClassProblem::kFisher : ClassProblem::kSliced;
      return estimator(ClassOptions{options, problem, model.classes});
    };
    const bool fits = make(model.rows)->bytes(model.columns, thread_count(run)) <= run.memory / 2;
    if (fits || noise == GepNoise::kEachStep) request.contenders.push_back({make});
  }
  return request;
}

}  // namespace eigenveil
