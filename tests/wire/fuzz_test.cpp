// SPDX-License-Identifier: Apache-2.0
// Damaged messages of every kind: reading and converting them must end in a value or in an error, and what is accepted
// keeps the promises of convert.hpp. Deterministic: a failure names the mutation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "eigenveil/federation/chain.hpp"
#include "eigenveil/federation/script.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/wire/examples.hpp"

namespace eigenveil {
namespace {

constexpr unsigned kMutations = 20000;

struct Tally {
  int parsed = 0;
  int accepted = 0;
};

// ---- what must hold of anything accepted

void check(const Directions& X) {
  const Matrix real = X.scaled() * std::ldexp(1.0, -Directions::kBits);
  ASSERT_TRUE(real.size() > 0 && real.allFinite());
  const double norm = thin_svd(real).values[0];
  EXPECT_LE(norm, X.norm_factor() * (1 + 1e-12));
  EXPECT_LE(X.norm_factor(), 2.0 * (1 + 1e-12));
  EXPECT_EQ(X.scaled(), X.scaled().unaryExpr([](double x) { return std::trunc(x); }));
}

void check(const std::vector<double>& grid) {
  ASSERT_FALSE(grid.empty());
  for (std::size_t i = 0; i < grid.size(); ++i) {
    EXPECT_TRUE(std::isfinite(grid[i]));
    EXPECT_TRUE(i == 0 || grid[i - 1] < grid[i]);
  }
}

void check(const LinearMap& map) {
  EXPECT_TRUE(map.rows() > 0 && map.columns() > 0);
  EXPECT_TRUE(map.matrix().allFinite() && map.step() > 0);
}

void check_classes(std::size_t classes) { EXPECT_TRUE(classes >= 1 && classes <= 1000000) << classes; }

void check_positive(double value) { EXPECT_TRUE(value > 0 && std::isfinite(value)) << value; }

void check(const SumQuery& query) {
  if (const auto* apply = std::get_if<Apply>(&query)) check(apply->X);
  if (const auto* sums = std::get_if<ClassSums>(&query)) check_classes(sums->classes);
  if (const auto* counts = std::get_if<ClassCounts>(&query)) check_classes(counts->classes);
  if (const auto* projected = std::get_if<ProjectedGram>(&query)) {
    check(projected->X);
    check_positive(projected->radius);
  }
  if (const auto* gradient = std::get_if<SoftmaxGradient>(&query)) {
    check(gradient->W);
    check_positive(gradient->clip);
  }
}

void check(const NormExceedance& query) {
  check(query.grid);
  if (query.X) check(*query.X);
}

void check(const FilteredApply& query) {
  check(query.grid);
  check(query.X);
}

void check(const Recentring& recentring) {
  EXPECT_NE(recentring.map.has_value(), recentring.mean.size() > 0);
  if (recentring.map) check(*recentring.map);
  EXPECT_TRUE(recentring.mean.allFinite());
  check_positive(recentring.radius.value());
}

void check(const PrivacyPlan& plan) {
  EXPECT_FALSE(plan.events.empty());
  for (const PrivacyEvent& event : plan.events) {
    check_positive(std::get<GaussianEvent>(event.mechanism).mu);
    EXPECT_GE(event.count, 1);
  }
}

void check(const RowOptions& options) {
  EXPECT_NE(options.bounds.has_value(), !options.source.columns.empty());
  if (options.row_bound) check_positive(options.row_bound->value());
  if (options.class_column && !options.class_column->cuts.empty()) check(options.class_column->cuts);
  if (!options.bounds) return;
  for (const ColumnSpec& spec : options.bounds->columns) {
    EXPECT_FALSE(spec.name.empty());
    if (const auto* numeric = std::get_if<NumericColumn>(&spec.kind)) {
      EXPECT_TRUE(std::isfinite(numeric->lower) && std::isfinite(numeric->upper) && numeric->lower < numeric->upper);
    } else {
      const auto& categories = std::get<CategoricalColumn>(spec.kind);
      EXPECT_LT(categories.other.value_or(0), categories.values.size());
    }
  }
}

template <class Message>
void convert(const Message& message, Tally& tally) {
  const auto result = from_wire(message);
  if (!result) {
    EXPECT_FALSE(result.error().message.empty());
    return;
  }
  ++tally.accepted;
  check(*result);
}

void exercise(const wire::v2::Proposal& message, Tally& tally) {
  convert(message.rows(), tally);
  if (const auto plan = federation::charged_plan(message); plan.ok()) {
    ++tally.accepted;
    check(*plan);
  }
}

void exercise(const wire::v2::Ask& ask, Tally& tally) {
  if (ask.has_sum()) convert(ask.sum(), tally);
  if (ask.has_exceedance()) convert(ask.exceedance(), tally);
  if (ask.has_search()) convert(ask.search(), tally);
  if (ask.has_product()) convert(ask.product(), tally);
  if (ask.has_recenter()) convert(ask.recenter(), tally);
}

void exercise(const wire::v2::FromSite& message, Tally& tally) {
  if (!message.has_part()) return;
  for (const bool narrow : {false, true}) {
    std::vector<Int128> total(message.part().values().size() / integer_bytes(narrow));  // as a receiver must have
    add_integers(message.part().values(), narrow, total.data());
  }
  ++tally.accepted;
}

// ---- damage

std::string mutate(std::string bytes, const std::vector<std::string>& corpus, std::mt19937& random) {
  const auto place = [&](const std::string& text) { return random() % std::max<std::size_t>(text.size(), 1); };
  for (std::size_t changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
    const std::string& other = corpus[random() % corpus.size()];
    switch (random() % 6) {
      case 0:
      case 1:
        bytes[place(bytes)] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        bytes[place(bytes)] = static_cast<char>(random());
        break;
      case 3:
        bytes.resize(place(bytes));
        break;
      case 4:
        bytes = bytes.substr(0, place(bytes)) + other.substr(place(other));
        break;
      default: {  // eight bytes that make a double infinite, not a number, huge or negative
        static constexpr const char* kNasty[] = {"\0\0\0\0\0\0\xf0\x7f", "\1\0\0\0\0\0\xf8\x7f",
                                                 "\xff\xff\xff\xff\xff\xff\xef\x7f", "\0\0\0\0\0\0\xf0\xbf"};
        if (bytes.size() >= 8) bytes.replace(random() % (bytes.size() - 7), 8, kNasty[random() % 4], 8);
      }
    }
  }
  return bytes;
}

template <class Message>
Tally fuzz(const std::vector<test::Example>& examples) {
  std::vector<std::string> corpus;
  for (const test::Example& example : examples)
    corpus.push_back(test::from_text<Message>(example.text).SerializeAsString());
  Tally tally;
  for (unsigned i = 0; i < kMutations && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    std::mt19937 random(i);
    const std::string bytes = mutate(corpus[i % corpus.size()], corpus, random);
    Message message;
    if (!message.ParseFromString(bytes)) continue;
    ++tally.parsed;
    exercise(message, tally);
    // What is read as hashed has one way to be written.
    Message read;
    const bool canonical = federation::read_canonical(bytes, read).ok();
    EXPECT_TRUE(!canonical || federation::canonical_bytes(read) == bytes);
  }
  return tally;
}

TEST(WireFuzz, UndamagedExamplesAreAccepted) {
  for (const test::Example& example : test::ask_examples()) {
    Tally tally;
    exercise(test::from_text<wire::v2::Ask>(example.text), tally);
    EXPECT_EQ(tally.accepted, 1) << example.name;
  }
  Tally tally;
  exercise(test::from_text<wire::v2::Proposal>(test::proposal_examples().front().text), tally);
  EXPECT_EQ(tally.accepted, 2) << "rows and plan";
}

TEST(WireFuzz, DamagedProposalsAreRefusedOrKeepThePromises) {
  const Tally tally = fuzz<wire::v2::Proposal>(test::proposal_examples());
  EXPECT_GT(tally.parsed, static_cast<int>(kMutations / 20)) << "the damage is so great that nothing is tested";
  EXPECT_GT(tally.accepted, static_cast<int>(kMutations / 50));
}

TEST(WireFuzz, DamagedAsksAreRefusedOrKeepThePromises) {
  const Tally tally = fuzz<wire::v2::Ask>(test::ask_examples());
  EXPECT_GT(tally.parsed, static_cast<int>(kMutations / 10));
  EXPECT_GT(tally.accepted, static_cast<int>(kMutations / 20));
}

TEST(WireFuzz, DamagedMessagesFromASiteAreRefusedOrKeepThePromises) {
  const Tally tally = fuzz<wire::v2::FromSite>(test::from_site_examples());
  EXPECT_GT(tally.parsed, static_cast<int>(kMutations / 10));
  EXPECT_GT(tally.accepted, static_cast<int>(kMutations / 50));
}

}  // namespace
}  // namespace eigenveil
