// SPDX-License-Identifier: Apache-2.0
// One fit from file to model: what a crash, a full folder or a refused budget leaves behind.
#include "eigenveil/job/pca.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

namespace fs = std::filesystem;

class PcaRun : public ::testing::Test {
 protected:
  PcaRun() {
    std::ofstream data(folder_.path() / "data.csv");
    data << "a,b,c\n";
    for (int i = 0; i < 500; ++i) data << i % 7 << ',' << i % 11 << ',' << i % 3 << '\n';
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  PcaJob job() const {
    PcaJob job{.fit = {.rows = {},
                       .privacy = {.epsilon = *Epsilon::of(1), .delta = *Delta::of(1e-6)},
                       .run = {.threads = 1},
                       .out = path("model.npz"),
                       .report = path("report.html")},
               .components = 2};
    job.fit.rows.data = path("data.csv");
    job.fit.rows.source.header = HeaderRule::kYes;
    job.fit.rows.ranges = {"0:10"};
    job.fit.rows.center = Center::kPrivate;
    job.fit.privacy.ledger = path("ledger.db");
    job.fit.privacy.dataset = "patients";
    return job;
  }
  void create(double epsilon) {
    auto ledger = Ledger::open(path("ledger.db"));
    ASSERT_TRUE(ledger.ok());
    ASSERT_TRUE(ledger->create({"patients", DatasetBudget::Limit{*Epsilon::of(epsilon), *Delta::of(1e-6)}}).ok());
  }
  std::vector<ReservationRecord> reservations() {
    auto ledger = Ledger::open(path("ledger.db"));
    EXPECT_TRUE(ledger.ok());
    return ledger->show("patients")->reservations;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  test::TempDir folder_;
};

std::string integrity(const std::string& path) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  std::string answer;
  sqlite3_exec(
      db, "PRAGMA integrity_check",
      [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) += values[0];
        return 0;
      },
      &answer, nullptr);
  sqlite3_close(db);
  return answer;
}

/// Kills its own process, as hard as it gets, when the n-th step begins.
class Killer final : public Observer {
 public:
  explicit Killer(int steps) : left_(steps) {}
  void step(std::string_view name) override {
    last = name;
    if (left_-- == 0) ::kill(::getpid(), SIGKILL);
  }
  std::string last;

 private:
  int left_;
};

TEST_F(PcaRun, KilledAtAnyStepItNeverUndoesACharge) {
  create(100);
  std::size_t charged = 0;
  bool finished = false;
  int step = 0;
  for (; !finished; ++step) {
    ASSERT_LT(step, 50);
    fs::remove(path("model.npz"));
    fs::remove(path("report.html"));
    const pid_t child = fork();
    if (child == 0) {
      Killer killer(step);
      const auto outcome = release(study(job()), killer);
      _exit(outcome.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    ASSERT_TRUE(!finished || WEXITSTATUS(status) == 0);

    EXPECT_EQ(integrity(path("ledger.db")), "ok");
    const auto records = reservations();
    EXPECT_GE(records.size(), charged) << "a charge disappeared";
    EXPECT_LE(records.size(), charged + 1);
    for (const ReservationRecord& record : records) {
      EXPECT_EQ(record.plan.events.size(), 3U) << "a charge is there as a whole";
      EXPECT_NE(record.state, ReservationState::kReturned);
    }
    charged = records.size();
    if (fs::exists(path("model.npz"))) {
      EXPECT_TRUE(read_model(path("model.npz")).ok()) << "a model is there as a whole";
      EXPECT_EQ(records.back().state, ReservationState::kAnswered);
    }
  }
  EXPECT_TRUE(fs::exists(path("report.html")));
  EXPECT_GE(step, 8) << "reading, reserving, reserved, two asks, recentring, writing twice, done";
  auto ledger = Ledger::open(path("ledger.db"));
  EXPECT_EQ(*ledger->release_unused("patients"), 0) << "a crash gives nothing back";
}

TEST_F(PcaRun, RefusedBudgetChargesAndWritesNothing) {
  create(0.5);
  Observer observer;
  const auto outcome = release(study(job()), observer);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kBudgetRefused);
  EXPECT_TRUE(reservations().empty());
  EXPECT_EQ(files(), 4U) << "data, and the ledger with its key and anchor only";
}

TEST_F(PcaRun, BudgetIsSpentOnce) {
  create(1);
  Observer observer;
  ASSERT_TRUE(release(study(job()), observer).ok());
  const auto second = release(study(job()), observer);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBudgetRefused);
  EXPECT_EQ(reservations().size(), 1U);
}

TEST_F(PcaRun, AnUnwritableOutputIsFoundBeforeTheCharge) {
  create(1);
  PcaJob bad = job();
  bad.fit.out = path("nowhere/model.npz");
  Observer observer;
  const auto outcome = release(study(bad), observer);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUsage);
  EXPECT_TRUE(reservations().empty());
}

TEST_F(PcaRun, NoiseThatCannotBeDrawnIsRefusedBeforeTheCharge) {
  create(1);
  PcaJob tiny = job();
  tiny.fit.privacy.epsilon = *Epsilon::of(1e-6);
  tiny.fit.privacy.delta = *Delta::of(1e-9);
  Observer observer;
  const auto outcome = release(study(tiny), observer);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUsage) << outcome.error().message;
  EXPECT_TRUE(reservations().empty());
}

TEST_F(PcaRun, ABadRowIsFoundBeforeTheCharge) {
  create(1);
  std::ofstream(path("data.csv"), std::ios::app) << "1,2,\n";
  Observer observer;
  const auto outcome = release(study(job()), observer);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kBadInput);
  EXPECT_NE(outcome.error().message.find("row 501"), std::string::npos) << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("'c'"), std::string::npos) << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("data.csv"), std::string::npos) << outcome.error().message;
  EXPECT_TRUE(reservations().empty());
  EXPECT_EQ(files(), 4U);
}

TEST_F(PcaRun, TheManifestHidesTheNumberOfRowsUnderAddRemoveOne) {
  PcaJob hidden = job();
  hidden.fit.privacy.use_ledger = false;
  hidden.fit.privacy.dataset.clear();
  hidden.fit.privacy.adjacency = Adjacency::kAddRemoveOne;
  Observer observer;
  const auto outcome = release(study(hidden), observer);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_FALSE(outcome->model.manifest.contains("rows"));
  EXPECT_TRUE(outcome->model.manifest.contains("noisy_rows"));
  EXPECT_EQ(outcome->model.manifest["events"].size(), 4U);  // count, mean, row bound, covariance
}

TEST_F(PcaRun, ASeedIsStampedAndRepeatsTheRelease) {
  PcaJob seeded = job();
  seeded.fit.privacy.use_ledger = false;
  seeded.fit.privacy.dataset.clear();
  seeded.fit.run.insecure_seed = 7;
  Observer observer;
  const auto one = release(study(seeded), observer);
  const auto two = release(study(seeded), observer);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one->model.array("components"), *two->model.array("components"));
  EXPECT_EQ(one->model.manifest["private"], false);
  EXPECT_EQ(one->model.manifest["guarantee"].get<std::string>().rfind("NOT PRIVATE", 0), 0U);
  seeded.fit.run.insecure_seed.reset();
  const auto kernel = release(study(seeded), observer);
  EXPECT_NE(*one->model.array("components"), *kernel->model.array("components"));
  EXPECT_EQ(kernel->model.manifest["private"], true);
}

// A plan whose noise nobody prescribed is never charged as it is.
TEST_F(PcaRun, APapersCalibrationNeedsAnEstimatorThatHasOne) {
  PcaJob plain = job();
  plain.fit.rows.center = Center::kRange;
  plain.fit.privacy.use_ledger = false;
  plain.fit.privacy.dataset.clear();
  Study ours = study(plain);
  ours.job.privacy.calibration = Calibration::kPaper;  // the rivals were made for the tight one
  Observer observer;
  const auto refused = release(ours, observer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("no paper prescribes"), std::string::npos);
  plain.fit.privacy.calibration = Calibration::kPaper;
  const auto printed = release(study(plain), observer);
  ASSERT_TRUE(printed.ok()) << printed.error().message;
  EXPECT_EQ(printed->model.manifest["calibration"], "paper");
}

TEST(PcaForecast, LooksForNoEpsilonThatCannotBe) {
  const SpectrumModel model{1000, gap_spectrum(4, 1, 5), 2, 1};
  Observer observer;
  ForecastRequest request = pca_forecast(model, {*Epsilon::of(900), *Delta::of(1e-6)});
  request.curves = true;
  const auto report = make_forecast(request, observer);
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ForecastLine& line : report->lines) {
    EXPECT_TRUE(!line.epsilon_needed || Epsilon::of(*line.epsilon_needed).ok());
    for (const auto& [x, error] : line.error_by_epsilon) EXPECT_TRUE(Epsilon::of(x).ok()) << x;
  }
}

}  // namespace
}  // namespace eigenveil
