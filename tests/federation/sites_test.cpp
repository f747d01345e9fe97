// SPDX-License-Identifier: Apache-2.0
// What one site does to the others, and what an ask may cost a site.
#include "eigenveil/federation/sites.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>

#include "../src/federation/credentials.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/support/federation.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::TestSites;
using ::testing::HasSubstr;
using wire::v2::Kind;

/// Numeric columns c0, c1, ... between -4 and 4, and rows that differ.
struct Wide {
  explicit Wide(int columns) : columns(columns) {
    for (int j = 0; j < columns; ++j) names.push_back(fmt::format("c{}", j));
    for (int i = 0; i < 20; ++i) {
      std::string line;
      for (int j = 0; j < columns; ++j) line += fmt::format("{}{}", j == 0 ? "" : ",", (i * 7 + j * 3) % 9 - 4);
      lines.push_back(line);
    }
  }
  Schema schema() const { return test::numeric_schema(names, 4); }
  RowOptions rows() const {
    RowOptions options;
    options.bounds = schema();
    options.row_bound = *RowBound::of(4);
    options.center = Center::kNone;
    return options;
  }
  std::string header() const { return fmt::format("{}", fmt::join(names, ",")); }
  int columns;
  std::vector<std::string> names;
  std::vector<std::string> lines;
};

/// Does everything as a site does, up to the first integer of its answer; then it says nothing more, or waits for
/// `rest` and says what is left of it then.
void stall(const SiteConfig& config, const std::function<void()>& rest = {}) {
  const auto channel = grpc::CreateChannel(
      config.coordinator, credentials_of_site(config.identity, config.coordinator_name, config.coordinator_key));
  const auto stub = wire::v2::Coordinator::NewStub(channel);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto stream = stub->Join(&context);
  wire::v2::FromSite from;
  from.mutable_hello()->set_version(kWireVersion);
  stream->Write(from);
  std::unique_ptr<SiteStudy> study;
  Observer silent;
  for (wire::v2::ToSite to; stream->Read(&to);) {
    if (to.has_proposal()) {
      study = *SiteStudy::open(
          config, *Proposed::read(to.proposal(), config), [](const std::string&) { return true; }, silent);
      *from.mutable_accept() = study->accept();
      stream->Write(from);
      *from.mutable_standing() = study->standing();
      stream->Write(from);
    }
    if (to.kind_case() == wire::v2::ToSite::kRoster) (void)study->meet(to.roster());
    if (to.kind_case() == wire::v2::ToSite::kAsk) {
      *from.mutable_answer() = study->answer(to.ask())->answer;
      stream->Write(from);
      const std::string one(integer_bytes(from.answer().narrow()), '\1');
      std::string others;
      for (std::uint64_t i = 1; i < from.answer().entries(); ++i) others += one;
      from.mutable_part()->set_values(one);
      stream->Write(from);
      if (!rest) continue;
      rest();
      from.mutable_part()->set_values(others);
      stream->Write(from);
    }
  }
  context.TryCancel();
  stream->Finish();
}

TEST(Sites, OneThatStallsWithinItsAnswerKeepsNobodyElseWaiting) {
  const Wide wide(3);
  TestSites sites(2, wide.header(), wide.schema(), wide.lines, [](const SiteConfig& config) {
    config.identity.party.name == "site-0" ? stall(config) : test::take_part(config);
  });
  sites.configs[1].quantum_ms = 700;  // the other one has begun by then
  auto options = sites.coordinator(Aggregation::kLocal, "pca");
  options.min_sites = 1;
  options.patience_seconds = 6;
  auto charged = test::charge(options, wide.rows(), {{"gram", {Kind::GRAM}}},
                              PrivacyPlan(Adjacency::kReplaceOne, {{"gram", GaussianEvent{0.5}, 1}}));
  ASSERT_TRUE(charged.ok()) << charged.error().message;
  const auto answer = charged->oracle->ask("gram", Gram{});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ((*charged->federation)["missing"], nlohmann::json::array({"site-0"}));
}

// What comes when the others' total is closed, and the next ask is open, is part of neither.
TEST(Sites, ALateAnswerIsPartOfNoTotal) {
  const Wide wide(3);
  std::promise<void> closed;
  std::promise<void> late;
  TestSites sites(2, wide.header(), wide.schema(), wide.lines, [&](const SiteConfig& config) {
    if (config.identity.party.name == "site-1") return test::take_part(config);
    stall(config, [&] { closed.get_future().wait(); });
    late.set_value();
  });
  sites.configs[1].quantum_ms = 1500;  // the second ask is open for so long
  auto options = sites.coordinator(Aggregation::kLocal, "pca");
  options.min_sites = 1;
  options.patience_seconds = 4;
  constexpr double kQuiet = 20;
  PrivacyPlan plan(Adjacency::kReplaceOne, {{"first", GaussianEvent{kQuiet}}, {"second", GaussianEvent{kQuiet}}});
  auto charged = test::charge(options, wide.rows(), {{"first", {Kind::GRAM}}, {"second", {Kind::GRAM}}}, plan);
  ASSERT_TRUE(charged.ok()) << charged.error().message;
  const auto first = charged->oracle->ask("first", Gram{});
  std::thread another([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    closed.set_value();
  });
  const auto second = charged->oracle->ask("second", Gram{});
  another.join();
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(second.ok()) << second.error().message;
  late.get_future().wait();
  EXPECT_EQ((*charged->federation)["missing"], nlohmann::json::array({"site-0"}));
  RowOptions own = wide.rows();
  own.data = sites.configs[1].data;
  own.source.header = HeaderRule::kYes;
  Observer silent;
  const auto rows = bound_rows(own, {}, 0, silent);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  const PrivateSum gram = *exact_sum(Gram{}, *rows, Adjacency::kReplaceOne);
  for (const auto* answer : {&*first, &*second})
    for (Eigen::Index j = 0, entry = 0; j < wide.columns; ++j)
      for (Eigen::Index i = j; i < wide.columns; ++i, ++entry)
        EXPECT_NEAR(answer->value()(i, j),
                    static_cast<double>(gram.values[static_cast<std::size_t>(entry)]) * gram.unit,
                    8 * std::sqrt(2.0) * answer->deviation());
}

/// A search over the largest grid along `directions` columns, at a site with so much memory for it.
Result<std::size_t> search(int directions, std::size_t memory) {
  const Wide wide(100);
  TestSites sites(1, wide.header(), wide.schema(), wide.lines);
  sites.configs[0].memory = memory;
  auto charged =
      test::charge(sites.coordinator(Aggregation::kLocal, "pca"), wide.rows(),
                   {{"search", {Kind::SEARCH}}, {"product", {Kind::PRODUCT}}},
                   PrivacyPlan(Adjacency::kReplaceOne, {{"search", PureEvent{1}}, {"product", GaussianEvent{1}}}));
  if (!charged) return charged.error();
  std::vector<double> grid;
  for (std::uint32_t i = 1; i <= kMostGrid; ++i) grid.push_back(0.03 * i);
  const FilteredApply query{*Directions::quantise(Matrix::Identity(100, directions)), grid, FilterMode::kShrink};
  const auto found = charged->oracle->ask_filtered("search", "product", query, 5);
  if (!found) return found.error();
  return *found->chosen;
}

std::size_t resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

// Half of a site's memory is for one ask; (512 + 1) x 100 x k cells take 24 bytes each on one thread.
TEST(SiteMemory, AnAskTakesNoMoreThanTheSiteHasForItOrIsRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer keeps what was freed";
#endif
  constexpr std::size_t kMemory = std::size_t{230} << 20;
  const std::size_t before = resident_bytes();
  const auto fits = search(50, kMemory);
  ASSERT_TRUE(fits.ok()) << fits.error().message;
  EXPECT_LT(resident_bytes() - before, kMemory / 2);
  const std::size_t after = resident_bytes();
  const auto beyond = search(100, kMemory);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message, HasSubstr("more at once than this site has memory for"));
  EXPECT_LT(resident_bytes() - after, std::size_t{16} << 20) << "and nothing was taken for it";
}

}  // namespace
}  // namespace eigenveil::federation
