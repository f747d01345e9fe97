// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/npz.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/release/python.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace eigenveil::test;  // NOLINT(google-build-using-namespace)

NamedArray matrix(const std::string& name, Matrix values) { return {name, std::move(values), false}; }
NamedArray vector(const std::string& name, Matrix values) { return {name, std::move(values), true}; }

bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(double)) == 0);
}

Matrix awkward_numbers() {
  Matrix values(2, 3);
  values << 0.1, -0.0, std::numeric_limits<double>::denorm_min(),  //
      std::numeric_limits<double>::max(), -1.0 / 3, 1e-300;
  return values;
}

TEST(Npz, ReturnsEveryBitItWasGiven) {
  const TempDir folder;
  const std::string path = folder.file("a.npz");
  const Matrix column = Matrix::Random(5, 1);
  ASSERT_TRUE(
      write_npz(path, {matrix("m", awkward_numbers()), vector("v", column)}, {{"manifest.json", "{\"x\": 1}\n"}}).ok());
  const auto back = read_npz(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->arrays.size(), 2);
  EXPECT_EQ(back->arrays[0].name, "m");
  EXPECT_FALSE(back->arrays[0].is_vector);
  EXPECT_TRUE(same_bits(back->arrays[0].values, awkward_numbers()));
  EXPECT_EQ(back->arrays[1].name, "v");
  EXPECT_TRUE(back->arrays[1].is_vector);
  EXPECT_TRUE(same_bits(back->arrays[1].values, column));
  ASSERT_EQ(back->texts.size(), 1);
  EXPECT_EQ(back->texts[0].text, "{\"x\": 1}\n");
}

RC_GTEST_PROP(Npz, ReturnsAnyMatrixOfAnyShape, ()) {
  const auto rows = *rc::gen::inRange(0, 12);
  const auto columns = *rc::gen::inRange(0, 12);
  Matrix values(rows, columns);
  for (auto& value : values.reshaped()) value = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  const TempDir folder;
  RC_ASSERT(write_npz(folder.file("a.npz"), {matrix("m", values)}, {}).ok());
  const auto back = read_npz(folder.file("a.npz"));
  RC_ASSERT(back.ok());
  RC_ASSERT(same_bits(back->arrays.at(0).values, values));
}

TEST(Npz, IsOpenedByNumpyWithTheSameNumbersAndTheManifest) {
  const TempDir folder;
  Matrix values(2, 3);
  values << 1, 2, 3, 4, 5, 6.5;
  Matrix column(2, 1);
  column << 0.1, 1e-300;
  ASSERT_TRUE(
      write_npz(folder.file("a.npz"), {matrix("m", values), vector("v", column)}, {{"manifest.json", "{}"}}).ok());
  const auto ran = run_python(folder, R"(
import sys, numpy
file = numpy.load(sys.argv[1])
assert file.files == ["m", "v", "manifest.json"], file.files
assert file["m"].dtype == numpy.float64 and file["m"].tolist() == [[1, 2, 3], [4, 5, 6.5]], file["m"]
assert file["v"].shape == (2,) and file["v"].tolist() == [0.1, 1e-300], file["v"]
assert file["manifest.json"] == b"{}", file["manifest.json"]
)",
                              {folder.file("a.npz")});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST(Npz, HasBytesThatDependOnItsContentsAlone) {
  const TempDir folder;
  const std::vector<NamedArray> arrays = {matrix("m", awkward_numbers())};
  ASSERT_TRUE(write_npz(folder.file("a.npz"), arrays, {{"t", "text"}}).ok());
  setenv("TZ", "Asia/Tokyo", 1);
  tzset();
  usleep(2'100'000);  // zip times have a resolution of two seconds
  const auto written = write_npz(folder.file("b.npz"), arrays, {{"t", "text"}});
  unsetenv("TZ");
  tzset();
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(read_file(folder.file("a.npz")), read_file(folder.file("b.npz")));
  EXPECT_FALSE(read_file(folder.file("a.npz")).empty());
}

TEST(Npz, ReadsEveryNumberTypeAndOrderThatNumpyWrites) {
  const TempDir folder;
  const auto ran = run_python(folder, R"(
import sys, numpy
a = numpy.arange(6).reshape(2, 3)
arrays = {t: a.astype(t) for t in ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f8"]}
arrays["fortran"] = numpy.asfortranarray(a.astype("f4"))
numpy.savez(sys.argv[1], **arrays)
numpy.savez_compressed(sys.argv[2], **arrays)
)",
                              {folder.file("plain.npz"), folder.file("packed.npz")});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  Matrix expected(2, 3);
  expected << 0, 1, 2, 3, 4, 5;
  for (const char* name : {"plain.npz", "packed.npz"}) {
    const auto back = read_npz(folder.file(name));
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(back->arrays.size(), 12);
    for (const auto& array : back->arrays) EXPECT_EQ(array.values, expected) << name << " " << array.name;
  }
}

void expect_bad_input(const Result<NpzContents>& result, const std::string& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(result.error().message, HasSubstr(words));
}

TEST(Npz, RefusesWhatIsNoArchive) {
  const TempDir folder;
  expect_bad_input(read_npz(folder.file("none.npz")), "no such file");
  expect_bad_input(read_npz(folder.file("")), folder.file(""));
  folder.write_file("text.npz", "a,b\n1,2\n");
  expect_bad_input(read_npz(folder.file("text.npz")), "not an NPZ file");
  folder.write_file("empty.npz", "");
  expect_bad_input(read_npz(folder.file("empty.npz")), "not an NPZ file");
}

TEST(Npz, RefusesEveryTruncationOfAnArchive) {
  const TempDir folder;
  ASSERT_TRUE(write_npz(folder.file("a.npz"), {matrix("m", awkward_numbers())}, {{"t", "text"}}).ok());
  const std::string bytes = read_file(folder.file("a.npz"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    folder.write_file("cut.npz", bytes.substr(0, length));
    ASSERT_FALSE(read_npz(folder.file("cut.npz")).ok()) << "cut after " << length << " bytes";
  }
}

TEST(Npz, RefusesAnArchiveWithAnyFlippedByteOfAnArray) {
  const TempDir folder;
  ASSERT_TRUE(write_npz(folder.file("a.npz"), {matrix("m", awkward_numbers())}, {}).ok());
  const std::string bytes = read_file(folder.file("a.npz"));
  const std::size_t begin = bytes.find("\x93NUMPY");
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < begin + 128 + 48; ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    folder.write_file("b.npz", flipped);
    expect_bad_input(read_npz(folder.file("b.npz")), "array 'm'");
  }
}

TEST(Npz, RefusesArraysItCannotHoldAndSaysWhichAndWhy) {
  const TempDir folder;
  const auto ran = run_python(folder, R"py(
import sys, warnings, zipfile, numpy
warnings.simplefilter("ignore")
folder = sys.argv[1]
def header(descr="'<f8'", shape="(2, 2)", version=b"\x01\x00"):
    text = ("{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (descr, shape)).ljust(117).encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text
def save(name, *members):
    with zipfile.ZipFile(folder + "/" + name, "w") as z:
        for data in members:
            z.writestr("x.npy", data)
save("huge.npz", header(shape="(1000000000000, 100)"))
save("overflow.npz", header(shape="(4294967296, 4294967296)"))
save("negative.npz", header(shape="(-1, 2)"))
save("words.npz", header(shape="(two, 2)"))
save("short.npz", header() + bytes(24))
save("long.npz", header() + bytes(40))
save("version.npz", header(version=b"\x09\x00"))
save("nothing.npz", b"")
save("header.npz", header()[:50])
save("magic.npz", b"hello")
save("twice.npz", header() + bytes(32), header() + bytes(32))
numpy.savez(folder + "/cube.npz", x=numpy.zeros((2, 2, 2)))
numpy.savez(folder + "/scalar.npz", x=numpy.float64(3))
numpy.savez(folder + "/complex.npz", x=numpy.zeros(3, "c8"))
numpy.savez(folder + "/text.npz", x=numpy.array(["a", "b"]))
numpy.savez(folder + "/record.npz", x=numpy.zeros(3, [("a", "f8")]))
)py",
                              {folder.file(".")});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const std::vector<std::pair<std::string, std::string>> expected = {{"huge", "1000000000000 rows of 100 columns"},
                                                                     {"overflow", "announces"},
                                                                     {"negative", "header is damaged"},
                                                                     {"words", "header is damaged"},
                                                                     {"short", "truncated"},
                                                                     {"long", "longer than announced"},
                                                                     {"version", "version 9"},
                                                                     {"nothing", "truncated"},
                                                                     {"header", "truncated"},
                                                                     {"magic", "truncated"},
                                                                     {"cube", "3 dimensions"},
                                                                     {"scalar", "0 dimensions"},
                                                                     {"complex", "type '<c8'"},
                                                                     {"text", "type '<U1'"},
                                                                     {"record", "structured"},
                                                                     {"twice", "not an NPZ file"}};
  for (const auto& [name, words] : expected) {
    SCOPED_TRACE(name);
    expect_bad_input(read_npz(folder.file(name + ".npz")), words);
  }
}

// A few kilobytes that would unpack to gigabytes: nothing near that is taken.
TEST(Npz, RefusesWhatUnpacksToManyTimesItsSizeBeforeMemoryIsTaken) {
  const TempDir folder;
  const auto ran = run_python(folder, R"py(
import sys, zipfile, numpy
folder = sys.argv[1]
def save(name, count, kind, members=1):
    text = ("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (kind, count)).ljust(117).encode() + b"\n"
    head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(folder + "/" + name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for i in range(members):
            with z.open("x%d.npy" % i, "w") as m:
                m.write(head)
                left = count * int(kind[-1])
                while left:
                    piece = min(left, 1 << 22)
                    m.write(bytes(piece)); left -= piece
save("one.npz", 40 << 20, "<f8")
save("bytes.npz", 40 << 20, "|u1")   # 40 MiB, 320 MiB once they are numbers
save("many.npz", 2 << 20, "<f8", 12)
numpy.savez_compressed(folder + "/fine.npz", x=numpy.zeros(1 << 20), y=numpy.zeros(1 << 20))
with zipfile.ZipFile(folder + "/text.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
    with z.open("manifest.json", "w") as m:
        for i in range(100): m.write(b" " * (1 << 20))
)py",
                              {folder.file(".")});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(read_npz(folder.file("fine.npz")).ok());
  const auto peak = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak();
  for (const char* name : {"one.npz", "bytes.npz", "many.npz", "text.npz"})
    expect_bad_input(read_npz(folder.file(name)), "more than a model of this file's size can have");
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
  EXPECT_LT(peak() - before, 160 << 10) << "kilobytes";
#endif
}

TEST(Npz, RefusesTwoMembersOfOneName) {
  const TempDir folder;
  const auto written =
      write_npz(folder.file("a.npz"), {vector("x", Matrix::Ones(1, 1)), vector("x", Matrix::Ones(1, 1))}, {});
  EXPECT_FALSE(written.ok());
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace eigenveil
