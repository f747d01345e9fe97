// SPDX-License-Identifier: Apache-2.0
// Streams are made here by hand, as a producer that cannot be trusted would make them.
#include "eigenveil/data/arrow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <list>
#include <numeric>

#include "eigenveil/data/given_rows.hpp"
#include "eigenveil/data/joined_source.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Owns every struct and buffer of a stream, and counts what is released.
class Stream {
 public:
  struct Column {
    std::string name, format;
    ArrowArray array = {};
    ArrowSchema schema = {};
    ArrowArray dictionary = {};
    ArrowSchema dictionary_schema = {};
    std::vector<const void*> buffers, dictionary_buffers;
  };

  template <class T>
  Column& add(const std::string& name, const std::string& format, const std::vector<T>& values,
              const std::vector<std::uint8_t>& valid = {}, std::int64_t nulls = 0) {
    Column& column = columns_.emplace_back(Column{.name = name, .format = format});
    column.buffers = {valid.empty() ? nullptr : keep(valid), keep(values)};
    column.array.length = static_cast<std::int64_t>(values.size());
    column.array.null_count = nulls;
    return column;
  }
  Column& add_text(const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::int32_t> offsets = {0};
    std::string all;
    for (const std::string& value : values) {
      all += value;
      offsets.push_back(static_cast<std::int32_t>(all.size()));
    }
    Column& column = add(name, "u", offsets);
    column.array.length = static_cast<std::int64_t>(values.size());
    column.buffers.push_back(keep(std::vector<char>(all.begin(), all.end())));
    return column;
  }
  Column& add_dictionary(const std::string& name, const std::vector<std::int8_t>& indices,
                         const std::vector<std::string>& values) {
    Column texts = add_text("", values);
    columns_.pop_back();
    Column& column = add(name, "c", indices);
    column.dictionary_buffers = texts.buffers;
    column.dictionary.length = texts.array.length;
    column.dictionary_schema.format = "u";
    return column;
  }

  /// `damage` may do anything to the batch before it is given out.
  ArrowArrayStream* get(const std::function<void(ArrowArray&)>& damage = {}) {
    damage_ = damage;
    children_.clear();
    schemas_.clear();
    for (Column& column : columns_) {
      column.array.n_buffers = static_cast<std::int64_t>(column.buffers.size());
      column.array.buffers = column.buffers.data();
      column.array.release = [](ArrowArray*) {};
      column.schema.format = column.format.c_str();
      column.schema.name = column.name.c_str();
      column.schema.release = [](ArrowSchema*) {};
      if (column.dictionary_schema.format != nullptr) {
        column.dictionary.n_buffers = static_cast<std::int64_t>(column.dictionary_buffers.size());
        column.dictionary.buffers = column.dictionary_buffers.data();
        column.dictionary.release = [](ArrowArray*) {};
        column.dictionary_schema.release = [](ArrowSchema*) {};
        column.array.dictionary = &column.dictionary;
        column.schema.dictionary = &column.dictionary_schema;
      }
      children_.push_back(&column.array);
      schemas_.push_back(&column.schema);
    }
    stream_ = {};
    stream_.private_data = this;
    stream_.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) { return of(self).schema(out); };
    stream_.get_next = [](ArrowArrayStream* self, ArrowArray* out) { return of(self).next(out); };
    stream_.get_last_error = [](ArrowArrayStream*) { return "the \n producer failed"; };
    stream_.release = [](ArrowArrayStream* self) {
      ++of(self).released;
      self->release = nullptr;
    };
    return &stream_;
  }

  int batches = 1;
  int fail_at = -1;
  int released = 0, arrays_released = 0;
  std::string format = "+s";

 private:
  static Stream& of(ArrowArrayStream* self) { return *static_cast<Stream*>(self->private_data); }
  int schema(ArrowSchema* out) {
    *out = {};
    out->format = format.c_str();
    out->n_children = static_cast<std::int64_t>(schemas_.size());
    out->children = schemas_.data();
    out->release = [](ArrowSchema* self) { self->release = nullptr; };
    return 0;
  }
  int next(ArrowArray* out) {
    *out = {};
    if (given_ == fail_at) return 5;
    if (given_++ >= batches) return 0;
    out->length = children_.empty() ? 0 : children_[0]->length;
    out->n_buffers = 1;
    out->buffers = no_nulls_;
    out->n_children = static_cast<std::int64_t>(children_.size());
    out->children = children_.data();
    out->private_data = this;
    out->release = [](ArrowArray* self) {
      ++static_cast<Stream*>(self->private_data)->arrays_released;
      self->release = nullptr;
    };
    if (damage_) damage_(*out);
    return 0;
  }
  template <class T>
  const void* keep(const std::vector<T>& values) {
    auto& bytes = bytes_.emplace_back(values.size() * sizeof(T) + 1);
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
    return bytes.data();
  }

  std::list<Column> columns_;
  std::list<std::vector<char>> bytes_;
  std::vector<ArrowArray*> children_;
  std::vector<ArrowSchema*> schemas_;
  const void* no_nulls_[1] = {nullptr};
  std::function<void(ArrowArray&)> damage_;
  ArrowArrayStream stream_ = {};
  int given_ = 0;
};

Result<std::vector<double>> all_of(Result<std::unique_ptr<RowSource>> source, const SourceOptions& options = {},
                                   std::size_t at_once = 3) {
  if (!source) return source.error();
  GivenRows given(std::move(*source));
  auto chosen = EIGENVEIL_TRY(given.take(options));
  std::vector<double> values;
  RawBatch batch;
  for (;;) {
    EIGENVEIL_TRY(chosen->next(batch, at_once));
    if (batch.rows == 0) return values;
    values.insert(values.end(), batch.values.begin(), batch.values.end());
  }
}

TEST(Arrow, NumbersOfEveryTypeBecomeRows) {
  Stream stream;
  stream.add<double>("a", "g", {1.5, -2});
  stream.add<float>("b", "f", {0.25F, 3});
  stream.add<std::int8_t>("c", "c", {-1, 1});
  stream.add<std::uint64_t>("d", "L", {7, 8});
  stream.add<std::uint8_t>("e", "b", {0b10}).array.length = 2;
  stream.add<std::uint16_t>("f", "e", {0x3c00, 0xc000});  // 1 and -2
  EXPECT_THAT(*all_of(arrow_source(stream.get())), ElementsAre(1.5, 0.25, -1, 7, 0, 1, -2, 3, 1, 8, 1, -2));
  EXPECT_EQ(stream.released, 1);
  EXPECT_EQ(stream.arrays_released, 1);
}

SourceOptions whose(BadRows bad_rows) {
  SourceOptions options;
  options.columns = {"a"};
  options.person = PersonColumn{"who", {5}};
  options.bad_rows = bad_rows;
  return options;
}

Result<std::vector<PersonId>> people(Stream& stream, BadRows bad_rows = BadRows::kError) {
  GivenRows given(EIGENVEIL_TRY(arrow_source(stream.get())));
  const auto chosen = EIGENVEIL_TRY(given.take(whose(bad_rows)));
  RawBatch batch;
  EIGENVEIL_TRY(chosen->next(batch, 100));
  return batch.people;
}

// The people of a CSV file with these ids, in quotes.
std::vector<PersonId> people_of_lines(const std::vector<std::string>& ids) {
  const test::TempDir dir;
  std::string lines = "who,a\n";
  for (const std::string& id : ids) lines += '"' + id + "\",1\n";
  SourceOptions options = whose(BadRows::kError);
  options.header = HeaderRule::kYes;
  const auto source = open_source(dir.write_file("t.csv", lines), options);
  RawBatch batch;
  EXPECT_TRUE((*source)->next(batch, 100).ok());
  return batch.people;
}

std::unique_ptr<Stream> ones(std::size_t rows) {
  auto stream = std::make_unique<Stream>();
  stream->add<double>("a", "g", std::vector<double>(rows, 1));
  return stream;
}

TEST(Arrow, PeopleAreThoseOfACsvFileWithTheSameIds) {
  // Nothing is joined that is written differently: case, forms of Unicode, zeros in front, signs.
  const std::vector<std::string> texts = {"1",
                                          "01",
                                          "+1",
                                          "1.0",
                                          "-0",
                                          "0",
                                          "q",
                                          "Q",
                                          "\u00e9",
                                          "e\u0301",
                                          "a b",
                                          "NA",
                                          "null",
                                          "",
                                          "?",
                                          "9007199254740993",
                                          std::string(100'000, 'z'),
                                          "q"};
  const auto expected = people_of_lines(texts);
  ASSERT_EQ(expected.size(), texts.size());
  auto stream = ones(texts.size());
  stream->add_text("who", texts);
  EXPECT_EQ(*people(*stream), expected);
  auto words = ones(texts.size());
  std::vector<std::int8_t> indices(texts.size());
  std::iota(indices.begin(), indices.end(), 0);
  words->add_dictionary("who", indices, texts);
  EXPECT_EQ(*people(*words), expected);
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool nobody = expected[i].missing() && expected[j].missing();
      EXPECT_EQ(expected[i] == expected[j], texts[i] == texts[j] || nobody) << texts[i] << ", " << texts[j];
    }
}

TEST(Arrow, NumbersArePeopleByTheirDigits) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  auto wide = ones(4);
  wide->add<std::int64_t>("who", "l", {kLarge - 1, kLarge, -kLarge, 0});
  EXPECT_EQ(*people(*wide), people_of_lines({"9007199254740992", "9007199254740993", "-9007199254740993", "0"}));
  auto natural = ones(2);
  natural->add<std::uint64_t>("who", "L", {std::numeric_limits<std::uint64_t>::max(), 7});
  EXPECT_EQ(*people(*natural), people_of_lines({"18446744073709551615", "7"}));
  auto real = ones(4);
  real->add<double>("who", "g", {0.0, -0.0, 1, std::nan("")});
  EXPECT_EQ(*people(*real), people_of_lines({"0", "0", "1", ""}));
  auto holes = ones(3);
  holes->add<std::int64_t>("who", "l", {5, 5, 5}, {0b101}, 1);
  EXPECT_EQ(*people(*holes), people_of_lines({"5", "", "5"}));
}

// What a CSV file cannot say: blanks around a text and a NUL byte in it.
TEST(Arrow, TextsArePeopleByAllTheirBytes) {
  using namespace std::string_literals;
  auto stream = ones(6);
  stream->add_text("who", {"q", "q ", " q", "q\0"s, "q\0r"s, "q"});
  const auto found = *people(*stream);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(found[i], found[j]) << i << ", " << j;
  EXPECT_EQ(found[0], found[5]);
}

TEST(Arrow, ANumberThatIsNoWholeIdIsOnePersonInAllItsRows) {
  const auto doubles = [] {
    auto stream = std::make_unique<Stream>();
    stream->add<double>("a", "g", {1, 1, 1});
    stream->add<double>("who", "g", {1.5, 1.5, 2});
    return stream;
  };
  const auto found = people(*doubles(), BadRows::kMissing);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE((*found)[0].missing());
  EXPECT_EQ((*found)[0], (*found)[1]);
  EXPECT_EQ((*found)[2], person_of("2", {5}));
  EXPECT_FALSE(people(*doubles(), BadRows::kError).ok());
  // Rounded where the type is: 2^24 of 32 bits, 2^11 of 16.
  Stream floats, halves;
  floats.add<double>("a", "g", {1});
  floats.add<float>("who", "f", {0x1p24F});
  EXPECT_THAT(people(floats, BadRows::kError).error().message, testing::HasSubstr("no integer below 2^24"));
  halves.add<double>("a", "g", {1});
  halves.add<std::uint16_t>("who", "e", {0x6800});
  EXPECT_THAT(people(halves, BadRows::kError).error().message, testing::HasSubstr("no integer below 2^11"));
}

TEST(Arrow, BatchesFlowIntoEachOther) {
  Stream stream;
  stream.add<double>("a", "g", {1, 2});
  stream.batches = 3;
  EXPECT_THAT(*all_of(arrow_source(stream.get())), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_EQ(stream.arrays_released, 3);
}

TEST(Arrow, OffsetsOfBatchAndColumnAddUp) {
  Stream stream;
  auto& column = stream.add<double>("a", "g", {0, 1, 2, 3, 4, 5}, {0b101111}, 1);  // 4 is null
  column.array.offset = 1;
  column.array.length = 5;
  const auto values = all_of(arrow_source(stream.get([](ArrowArray& batch) {
    batch.offset = 2;
    batch.length = 3;
  })));
  ASSERT_EQ(values->size(), 3U);
  EXPECT_EQ((*values)[0], 3);
  EXPECT_TRUE(std::isnan((*values)[1]));
  EXPECT_EQ((*values)[2], 5);
}

TEST(Arrow, ARowThatIsNullHasNoValue) {
  Stream stream;
  stream.add<double>("a", "g", {1, 2});
  static const std::uint8_t second_null[] = {0b01};
  static const void* buffers[] = {second_null};
  const auto values = all_of(arrow_source(stream.get([](ArrowArray& batch) {
    batch.buffers = buffers;
    batch.null_count = -1;
  })));
  EXPECT_EQ((*values)[0], 1);
  EXPECT_TRUE(std::isnan((*values)[1]));
}

TEST(Arrow, TextIsReadWhereItsValuesAreListedAndNowhereElse) {
  const SourceOptions listed{.categories = {{"sex", {"F", "M"}}}};
  Stream stream;
  stream.add_text("sex", {"M", "F", "M"});
  EXPECT_THAT(*all_of(arrow_source(stream.get()), listed), ElementsAre(1, 0, 1));
  Stream again;
  again.add_text("sex", {"M"});
  EXPECT_THAT(all_of(arrow_source(again.get())).error().message, HasSubstr("column 'sex' is text"));
  Stream other;
  other.add_text("sex", {"F", "X"});
  EXPECT_THAT(all_of(arrow_source(other.get()), listed).error().message,
              HasSubstr("rows in memory: row 2, column 'sex': 'X' is not among the listed values"));
  Stream lenient;
  lenient.add_text("sex", {"X", "M"});
  SourceOptions missing = listed;
  missing.bad_rows = BadRows::kMissing;
  const auto values = all_of(arrow_source(lenient.get()), missing);
  EXPECT_TRUE(std::isnan((*values)[0]));
  EXPECT_EQ((*values)[1], 1);
}

TEST(Arrow, ADictionaryIsLookedUpOnceAndOnlyWhatIsUsedMustBeListed) {
  const SourceOptions listed{.categories = {{"sex", {"F", "M"}}}};
  Stream stream;
  stream.add_dictionary("sex", {0, 2, 0}, {"M", "never used", "F"});
  EXPECT_THAT(*all_of(arrow_source(stream.get()), listed), ElementsAre(1, 0, 1));
  Stream used;
  used.add_dictionary("sex", {0, 1}, {"M", "X"});
  EXPECT_THAT(all_of(arrow_source(used.get()), listed).error().message, HasSubstr("row 2, column 'sex': 'X'"));
  for (const std::int8_t index : {std::int8_t{-1}, std::int8_t{2}}) {
    Stream outside;
    outside.add_dictionary("sex", {index}, {"M", "F"});
    EXPECT_THAT(all_of(arrow_source(outside.get()), listed).error().message, HasSubstr("outside its dictionary"));
  }
}

TEST(Arrow, AListOfFixedSizeIsAsManyColumns) {
  Stream values;  // owns the child of the list
  auto& child = values.add<float>("item", "f", {1, 2, 3, 4, 5, 6});
  values.get();
  Stream stream;
  auto& list = stream.add<double>("embedding", "+w:2", {});
  static ArrowArray* children[1];
  static ArrowSchema* schemas[1];
  children[0] = &child.array;
  schemas[0] = &child.schema;
  list.buffers = {nullptr};
  list.array.length = 3;
  list.array.n_children = 1;
  list.array.children = children;
  list.schema.n_children = 1;
  list.schema.children = schemas;
  auto source = arrow_source(stream.get());
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_THAT((*source)->columns(), ElementsAre("embedding.1", "embedding.2"));
  EXPECT_THAT(*all_of(std::move(source)), ElementsAre(1, 2, 3, 4, 5, 6));
  Stream short_child;
  auto& again = short_child.add<double>("embedding", "+w:2", {});
  again.buffers = {nullptr};
  again.array.length = 4;
  again.array.n_children = again.schema.n_children = 1;
  again.array.children = children;
  again.schema.children = schemas;
  EXPECT_THAT(all_of(arrow_source(short_child.get())).error().message, HasSubstr("do not fit the batch"));
}

TEST(Arrow, OtherTypesAreRefusedWhereTheyAreChosenOnly) {
  Stream stream;
  stream.add<double>("a", "g", {1});
  stream.add<std::int32_t>("when", "tdD", {1});
  EXPECT_THAT(*all_of(arrow_source(stream.get()), {.columns = {"a"}}), ElementsAre(1));
  Stream again;
  again.add<std::int32_t>("when", "tdD", {1});
  EXPECT_THAT(all_of(arrow_source(again.get())).error().message, HasSubstr("not of the Arrow type 'tdD'"));
  Stream no_table;
  no_table.add<double>("a", "g", {1});
  no_table.format = "g";
  EXPECT_THAT(all_of(arrow_source(no_table.get())).error().message, HasSubstr("is no table"));
}

TEST(Arrow, WhatDoesNotFitTogetherIsRefused) {
  using Damage = std::function<void(ArrowArray&)>;
  const std::vector<Damage> damages = {
      [](ArrowArray& batch) { batch.length = -1; },
      [](ArrowArray& batch) { batch.offset = -1; },
      [](ArrowArray& batch) { batch.length = 3; },
      [](ArrowArray& batch) { batch.offset = 1; },
      [](ArrowArray& batch) { batch.offset = std::numeric_limits<std::int64_t>::max(); },
      [](ArrowArray& batch) { batch.n_children = 0; },
      [](ArrowArray& batch) { batch.children = nullptr; },
      [](ArrowArray& batch) { batch.n_buffers = 2; },
      [](ArrowArray& batch) { batch.null_count = 1; },
      [](ArrowArray& batch) { batch.children[0]->n_buffers = 1; },
      [](ArrowArray& batch) { batch.children[0]->length = 1; },
      [](ArrowArray& batch) { batch.children[0]->offset = -2; },
      [](ArrowArray& batch) { batch.children[0]->buffers[1] = nullptr; },
      [](ArrowArray& batch) { batch.children[0]->null_count = 1; },
      [](ArrowArray& batch) { batch.children[0]->null_count = 3; },
      [](ArrowArray& batch) { batch.children[0]->release = nullptr; },
      [](ArrowArray& batch) { batch.children[0] = nullptr; },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    Stream stream;
    stream.add<double>("a", "g", {1, 2});
    const auto refused = all_of(arrow_source(stream.get(damages[i])));
    ASSERT_FALSE(refused.ok()) << "damage " << i;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(stream.released, 1);
    EXPECT_EQ(stream.arrays_released, 1);
  }
  Stream backwards;
  auto& text = backwards.add_text("sex", {"M", "F"});
  static const std::int32_t offsets[] = {2, 1, 0};
  text.buffers[1] = offsets;
  EXPECT_THAT(all_of(arrow_source(backwards.get()), {.categories = {{"sex", {"M"}}}}).error().message,
              HasSubstr("beyond its buffer"));
}

TEST(Arrow, TextViewsStayWithinTheirBuffers) {
  struct View {
    std::int32_t length;
    char begin[4];
    std::int32_t buffer, place;
  };
  static const char long_text[] = "a longer category";
  static const std::int64_t sizes[] = {17};
  const auto read = [&](const View& view) {
    Stream stream;
    auto& column = stream.add<View>("kind", "vu", {View{1, {'x'}, 0, 0}, view});
    column.buffers.push_back(long_text);
    column.buffers.push_back(sizes);
    return all_of(arrow_source(stream.get()), {.categories = {{"kind", {"x", "a longer category"}}}});
  };
  EXPECT_THAT(*read({17, {'a', ' ', 'l', 'o'}, 0, 0}), ElementsAre(0, 1));
  for (const View& view : {View{18, {}, 0, 0}, View{17, {}, 0, 1}, View{17, {}, 1, 0}, View{17, {}, -1, 0},
                           View{17, {}, 0, -1}, View{-1, {}, 0, 0}})
    EXPECT_FALSE(read(view).ok()) << view.length << ' ' << view.buffer << ' ' << view.place;
}

TEST(Arrow, AProducerThatFailsSaysWhy) {
  Stream stream;
  stream.add<double>("a", "g", {1});
  stream.fail_at = 1;
  EXPECT_THAT(all_of(arrow_source(stream.get()), {}, 1).error().message,
              HasSubstr("could not be read: the \\x0a producer failed"));
  EXPECT_EQ(stream.released, 1);
  ArrowArrayStream gone = {};
  EXPECT_FALSE(arrow_source(&gone).ok());
  EXPECT_FALSE(arrow_source(nullptr).ok());
}

std::unique_ptr<RowSource> table(const RowMajorMatrix& rows) { return std::make_unique<MemorySource>(rows); }

std::vector<std::unique_ptr<RowSource>> parts(std::unique_ptr<RowSource> a, std::unique_ptr<RowSource> b) {
  std::vector<std::unique_ptr<RowSource>> both;
  both.push_back(std::move(a));
  both.push_back(std::move(b));
  return both;
}

TEST(JoinedSource, RowsStandSideBySideInAnyOrderOfColumns) {
  RowMajorMatrix left(3, 2);
  left << 1, 2, 3, 4, 5, 6;
  const auto joined = [&] {
    return joined_source(parts(table(left), text_source({"b", "a", "b"}, "y")), {"p", "q", "y"});
  };
  const SourceOptions options{.columns = {"y", "q"}, .categories = {{"y", {"a", "b"}}}};
  EXPECT_THAT(*all_of(joined(), options, 2), ElementsAre(1, 2, 0, 4, 1, 6));
  EXPECT_THAT(all_of(joined()).error().message, HasSubstr("column 'y' is text"));
  SourceOptions unlisted = options;
  unlisted.categories[0].values = {"a"};
  EXPECT_THAT(all_of(joined(), unlisted).error().message, HasSubstr("row 1, column 'y': 'b'"));
}

TEST(JoinedSource, UnequalLengthsAreRefused) {
  const RowMajorMatrix three = RowMajorMatrix::Ones(3, 1), four = RowMajorMatrix::Ones(4, 1);
  for (std::size_t at_once : {1U, 3U, 4U, 9U}) {
    EXPECT_THAT(all_of(joined_source(parts(table(three), table(four)), {"a", "b"}), {}, at_once).error().message,
                HasSubstr("different numbers of rows"));
    EXPECT_THAT(all_of(joined_source(parts(table(four), table(three)), {"a", "b"}), {}, at_once).error().message,
                HasSubstr("different numbers of rows"));
  }
  EXPECT_FALSE(joined_source(parts(table(three), table(three)), {"a"}).ok());
}

}  // namespace
}  // namespace eigenveil
