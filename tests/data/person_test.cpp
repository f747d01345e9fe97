// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/person.hpp"

#include "eigenveil/data/whose.hpp"
#include "tests/data/hdf5_file.hpp"
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

class Person : public testing::Test {
 protected:
  TempDir dir_;

  Result<std::vector<PersonId>> people(const std::string& path, const std::string& column, SourceOptions options) {
    options.person = PersonColumn{column, {5}};
    auto source = EIGENVEIL_TRY(open_source(path, options));
    std::vector<PersonId> all;
    for (RawBatch batch;;) {
      EIGENVEIL_TRY(source->next(batch, 2));
      if (batch.rows == 0) return all;
      EXPECT_EQ(batch.people.size(), batch.rows);
      all.insert(all.end(), batch.people.begin(), batch.people.end());
    }
  }
  template <class T>
  std::string numbers(const std::string& code, const std::vector<T>& ids) const {
    std::vector<T> rows;
    for (const T id : ids) rows.insert(rows.end(), {id, T{1}});
    return dir_.write_file("t.npy", npy(code, "(" + std::to_string(ids.size()) + ", 2)", bytes_of(rows)));
  }
};

SourceOptions forgiving() {
  SourceOptions options;
  options.columns = {"2"};
  options.bad_rows = BadRows::kMissing;
  return options;
}

SourceOptions strict() {
  SourceOptions options;
  options.columns = {"2"};
  return options;
}

// One person with many rows must not be many people because of what the id looks like.
TEST_F(Person, ANumberThatIsNoWholeIdIsOnePersonInAllItsRows) {
  const auto found =
      people(numbers<double>("<f8", {0x1p60, 1.5, 0x1p60, kInf, 1.5, kInf, -kInf, kNaN, kNaN, 7}), "1", forgiving());
  ASSERT_TRUE(found.ok());
  const auto& ids = *found;
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_EQ(ids[1], ids[4]);
  EXPECT_EQ(ids[3], ids[5]);
  for (const std::size_t i : {0U, 1U, 3U, 6U}) {
    EXPECT_FALSE(ids[i].missing()) << i;
    for (const std::size_t j : {0U, 1U, 3U, 6U}) EXPECT_EQ(ids[i] == ids[j], i == j);
  }
  EXPECT_TRUE(ids[7].missing() && ids[8].missing()) << "nobody's";
  EXPECT_EQ(ids[9], person_of("7", {5}));
  const auto wide =
      people(numbers<std::int64_t>("<i8", {std::int64_t{1} << 60, 3, std::int64_t{1} << 60}), "1", forgiving());
  ASSERT_TRUE(wide.ok());
  EXPECT_FALSE((*wide)[0].missing());
  EXPECT_EQ((*wide)[0], (*wide)[2]);
  const auto refused = people(numbers<std::int64_t>("<i8", {std::int64_t{1} << 60}), "1", strict());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("no integer below 2^53"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("the ids as text"));
}

TEST_F(Person, TheTypeOfTheNumbersSaysWhichIdsAreWhole) {
  const auto refused = people(numbers<float>("<f4", {1, 0x1p24F}), "1", strict());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("row 2, column '1': the id is no integer below 2^24"));
  EXPECT_TRUE(people(numbers<float>("<f4", {1, 0x1p24F - 1}), "1", strict()).ok());
  EXPECT_TRUE(people(numbers<double>("<f8", {1, 0x1p24}), "1", strict()).ok());
  EXPECT_TRUE(people(numbers<std::int32_t>("<i4", {1, 1 << 24}), "1", strict()).ok());
  const auto same = people(numbers<float>("<f4", {0x1p24F}), "1", forgiving());
  EXPECT_EQ(same->front(), person_of("16777216", {5})) << "as another part of a folder has it";
}

// HDF5 has ids as arrays have them: by the number, whatever the type that holds it.
TEST_F(Person, OfHdf5AreWhoTheyAreInTheOtherFiles) {
  const std::vector<double> ids = {1, 0, -0.0, -7, 16777215, 1};
  std::vector<double> rows;
  std::string csv;
  for (const double id : ids) {
    rows.insert(rows.end(), {id, 1});
    csv += std::to_string(static_cast<int>(id)) + ",1\n";
  }
  SourceOptions lines = strict();
  lines.header = HeaderRule::kNo;
  const auto expected = *people(dir_.write_file("t.csv", csv), "1", lines);
  EXPECT_EQ(expected[1], expected[2]);
  for (const hid_t type : {H5T_NATIVE_DOUBLE, H5T_NATIVE_FLOAT, H5T_STD_I32BE, H5T_STD_I64LE}) {
    const auto found = people(write_hdf5(dir_.file("t.h5"), 2, rows, type), "1", strict());
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(*found, expected);
  }
  const auto of = [&](double id, hid_t type, const SourceOptions& options) {
    return people(write_hdf5(dir_.file("t.h5"), 2, {id, 1, id, 1}, type), "1", options);
  };
  for (const auto& [id, type] : {std::pair{0x1p53, H5T_STD_I64LE},
                                 {0x1p60, H5T_STD_I64LE},
                                 {0x1p63, H5T_STD_U64LE},
                                 {0x1p53, H5T_NATIVE_DOUBLE},
                                 {0x1p24, H5T_NATIVE_FLOAT},
                                 {1.5, H5T_NATIVE_DOUBLE},
                                 {kInf, H5T_NATIVE_DOUBLE},
                                 {-kInf, H5T_NATIVE_FLOAT}}) {
    EXPECT_FALSE(of(id, type, strict()).ok()) << id;
    const auto found = of(id, type, forgiving());
    ASSERT_TRUE(found.ok()) << id;
    EXPECT_FALSE((*found)[0].missing()) << id;
    EXPECT_EQ((*found)[0], (*found)[1]) << id;
  }
  EXPECT_TRUE(of(kNaN, H5T_NATIVE_DOUBLE, strict())->front().missing());
}

TEST_F(Person, ALineThatIsMalformedKeepsAnIdThatIsItsFirstField) {
  using namespace std::string_literals;
  SourceOptions options = named();
  options.columns = {"a", "b"};
  options.bad_rows = BadRows::kMissing;
  const PersonId p = person_of("p", {5});
  const std::string digits(std::size_t{70} << 20, '4');
  for (const std::string& bad : {"p"s, "p,1"s, "p,1,2,3"s, "p,\"1\"2,3"s, "p,1\0,2"s, "p,1,\"2"s, "p,1," + digits}) {
    const auto found = people(dir_.write_file("t.csv", "who,a,b\np,1,2\n" + bad + "\n"), "who", options);
    ASSERT_TRUE(found.ok()) << bad.substr(0, 12) << ": " << found.error().message;
    EXPECT_THAT(*found, testing::ElementsAre(p, p)) << bad.substr(0, 12);
  }
  // Otherwise such lines are one person's, whoever's they are: of a field too many or too few nobody knows which.
  for (const std::string& bad : {"1"s, "1,2"s, ""s, "1,2,\"p\"q"s, "\"1\"2,3,p"s, "1,2,p\0"s, "1," + digits + ",p",
                                 "1,2,3,p"s, "9,1,2,p"s, "1,2,p,"s}) {
    const auto found =
        people(dir_.write_file("t.csv", "a,b,who\n1,2,p\n" + bad + "\n" + bad + "\n1,2,\n"), "who", options);
    ASSERT_TRUE(found.ok()) << bad.substr(0, 12) << ": " << found.error().message;
    EXPECT_THAT(*found, testing::ElementsAre(p, kUnreadPerson, kUnreadPerson, PersonId{})) << bad.substr(0, 12);
  }
  EXPECT_FALSE(kUnreadPerson.missing());
}

TEST(PersonOfLine, IsReadAsAFieldIs) {
  EXPECT_EQ(person_of_line(" \tp 1 ", {5}), person_of("p 1", {5}));
  for (const char* nobody : {"", "  ", "NA", "nan ", "?", "null"}) EXPECT_TRUE(person_of_line(nobody, {5}).missing());
  EXPECT_NE(person_of_line("1", {5}), person_of_line("01", {5}));
}

}  // namespace
}  // namespace eigenveil::test
