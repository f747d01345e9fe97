// SPDX-License-Identifier: Apache-2.0
// Every estimator once, from outside the tree; a pipe as a source; what was released goes to a file and comes back.
#include <cstdio>
#include <cstdlib>
#include <eigenveil/eigenveil.hpp>
#include <iostream>
#include <memory>

namespace {

using eigenveil::Matrix;

/// Rows that another program prints, of numbers between blanks.
class Printed final : public eigenveil::RowSource {
 public:
  Printed(const char* command, std::size_t columns) : in_(::popen(command, "r")) {
    for (std::size_t j = 1; j <= columns; ++j) names_.push_back(std::to_string(j));
  }
  ~Printed() override { ::pclose(in_); }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }
  eigenveil::Status next(eigenveil::RawBatch& batch, std::size_t max_rows) override {
    batch.values.clear();
    double value = 0;
    while (batch.values.size() < max_rows * names_.size() && std::fscanf(in_, "%lf", &value) == 1)
      batch.values.push_back(value);
    batch.rows = batch.values.size() / names_.size();
    return {};
  }

 private:
  std::FILE* in_;
  std::vector<std::string> names_;
};

/// The value, or the end of the program.
template <class T>
T get(const char* what, eigenveil::Result<T> result) {
  if (!result) {
    std::cerr << what << ": " << result.error().message << '\n';
    std::exit(1);
  }
  std::cout << what << '\n';
  return *std::move(result);
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "wrong: " << what << '\n';
  std::exit(1);
}

}  // namespace

int main() {
  const eigenveil::Spending spending{.epsilon = 2, .delta = 1e-6, .ledger = eigenveil::Ledger::at("study.db", "")};
  std::srand(1);
  Matrix X = Matrix::Random(4000, 6);
  X.col(4) = (X.col(0).array() > 0).cast<double>();  // a class
  X.col(5) = X.col(1) + 0.1 * X.col(2);              // a response

  const auto pca = get("pca", eigenveil::pca(X.leftCols(4), {.components = 2, .ranges = {{-1, 1}}}, spending));
  expect(pca.is_private && pca.rows == 4000.0 && pca.deviation > 0, "what a release says of itself");
  expect(pca.save("pca.npz").ok() && pca.report("pca.html").ok(), "files");
  const auto back = get("load", eigenveil::Pca::load("pca.npz"));
  expect(back.components == pca.components && back.deviation == pca.deviation, "a model comes back");
  const Matrix scores = get("transform", back.transform(X.leftCols(4)));
  expect(scores.rows() == 4000 && scores.cols() == 2, "a score per row and component");
  expect(get("inverse_transform", back.inverse_transform(scores)).cols() == 4, "and back");

  const auto covariance = get("covariance", eigenveil::covariance(X.leftCols(4), {.ranges = {{-1, 1}}}, spending));
  expect(covariance.covariance.rows() == 4, "4 x 4");
  const auto cca = get(
      "cca",
      eigenveil::cca(X, {.components = 1, .x_columns = {"1-2"}, .y_columns = {"3", "6"}, .row_bound = 2}, spending));
  expect(cca.correlations[0] > 0.3, "column 6 is nearly column 2");
  const auto fda = get(
      "fda",
      eigenveil::fda(X.leftCols(5), {.components = 1, .label = "5", .classes = {"0", "1"}, .row_bound = 2}, spending));
  expect(get("predict", fda.predict(X.leftCols(4))).size() == 4000, "a label per row");
  const auto sir = get(
      "sir", eigenveil::sir(X, {.components = 1, .response = "6", .cuts = {-0.5, 0, 0.5}, .row_bound = 2}, spending));
  expect(sir.directions.rows() == 5, "a weight per feature");
  const Matrix A = X.transpose() * X / 4000;
  const auto gep =
      get("gep", eigenveil::gep(A, Matrix::Identity(6, 6),
                                {.components = 1, .sensitivity_a = 6.0 / 4000, .sensitivity_b = 1e-6, .rows = 4000},
                                spending));
  expect(gep.vectors.rows() == 6, "a weight per column");
  const auto clip = get("clip", eigenveil::clip(X.leftCols(3), X.rightCols(3), {.dim = 2}, spending));
  expect(get("embed", clip.embed_x(X.leftCols(3))).cols() == 2, "two dimensions");

  const auto piped = get("pipe", eigenveil::pca(std::make_unique<Printed>("seq 1 9000", 3),
                                                {.components = 1, .ranges = {{0, 9000}}}, spending));
  expect(piped.rows == 3000.0, "3000 rows came through the pipe");
}
