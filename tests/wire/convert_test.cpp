// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/wire/convert.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <limits>
#include <set>

#include "eigenveil/linalg/subspace.hpp"
#include "tests/wire/examples.hpp"

namespace eigenveil {
namespace {

using google::protobuf::util::MessageDifferencer;
using test::from_text;
using testing::HasSubstr;
using testing::StartsWith;

// ---- random values of the library's own types

double any_finite() {
  const double value = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  return std::isfinite(value) ? value : 0.1;
}

double any_positive() {
  const double value = std::abs(any_finite());
  return value > 0 ? value : 1.0 / 3;
}

RowBound any_bound() { return *RowBound::of(std::clamp(any_positive(), 1e-100, 1e100)); }

Matrix orthonormal(int rows, int columns) {
  Matrix X(rows, columns);
  for (double& x : X.reshaped()) x = *rc::gen::inRange(-1000, 1001) + 0.1;
  for (int i = 0; i < columns; ++i) X(i, i) += 5000;  // full rank
  return eigenveil::orthonormal(X);
}

Directions any_directions() {
  const int columns = *rc::gen::inRange(1, 5);
  const int rows = columns + *rc::gen::inRange(0, 8);
  auto X = Directions::quantise(orthonormal(rows, columns));
  if (!X) RC_FAIL(X.error().message);
  return *std::move(X);
}

std::vector<double> any_grid() {
  std::set<double> points;
  const int size = *rc::gen::inRange(1, 9);
  for (int i = 0; i < size; ++i) points.insert(any_finite());
  return {points.begin(), points.end()};
}

// Text is UTF-8: protobuf reads nothing else.
std::string any_name() {
  return *rc::gen::element<std::string>("", "Alter in Jahren \xc3\xa4", "\xe5\xb9\xb4", "a,b\"c'", "x\n") +
         std::to_string(*rc::gen::arbitrary<int>());
}

// ---- there and back, over the bytes

template <class Message>
Message through_bytes(const Message& message) {
  Message read;
  RC_ASSERT(read.ParseFromString(message.SerializeAsString()));
  return read;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same(const Directions& a, const Directions& b) {
  return a.rows() == b.rows() && a.columns() == b.columns() && a.scaled() == b.scaled() &&
         same_bits(a.norm_factor(), b.norm_factor());
}

template <class Check>
void property(const char* sentence, Check check) {
  EXPECT_TRUE(rc::check(sentence, check));
}

TEST(Convert, SumQueriesComeBackBitForBit) {
  property("from_wire(to_wire(query)) == query", [] {
    const std::size_t classes = *rc::gen::inRange<std::size_t>(1, 1000001);
    SumQuery query = Gram{};
    switch (*rc::gen::inRange(0, 8)) {
      case 1:
        query = Apply{any_directions()};
        break;
      case 2:
        query = ClassSums{classes};
        break;
      case 3:
        query = ClassCounts{classes};
        break;
      case 4:
        query = SquaredNorms{};
        break;
      case 5:
        query = ProjectedGram{any_directions(), any_positive()};
        break;
      case 6:
        query = SoftmaxGradient{*LinearMap::quantise(any_directions().scaled() * 0.7), any_positive()};
        break;
      case 7:
        query = ScoreCounts{any_directions(), any_grid(), any_grid(), classes};
        break;
      default:
        break;
    }
    const auto back = from_wire(through_bytes(to_wire(query)));
    RC_ASSERT(back.ok());
    RC_ASSERT(back->index() == query.index());
    if (const auto* apply = std::get_if<Apply>(&query)) RC_ASSERT(same(apply->X, std::get<Apply>(*back).X));
    if (std::holds_alternative<ClassSums>(query)) RC_ASSERT(std::get<ClassSums>(*back).classes == classes);
    if (std::holds_alternative<ClassCounts>(query)) RC_ASSERT(std::get<ClassCounts>(*back).classes == classes);
    if (const auto* projected = std::get_if<ProjectedGram>(&query)) {
      RC_ASSERT(same(projected->X, std::get<ProjectedGram>(*back).X));
      RC_ASSERT(same_bits(projected->radius, std::get<ProjectedGram>(*back).radius));
    }
    if (const auto* counts = std::get_if<ScoreCounts>(&query)) {
      const auto& again = std::get<ScoreCounts>(*back);
      RC_ASSERT(same(counts->X, again.X) && counts->first == again.first && counts->second == again.second);
      RC_ASSERT(again.classes == classes);
    }
    if (const auto* softmax = std::get_if<SoftmaxGradient>(&query)) {
      RC_ASSERT(softmax->W.matrix() == std::get<SoftmaxGradient>(*back).W.matrix());
      RC_ASSERT(same_bits(softmax->clip, std::get<SoftmaxGradient>(*back).clip));
    }
  });
}

TEST(Convert, GridQueriesComeBackBitForBit) {
  property("from_wire(to_wire(NormExceedance)) is the same", [] {
    NormExceedance query{any_grid(), {}};
    if (*rc::gen::arbitrary<bool>()) query.X = any_directions();
    const auto back = from_wire(through_bytes(to_wire(query)));
    RC_ASSERT(back.ok());
    RC_ASSERT(back->grid == query.grid);
    RC_ASSERT(back->X.has_value() == query.X.has_value());
    if (query.X) RC_ASSERT(same(*back->X, *query.X));
  });
  property("from_wire(to_wire(FilteredApply)) is the same", [] {
    const FilteredApply query{any_directions(), any_grid(), *rc::gen::element(FilterMode::kShrink, FilterMode::kDrop)};
    const auto back = from_wire(through_bytes(to_wire(query)));
    RC_ASSERT(back.ok());
    RC_ASSERT(same(back->X, query.X));
    RC_ASSERT(back->grid == query.grid);
    RC_ASSERT(back->mode == query.mode);
  });
}

TEST(Convert, MeansComeBackBitForBit) {
  property("from_wire(to_wire(mean, radius)) is the same", [] {
    Vector mean(*rc::gen::inRange(1, 40));
    for (double& x : mean) x = any_finite();
    const RowBound radius = any_bound();
    const auto back = from_wire(through_bytes(to_wire(mean, radius)));
    RC_ASSERT(back.ok());
    RC_ASSERT(back->mean.size() == mean.size());
    for (Eigen::Index i = 0; i < mean.size(); ++i) RC_ASSERT(same_bits(back->mean[i], mean[i]));
    RC_ASSERT(same_bits(back->radius.value(), radius.value()));
  });
}

RowOptions any_options(Schema& schema, std::vector<std::string>& free_names) {
  RowOptions options;
  const bool bounded = *rc::gen::arbitrary<bool>();
  const int columns = *rc::gen::inRange(1, 8);
  for (int i = 0; i < columns; ++i) {
    std::string name = std::to_string(i) + any_name();
    if (!bounded) {
      free_names.push_back(name);
    } else if (*rc::gen::arbitrary<bool>()) {
      const double lower = *rc::gen::inRange(-999, 999) / 3.0;
      NumericColumn numeric{lower, lower + *rc::gen::inRange(1, 999) / 7.0};
      if (*rc::gen::arbitrary<bool>()) numeric.missing = numeric.upper;
      schema.columns.push_back({name, numeric});
    } else {
      CategoricalColumn categories{{"a", "b " + any_name()}};
      if (*rc::gen::arbitrary<bool>()) categories.other = *rc::gen::inRange<std::size_t>(0, 2);
      if (*rc::gen::arbitrary<bool>()) categories.missing = *rc::gen::inRange<std::size_t>(0, 3);
      if (*rc::gen::arbitrary<bool>()) categories.weight = *rc::gen::inRange(1, 99) / 7.0;
      schema.columns.push_back({name, categories});
    }
  }
  if (*rc::gen::arbitrary<bool>()) options.row_bound = any_bound();
  options.center = *rc::gen::element(Center::kNone, Center::kRange, Center::kPrivate, Center::kMean);
  options.missing = *rc::gen::element(MissingPolicy::kError, MissingPolicy::kZeroRow, MissingPolicy::kValue,
                                      MissingPolicy::kCategory);
  switch (*rc::gen::inRange(0, 3)) {
    case 1:
      options.class_column = ClassColumn{any_name(), {"u", any_name()}, *rc::gen::arbitrary<bool>(), {}};
      break;
    case 2:
      options.class_column = ClassColumn{any_name(), {}, *rc::gen::arbitrary<bool>(), any_grid()};
      break;
    default:
      break;
  }
  return options;
}

TEST(Convert, RowsComeBackBitForBit) {
  property("from_wire(to_wire(rows)) means the same rows", [] {
    Schema schema;
    std::vector<std::string> free_names;
    const RowOptions options = any_options(schema, free_names);
    OpenedData opened{nullptr, free_names.empty() ? *ColumnMap::from_schema(schema, Centering::kRange)
                                                  : ColumnMap::identity(free_names)};
    if (options.class_column) opened.classes = options.class_column->classes;
    if (options.class_column) opened.cuts = options.class_column->cuts;
    const auto message = to_wire(options, opened);
    const auto back = from_wire(through_bytes(message));
    RC_ASSERT(back.ok());
    RC_ASSERT(back->source.columns == free_names);
    RC_ASSERT(back->bounds.has_value() == free_names.empty());
    RC_ASSERT(back->row_bound.has_value() == options.row_bound.has_value());
    if (options.row_bound) RC_ASSERT(same_bits(back->row_bound->value(), options.row_bound->value()));
    RC_ASSERT(back->center == options.center);
    RC_ASSERT(back->missing == options.missing);
    RC_ASSERT(back->class_column.has_value() == options.class_column.has_value());
    if (options.class_column) {
      RC_ASSERT(back->class_column->column == options.class_column->column);
      RC_ASSERT(back->class_column->classes == options.class_column->classes);
      RC_ASSERT(back->class_column->drop_unlisted == options.class_column->drop_unlisted);
      RC_ASSERT(back->class_column->cuts == options.class_column->cuts);
    }
    // the schema, by saying it again
    OpenedData again{nullptr, back->bounds ? *ColumnMap::from_schema(*back->bounds, Centering::kRange)
                                           : ColumnMap::identity(back->source.columns)};
    if (back->class_column) again.classes = back->class_column->classes;
    if (back->class_column) again.cuts = back->class_column->cuts;
    RC_ASSERT(MessageDifferencer::Equals(to_wire(*back, again), message));
    for (std::size_t i = 0; i < schema.columns.size(); ++i) {
      const ColumnSpec& spec = back->bounds->columns[i];
      RC_ASSERT(spec.name == schema.columns[i].name);
      if (const auto* numeric = std::get_if<NumericColumn>(&schema.columns[i].kind)) {
        RC_ASSERT(same_bits(std::get<NumericColumn>(spec.kind).lower, numeric->lower));
        RC_ASSERT(same_bits(std::get<NumericColumn>(spec.kind).upper, numeric->upper));
        RC_ASSERT(std::get<NumericColumn>(spec.kind).missing == numeric->missing);
      } else {
        const auto& categories = std::get<CategoricalColumn>(schema.columns[i].kind);
        RC_ASSERT(std::get<CategoricalColumn>(spec.kind).values == categories.values);
        RC_ASSERT(std::get<CategoricalColumn>(spec.kind).missing == categories.missing);
        RC_ASSERT(same_bits(std::get<CategoricalColumn>(spec.kind).weight, categories.weight));
        RC_ASSERT(std::get<CategoricalColumn>(spec.kind).other == categories.other);
      }
    }
  });
}

TEST(Convert, IntegersAreSixteenBytesLittleEndianAndAddModulo2To128) {
  std::string bytes;
  const Int128 two[] = {Int128{0x0102}, Int128{-2}};
  append_integers(two, 2, false, bytes);
  EXPECT_EQ(bytes, std::string("\x02\x01", 2) + std::string(14, '\0') + "\xfe" + std::string(15, '\xff'));
  property("sums of wrapped integers are right modulo 2^128", [] {
    const auto any = [] {
      return static_cast<UInt128>(*rc::gen::arbitrary<std::uint64_t>()) << 64 | *rc::gen::arbitrary<std::uint64_t>();
    };
    const std::vector<UInt128> a = {any(), any()};
    const std::vector<UInt128> b = {any(), any()};
    std::vector<Int128> total = {static_cast<Int128>(a[0]), static_cast<Int128>(a[1])};
    const std::vector<Int128> added = {static_cast<Int128>(b[0]), static_cast<Int128>(b[1])};
    std::string part;
    append_integers(added.data(), 2, false, part);
    add_integers(part, false, total.data());
    for (std::size_t i = 0; i < 2; ++i) RC_ASSERT(static_cast<UInt128>(total[i]) == static_cast<UInt128>(a[i] + b[i]));
  });
}

// Whatever masks do to the high digits, a total that fits 64 bits comes out.
TEST(Convert, NarrowIntegersAreEightBytesAndAddModulo2To64) {
  std::string bytes;
  const Int128 two[] = {Int128{0x0102} + (Int128{5} << 64), Int128{-2}};
  append_integers(two, 2, true, bytes);
  EXPECT_EQ(bytes, std::string("\x02\x01", 2) + std::string(6, '\0') + "\xfe" + std::string(7, '\xff'));
  property("a masked total is right", [] {
    const auto sum = *rc::gen::arbitrary<std::int64_t>();
    const auto mask =
        static_cast<UInt128>(*rc::gen::arbitrary<std::uint64_t>()) << 64 | *rc::gen::arbitrary<std::uint64_t>();
    const auto masked = static_cast<Int128>(static_cast<UInt128>(Int128{sum}) + mask);
    const auto other = static_cast<Int128>(UInt128{0} - mask);
    Int128 total = 0;
    for (const Int128 sent : {masked, other}) {
      std::string part;
      append_integers(&sent, 1, true, part);
      add_integers(part, true, &total);
    }
    RC_ASSERT(total == Int128{sum});
  });
}

// ---- refusals. "nan", "inf" are what the text format calls those numbers.

template <class Message>
std::string refusal(const std::string& text) {
  const auto result = from_wire(from_text<Message>(text.c_str()));
  return result.ok() ? "accepted" : result.error().message;
}

template <class Message>
void refuses(const std::vector<std::pair<const char*, const char*>>& cases) {
  for (const auto& [text, words] : cases) {
    EXPECT_THAT(refusal<Message>(text), HasSubstr(words)) << text;
    EXPECT_THAT(refusal<Message>(text), StartsWith("a malformed message: ")) << text;
  }
}

TEST(Convert, RefusesDirectionsThatAreNone) {
  refuses<wire::v2::Directions>({
      {"", "size is not what they say"},
      {"rows: 2", "size is not"},
      {"columns: 2", "size is not"},
      {"rows: 2 columns: 1 scaled: 1", "size is not"},
      {"rows: 2 columns: 1 scaled: [1, 2, 3]", "size is not"},
      {"rows: 4294967295 columns: 4294967295 scaled: 1", "size is not"},
      {"rows: 65536 columns: 65536", "size is not"},
      {"rows: 1 columns: 2 scaled: [1, 2]", "more directions than dimensions"},
      {"rows: 1 columns: 1 scaled: 2097153", "of unit length"},
      {"rows: 1 columns: 1 scaled: 2147483647", "of unit length"},
      {"rows: 1 columns: 1 scaled: -2147483648", "of unit length"},
      {"rows: 2 columns: 1 scaled: [2097152, 1]", "of unit length"},
      {"rows: 2 columns: 2 scaled: [1048576, 1048576, 1048576, 1048577]", "orthonormal"},
  });
}

TEST(Convert, RefusesAShortWideMatrixOfZerosWithoutMakingItsGram) {
  wire::v2::Directions message;
  message.set_rows(1);
  message.set_columns(1 << 20);
  message.mutable_scaled()->Resize(1 << 20, 0);  // 4 MB; its Gram matrix would be 8 TB
  EXPECT_FALSE(from_wire(message).ok());
}

TEST(Convert, RefusesSumsOfNoKindOrSize) {
  refuses<wire::v2::SumQuery>({
      {"", "no known kind"},
      {"apply {}", "size"},
      {"class_sums {}", "kind or size"},
      {"class_sums { classes: 1000001 }", "kind or size"},
      {"class_counts {}", "kind or size"},
      {"class_counts { classes: 4294967295 }", "kind or size"},
      {"softmax_gradient { clip: 1 }", "size"},
      {"softmax_gradient { w { rows: 1 columns: 2 values: 1 } clip: 1 }", "size"},
      {"softmax_gradient { w { rows: 1 columns: 1 values: nan } clip: 1 }", "finite"},
      {"softmax_gradient { w { rows: 1 columns: 1 values: 1 } }", "kind or size"},
      {"softmax_gradient { w { rows: 1 columns: 1 values: 1 } clip: inf }", "kind or size"},
      {"projected_gram { radius: 1 }", "size"},
      {"projected_gram { x { rows: 1 columns: 1 scaled: 1 } }", "kind or size"},
      {"projected_gram { x { rows: 1 columns: 1 scaled: 1 } radius: -1 }", "kind or size"},
      {"projected_gram { x { rows: 1 columns: 1 scaled: 1 } radius: nan }", "kind or size"},
      {"projected_gram { x { rows: 1 columns: 1 scaled: 1 } radius: inf }", "kind or size"},
  });
  wire::v2::SumQuery newer;  // a kind that only a later version knows: field 15
  ASSERT_TRUE(newer.ParseFromString(std::string("\x7a\x00", 2)));
  EXPECT_THAT(from_wire(newer).error().message, HasSubstr("no known kind"));
}

TEST(Convert, RefusesGridsThatDoNotAscend) {
  for (const std::string grid : {"grid: [1, 1]", "grid: [2, 1]", "grid: nan", "grid: [1, nan]", "grid: [nan, 1]",
                                 "grid: inf", "grid: [1, inf]", "grid: -inf", ""}) {
    EXPECT_THAT(refusal<wire::v2::NormExceedance>(grid), HasSubstr("a grid")) << grid;
    EXPECT_THAT(refusal<wire::v2::FilteredApply>("x { rows: 1 columns: 1 scaled: 1 } " + grid), HasSubstr("a grid"))
        << grid;
  }
  EXPECT_THAT(refusal<wire::v2::FilteredApply>("grid: 1"), HasSubstr("directions"));
  EXPECT_THAT(refusal<wire::v2::NormExceedance>("grid: 1 x {}"), HasSubstr("directions"));
  wire::v2::NormExceedance endless;
  for (int i = 0; i <= 100000; ++i) endless.add_grid(i);
  EXPECT_THAT(from_wire(endless).error().message, HasSubstr("too many"));
}

TEST(Convert, RefusesMeansThatAreNotFinite) {
  refuses<wire::v2::Recenter>({
      {"radius: 1", "no columns"},
      {"mean: nan radius: 1", "not finite"},
      {"mean: [0, nan] radius: 1", "not finite"},
      {"mean: inf radius: 1", "not finite"},
      {"mean: -inf radius: 1", "not finite"},
      {"mean: 0", "not finite"},
      {"mean: 0 radius: -1", "not finite"},
      {"mean: 0 radius: nan", "not finite"},
      {"mean: 0 radius: inf", "not finite"},
      {"map { rows: 1 columns: 1 values: inf } radius: 1", "finite"},
      {"map { rows: 1 columns: 1 values: 1 }", "not finite"},
      {"mean: 0 map { rows: 1 columns: 1 values: 1 } radius: 1", "a map with a mean"},
  });
}

TEST(Convert, RefusesRowsThatAreNone) {
  refuses<wire::v2::Rows>({
      {"", "no columns"},
      {"columns {}", "without a name"},
      {"columns { name: 'x' bounded: true }", "bounds of column 'x'"},
      {"columns { name: 'x' bounded: true lower: 2 upper: 1 }", "bounds of column 'x'"},
      {"columns { name: 'x' bounded: true lower: nan upper: 1 }", "bounds of column 'x'"},
      {"columns { name: 'x' bounded: true lower: 0 upper: nan }", "bounds of column 'x'"},
      {"columns { name: 'x' bounded: true lower: 0 upper: inf }", "bounds of column 'x'"},
      {"columns { name: 'x' bounded: true lower: -inf upper: 0 }", "bounds of column 'x'"},
      {"columns { name: 'x' values: 'a' other: 1 }", "categories of column 'x'"},
      {"columns { name: 'x' values: 'a' } columns { name: 'y' }", "some have none"},
      {"columns { name: 'x' } row_bound: 0", "row bound"},
      {"columns { name: 'x' } row_bound: nan", "row bound"},
      {"columns { name: 'x' } row_bound: inf", "row bound"},
      {"columns { name: 'x' } row_bound: -1", "row bound"},
      {"columns { name: 'x' } center: 7", "centring"},
      {"columns { name: 'x' } class_column {}", "without a name"},
      {"columns { name: 'x' } class_column { column: 'y' cuts: nan }", "cuts"},
      {"columns { name: 'x' } class_column { column: 'y' cuts: [1, 0] }", "cuts"},
      {"columns { name: 'x' } class_column { column: 'y' cuts: inf }", "cuts"},
  });
}

}  // namespace
}  // namespace eigenveil
