#include "eigenveil/job/gep.hpp"

namespace eigenveil {

GepOptions gep_options(const GepChoices& choices, const FitJob& job, std::size_t columns) {
  GepOptions options{.components = choices.components};
  options.preparation = preparation_of(job.rows);
  options.sparsity = choices.sparsity;
  options.start = choices.start;
  options.step = choices.step;
  options.rounds = choices.rounds;
  options.ridge = choices.ridge;
  options.as_in_paper = job.privacy.calibration == Calibration::kPaper;
  if (choices.noise)
    options.noise = *choices.noise;
  else if (options.as_in_paper || sums_bytes(options, columns, 1, thread_count(job.run)) > job.run.memory / 2)
    options.noise = GepNoise::kEachStep;
  return options;
}

}  // namespace eigenveil
