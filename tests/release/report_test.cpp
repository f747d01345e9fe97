// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "eigenveil/base/printable.hpp"
#include "tests/release/example_model.hpp"
#include "tests/release/python.hpp"

namespace eigenveil {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace eigenveil::test;  // NOLINT(google-build-using-namespace)

/// The example with components of 6 features, so that they can be drawn as 2 x 3 pictures.
Model picture_model() {
  Model model = example_model();
  array_of(model, "components") = (Matrix(2, 6) << 0.5, -0.5, 0.5, -0.5, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 1).finished();
  for (const char* name : {"mean", "offset", "scale"}) array_of(model, name) = Matrix::Constant(6, 1, 0.25);
  model.manifest["features"] = {"1", "2", "3", "4", "5", "6"};
  model.manifest.erase("columns");
  return model;
}

ReportOptions two_by_three() { return {.image_shape = ReportOptions::ImageShape{2, 3}}; }

/// Runs a Python program that gets the report's path; prints what it finds wrong.
void check_with_python(const std::string& report, const std::string& program) {
  const TempDir folder;
  folder.write_file("report.html", report);
  const auto ran = run_python(folder, program, {folder.file("report.html")});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

constexpr const char* kWellFormed = R"py(
import html.parser, re, sys, xml.etree.ElementTree
void = {"meta", "img", "br", "link", "input", "hr"}
class Check(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], set(), []
    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        attrs = dict(attrs)
        if "id" in attrs:
            assert attrs["id"] not in self.ids, attrs
            self.ids.add(attrs["id"])
        assert not any(name.startswith("on") for name in names), attrs
        for name in ("src", "href"):
            assert attrs.get(name, "data:").startswith("data:"), attrs
        if tag == "img":
            assert attrs.get("alt"), attrs
        if tag not in void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in void:
            self.open.pop()
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
text = open(sys.argv[1], encoding="utf-8").read()
check = Check()
check.feed(text)
check.close()
assert check.open == [], check.open
assert not {"script", "link", "iframe", "object", "form"} & set(check.tags), set(check.tags)
assert text.startswith("<!doctype html>") and '<html lang="en">' in text
without_namespace = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
assert "http" not in re.sub("http-equiv", "", without_namespace), "the page names an address"
assert "url(" not in text and "@import" not in text
for svg in re.findall(r"<svg.*?</svg>", text, re.S):
    tree = xml.etree.ElementTree.fromstring(svg)
    assert tree.find("{http://www.w3.org/2000/svg}title") is not None
)py";

TEST(Report, IsWellFormedAndSelfContained) {
  check_with_python(html_report(example_model()), kWellFormed);
  check_with_python(html_report(picture_model(), two_by_three()), kWellFormed);
  Model seeded = example_model();
  seeded.manifest["private"] = false;
  seeded.manifest["warnings"] = {"one", "two"};
  seeded.manifest["noise_edge"] = 50.0;
  check_with_python(html_report(seeded), kWellFormed);
}

TEST(Report, PromisesNoMoreThanTheGuarantee) {
  Model model = example_model();
  EXPECT_THAT(html_report(model, {}), HasSubstr("This holds between any two data sets"));
  model.manifest["guarantee_kind"] = "model";
  EXPECT_THAT(html_report(model, {}), AllOf(HasSubstr("model-based guarantee"), HasSubstr("independent draws"),
                                            Not(HasSubstr("This holds between any two data sets"))));
}

TEST(Report, StatesTheCertifiedEpsilonWhereAPaperPrescribedTheNoise) {
  Model model = example_model();
  model.manifest["epsilon"] = 1.0;
  model.manifest["certified_epsilon"] = 1.75;
  model.manifest["calibration"] = "paper";
  EXPECT_THAT(html_report(model, {}),
              AllOf(HasSubstr("&epsilon;&nbsp;=&nbsp;1.75"), Not(HasSubstr("&epsilon;&nbsp;=&nbsp;1 ")),
                    HasSubstr("must not be larger than 1.75")));
}

TEST(Report, EscapesEveryTextOfTheModel) {
  const std::string evil = "</style><script>alert(1)</script><img src=x onerror='alert(2)'>\"&amp;";
  Model model = example_model();
  for (const char* key :
       {"eigenveil", "method", "adjacency", "accounting", "guarantee", "released", "purpose", "unit", "calibration"})
    model.manifest[key] = evil;
  for (auto& name : model.manifest["features"]) name = evil;
  for (auto& event : model.manifest["events"]) event["label"] = evil;
  model.manifest["warnings"] = {evil};
  model.manifest["ledger"]["dataset"] = evil;
  model.manifest["options"] = {{"center", evil}, {"missing", evil}};
  for (auto& column : model.manifest["columns"]) column["name"] = evil;
  model.manifest["columns"][2]["values"] = {evil + "1", evil + "2"};
  model.manifest["federation"] = {{"sites", {evil, evil}}, {"aggregation", "secure"}, {"condition", evil}};
  model.arrays.push_back({evil, Matrix::Ones(1, 1), true});
  const std::string page = html_report(model);
  check_with_python(page, kWellFormed);
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#39;alert(2)&#39;&gt;&quot;"
                              "&amp;amp;"));

  model.manifest["model"] = evil;
  model.manifest["events"] = evil;  // shown as it is
  check_with_python(html_report(model), kWellFormed);
}

// What moves, hides, or turns round what stands beside it, in every text of a manifest and every name of an array.
void add_hostile(nlohmann::json& at, const std::string& hostile) {
  if (at.is_string()) at = at.get<std::string>() + hostile;
  if (at.is_structured())
    for (auto& inner : at) add_hostile(inner, hostile);
}

TEST(Report, HasNothingInvisibleAndNothingThatTurnsTextRound) {
  const std::string hostile = "\xe2\x80\xae\xe2\x81\xa6\xc2\x80\xc2\x9f\xe2\x80\x8b\x1b[2J\r\xe2\x80\xa8";
  Model model = example_model();
  auto& manifest = model.manifest;
  manifest["warnings"] = {"one", "two"};
  manifest["score_plot"] = {{"sentence", "It draws."}, {"deviation", 3.0}};
  manifest["pilot"] = {{"chosen", "gram"}, {"sentence", "It was chosen."}};
  manifest["verdicts"] = {{"sentence", "They hold."}, {"standing", {"holds", "noise"}}, {"how", "By simulation."}};
  manifest["person"] = {{"column", "who"}, {"weight", "equal"}, {"estimand", "Every person counts alike."}};
  manifest["federation"] = {
      {"sites", {"north", "south"}}, {"aggregation", "secure"}, {"condition", "They are honest."}};
  for (const char* key : {"released", "purpose", "unit", "calibration"}) manifest[key] = "text";
  const std::string kind = manifest["model"], adjacency = manifest["adjacency"];
  for (const bool known : {true, false}) {
    add_hostile(manifest, hostile);
    if (known) manifest["model"] = kind, manifest["adjacency"] = adjacency;
    const std::string page = html_report(model);
    EXPECT_EQ(printable_lines(page), page);
    EXPECT_THAT(page,
                AllOf(HasSubstr("any single row.\\u{202e}\\u{2066}\\u{0080}\\u{009f}\\u{200b}\\x1b[2J\\x0d\\u{2028}"),
                      HasSubstr("two\\u{202e}")));
  }
  model.arrays.push_back({"more" + hostile + "\xff", Matrix::Ones(1, 1), true});
  const std::string page = html_report(model);
  EXPECT_EQ(printable_lines(page), page);
}

TEST(Report, StatesTheGuaranteeTheFactsAndTheWarnings) {
  Model model = example_model();
  model.manifest["warnings"] = {"The range was very wide."};
  const std::string page = html_report(model);
  EXPECT_THAT(page,
              AllOf(HasSubstr("2 principal components of a data set of 7,321 rows and 4 features"),
                    HasSubstr("Whoever sees this model learns almost nothing about any single row."),
                    HasSubstr("&epsilon;&nbsp;=&nbsp;1, <span class=\"unbroken\">&delta;&nbsp;=&nbsp;1e-6</span>"),
                    HasSubstr("replacing one row"), HasSubstr("<li>The range was very wide.</li>")));
  EXPECT_THAT(page, AllOf(HasSubstr("Row bound</th><td>1.5"), HasSubstr("<bdi>people</bdi>"),
                          HasSubstr("Eigenveil version</dt><dd><bdi>0.1.0")));
  EXPECT_THAT(page, Not(HasSubstr("NOT PRIVATE")));
}

TEST(Report, SaysNotPrivateUnlessTheManifestVouchesForIt) {
  Model model = example_model();
  for (const auto& value : {nlohmann::json(false), nlohmann::json("true"), nlohmann::json(1), nlohmann::json()}) {
    model.manifest["private"] = value;
    const std::string page = html_report(model);
    EXPECT_THAT(page, HasSubstr("<strong>NOT PRIVATE</strong>"));
    EXPECT_THAT(page, Not(HasSubstr("released with differential privacy")));
  }
  model.manifest.erase("private");
  EXPECT_THAT(html_report(model), HasSubstr("NOT PRIVATE"));
}

TEST(Report, SharesTheBudgetByTheSquaresOfMu) {
  // 0.1875^2 = 9/256 against 4 * 0.0625^2 = 4/256
  const std::string page = html_report(example_model());
  EXPECT_THAT(page, AllOf(HasSubstr(">69.2%<"), HasSubstr(">30.8%<"), HasSubstr("width:69.23%")));
  EXPECT_THAT(page, HasSubstr("&mu; = 0.2253."));  // sqrt(13 / 256)
}

TEST(Report, GivesNoShareToAnswersThatAreNotGaussian) {
  Model model = example_model();
  model.manifest["events"].push_back({{"label", "range"}, {"mechanism", "pure:epsilon=0.05"}, {"count", 8}});
  const std::string page = html_report(model);
  EXPECT_THAT(page, AllOf(HasSubstr("pure, &epsilon; = 0.05"), HasSubstr("among the Gaussian answers alone"),
                          HasSubstr("&ndash;")));
}

TEST(Report, GivesTheCommandThatRecomputesTheGuaranteeWithEveryDigit) {
  Model model = example_model();
  model.manifest["events"][0]["mechanism"] = "gaussian:mu=0.12345678901234566";
  EXPECT_THAT(html_report(model),
              HasSubstr("eigenveil account --delta 1e-6 \\\n    --event gaussian:mu=0.12345678901234566"
                        " \\\n    --event gaussian:mu=0.0625,count=4</pre>"));
  model.manifest["accounting"] = "zcdp";
  EXPECT_THAT(html_report(model), HasSubstr("--delta 1e-6 --accounting zcdp \\"));
}

TEST(Report, DrawsTheNoiseEdgeOnlyWhenTheModelHasOne) {
  Model model = example_model();
  EXPECT_THAT(html_report(model), Not(HasSubstr("Noise alone")));
  model.manifest["noise_edge"] = 61.5;
  EXPECT_THAT(html_report(model), AllOf(HasSubstr("class=\"edge\""), HasSubstr("Noise alone: 61.5")));
}

TEST(Report, PlacesEigenvaluesProportionallyBetweenItsTicks) {
  Model model = example_model();
  array_of(model, "eigenvalues") << 100, -20;
  const std::string page = html_report(model);
  const std::regex circle(R"re(cy="([0-9.]+)" r="4.5"><title>PC\d: (-?\d+)<)re");
  const std::regex tick(R"re(y="([0-9.]+)" text-anchor="end">(-?\d+)<)re");
  std::map<double, double> at;  // value -> y
  for (std::sregex_iterator i(page.begin(), page.end(), tick), end; i != end; ++i) {
    at[std::stod((*i)[2])] = std::stod((*i)[1]) - 4;  // the baseline of a label lies 4 below its line
  }
  ASSERT_GE(at.size(), 4);
  for (const auto& [value, y] : at) EXPECT_TRUE(y >= 30 && y <= 285) << value << " lies outside the plot, at " << y;
  const double slope = (at.rbegin()->second - at.begin()->second) / (at.rbegin()->first - at.begin()->first);
  int points = 0;
  for (std::sregex_iterator i(page.begin(), page.end(), circle), end; i != end; ++i, ++points) {
    EXPECT_NEAR(std::stod((*i)[1]), at.begin()->second + slope * (std::stod((*i)[2]) - at.begin()->first), 0.2);
  }
  EXPECT_EQ(points, 2);
}

TEST(Report, ListsTheLargestEntriesOfEachComponentWithTheirSigns) {
  const std::string page = html_report(example_model());
  const auto height = page.find("<bdi>height</bdi></th><td class=\"loading\">");
  const auto weight = page.find("<bdi>weight</bdi></th><td class=\"loading\">");
  ASSERT_NE(height, std::string::npos);
  EXPECT_LT(height, weight);
  EXPECT_THAT(
      page, AllOf(HasSubstr("<i class=\"plus\" style=\"width:50.00%\"></i></span></td><td class=\"number\">+0.800"),
                  HasSubstr("<i class=\"minus\" style=\"width:28.12%\"></i></span></td><td class=\"number\">-0.360")));
}

/// Decodes every picture by the PNG specification and compares with colours computed here.
TEST(Report, DrawsComponentsAndMeanInColoursThatMatchTheNumbers) {
  check_with_python(html_report(picture_model(), two_by_three()), R"py(
import base64, re, struct, sys, zlib
text = open(sys.argv[1], encoding="utf-8").read()
pictures = re.findall(r'alt="([^"]*)" src="data:image/png;base64,([^"]*)"', text)
assert [alt.split()[0] for alt, _ in pictures] == ["Mean", "PC1", "PC2"], [alt for alt, _ in pictures]
def decode(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        chunks[kind] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (width, height, depth, kind, rest) == (3, 2, 8, 3, [0, 0, 0])
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == 2 * 4 and pixels[0] == pixels[4] == 0
    palette = [tuple(chunks[b"PLTE"][3 * i:3 * i + 3]) for i in range(255)]
    return [palette[i] for i in pixels[1:4] + pixels[5:8]]
blue, white, red = (24, 58, 112), (250, 250, 250), (112, 14, 36)
mean, first, second = [decode(base64.b64decode(data, validate=True)) for _, data in pictures]
assert mean == [red] * 6, mean
assert first == [red, blue, red, blue, white, white], first
assert second[5] == red and len(set(second)) == 6, second
warmth = [r - b for r, g, b in second[:5]]
assert warmth == sorted(warmth) and warmth[0] > 0, warmth
)py");
}

TEST(Report, LeavesOutAMeanThatIsZeroAndPicturesThatDoNotFit) {
  Model model = picture_model();
  array_of(model, "mean").setZero();
  EXPECT_THAT(html_report(model, two_by_three()), Not(HasSubstr("alt=\"Mean")));
  const std::string page = html_report(model, {.image_shape = ReportOptions::ImageShape{28, 28}});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<img")), HasSubstr("does not fit"), HasSubstr("<h3>PC1</h3>")));
}

TEST(Report, ShowsAPythonProgramThatRunsAndProjectsRows) {
  const TempDir folder;
  ASSERT_TRUE(write_model(example_model(), folder.file("model.npz")).ok());
  folder.write_file("report.html", html_report(example_model()));
  const auto ran = run_python(folder, R"py(
import html, os, re, sys, numpy
os.chdir(sys.argv[1])
program = html.unescape(re.search(r"<pre>(import.*?)</pre>", open("report.html").read(), re.S).group(1))
names = {"rows": numpy.array([[170, 70, 1, 0]])}
exec(program, names)
# ((170 - 150) * 0.02 - 0.1) * 0.8 + ((70 - 60) * 0.025 + 0.2) * 0.6
assert abs(names["scores"][0, 0] - 0.51) < 1e-15, names["scores"]
assert names["manifest"]["model"] == "pca"
)py",
                              {folder.file(".")});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST(Report, WorksForModelsOfOtherKindsAndForBareOnes) {
  Model covariance = example_model();
  covariance.arrays = {{"covariance", Matrix::Identity(3, 3), false}};
  covariance.manifest["model"] = "covariance";
  std::string page = html_report(covariance);
  check_with_python(page, kWellFormed);
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>Covariance matrix</h1>"), HasSubstr("<h2>How it was made</h2>"),
                          Not(HasSubstr("entry by entry")), HasSubstr("<title>Correlations</title>")));
  check_with_python(html_report(Model{}), kWellFormed);
  Model broken = example_model();
  for (auto& [key, value] : broken.manifest.items()) value = nlohmann::json::array({1, nullptr});
  check_with_python(html_report(broken, two_by_three()), kWellFormed);
}

std::string without(std::string text, const std::string& begin, const std::string& end) {
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    text.erase(at, text.find(end, at) + end.size() - at);
    text.insert(at, 1, ' ');
  }
  return text;
}

/// Every number that the page shows must be a number of the model, or one of the few sums and shares that the page is
/// documented to compute from it; so neither a clock nor data can have come in. Style, pictures and the axes of the
/// plot hold no statements and are left out.
TEST(Report, ShowsNoNumberThatIsNotInTheModel) {
  Model model = example_model();
  model.manifest["noise_edge"] = 61.5;
  const double eigenvalue_sum = 123.25 + 41.0625;
  std::vector<double> known = {123.25 / eigenvalue_sum * 100,
                               41.0625 / eigenvalue_sum * 100,
                               900.0 / 13,
                               400.0 / 13,
                               std::sqrt(13.0 / 256),
                               std::exp(1.0),
                               1e6};
  for (const auto& array : model.arrays) {
    known.insert(known.end(), array.values.data(), array.values.data() + array.values.size());
    known.push_back(static_cast<double>(array.values.rows()));
    known.push_back(static_cast<double>(array.values.cols()));
  }
  const nlohmann::json flat = model.manifest.flatten();
  for (const auto& value : flat) {
    if (value.is_number()) known.push_back(value.get<double>());
  }
  known.insert(known.end(), {0.1875, 0.0625});  // inside the texts of the events
  std::string page = html_report(model);
  page = without(page, "<style>", "</style>");
  page = without(page, "<text class=\"tick\"", "</text>");
  page = without(page, "<title>PC", ":");
  page = without(page, "<h3>PC", "</h3>");
  page = without(page, "<bdi>0.1.0", "</bdi>");  // the version
  page = without(page, "<", ">");
  for (int i = 0; i < 2; ++i) page = std::regex_replace(page, std::regex(R"((\d),(\d\d\d))"), "$1$2");
  const std::regex number(R"(\d+(\.(\d+))?(e(-?\d+))?)");
  int seen = 0;
  for (std::sregex_iterator i(page.begin(), page.end(), number), end; i != end; ++i, ++seen) {
    const double shown = std::stod(i->str());
    const double exponent = (*i)[4].matched ? std::stod((*i)[4]) : 0;
    const double half_a_digit = 0.5 * std::pow(10, exponent - static_cast<double>((*i)[2].length()));
    bool found = false;
    for (const double value : known) found |= std::abs(std::abs(value) - shown) <= half_a_digit * 1.0001;
    EXPECT_TRUE(found) << i->str() << " is shown but not in the model: ..."
                       << page.substr(static_cast<std::size_t>(std::max<std::ptrdiff_t>(i->position() - 60, 0)), 120);
  }
  EXPECT_GT(seen, 40);
}

/// The example, judged: the first component holds, the second is noise.
Model judged_model() {
  Model model = example_model();
  array_of(model, "eigenvalues_low") = (Matrix(2, 1) << 110, 20).finished();
  array_of(model, "eigenvalues_high") = (Matrix(2, 1) << 140, 60).finished();
  array_of(model, "verdict") = (Matrix(2, 1) << 3, 0).finished();
  array_of(model, "angle") = (Matrix(2, 1) << 7, 71).finished();
  array_of(model, "components_deviation") = (Matrix(2, 4) << 0.1, 0.4, 0.1, 0.1, 1, 1, 1, 1).finished();
  for (auto& array : model.arrays) array.is_vector = array.values.cols() == 1;
  return model;
}

TEST(Report, SaysFirstWhatHoldsAndWhatIsNoise) {
  const std::string page = html_report(judged_model());
  check_with_python(page, kWellFormed);
  EXPECT_THAT(page, AllOf(HasSubstr("Component 1 holds. Component 2 cannot be told from noise."),
                          HasSubstr("<span class=\"chip holds\">holds</span>"), HasSubstr("110 to 140"),
                          HasSubstr("7&deg;"), HasSubstr("<line class=\"band holds\"")));
  EXPECT_THAT(page, Not(HasSubstr("71&deg;")));  // of noise no angle is claimed
  EXPECT_LT(page.find("<h2>What was found</h2>"), page.find("<h2>What was promised</h2>"));
  // 0.6 with a deviation of 0.4 may have the other sign, 0.8 with one of 0.1 may not.
  EXPECT_THAT(page, AllOf(HasSubstr("<tr class=\"unsure\"><th scope=\"row\"><bdi>weight</bdi>"),
                          HasSubstr("<tr><th scope=\"row\"><bdi>height</bdi></th><td class=\"loading\">")));
}

TEST(Report, DoesWithoutVerdictsThatDoNotFit) {
  for (const Matrix& odd :
       {Matrix(Matrix::Constant(2, 1, 7)), Matrix(Matrix::Constant(2, 1, 0.5)), Matrix(Matrix::Constant(2, 1, -1)),
        Matrix(Matrix::Zero(5, 1)), Matrix(Matrix::Zero(0, 0))}) {
    Model model = judged_model();
    for (const char* name : {"verdict", "angle", "components_deviation", "eigenvalues_low"})
      array_of(model, name) = odd;
    const std::string page = html_report(model);
    check_with_python(page, kWellFormed);
    EXPECT_THAT(page, Not(HasSubstr("class=\"chip")));
  }
}

TEST(Report, DrawsTheBudgetInWhatAddsUp) {
  Model model = example_model();
  model.manifest["ledger"] = {{"used", true},       {"limited", true},    {"dataset", "people"}, {"entry", 12},
                              {"unit", "row"},      {"epsilon", 2.0},     {"delta", 1e-6},       {"spent_before", 0.0},
                              {"spent_after", 1.0}, {"remaining", 1.6576}};
  const std::string page = html_report(model);
  check_with_python(page, kWellFormed);
  // mu(1)^2 / mu(2)^2 at delta 1e-6: 27.87%, and mu(1.6576)^2 / mu(2)^2 the rest
  EXPECT_THAT(page,
              AllOf(HasSubstr("class=\"now\" style=\"width:27.87%"), HasSubstr("class=\"left\" style=\"width:72.13%"),
                    HasSubstr("#12"), HasSubstr("replacing one row"), HasSubstr("Epsilons do not add up like money"),
                    Not(HasSubstr("No ledger"))));
  model.manifest["ledger"] = {{"used", false}};
  EXPECT_THAT(html_report(model), HasSubstr("No ledger was used"));
}

TEST(Report, ShowsAtTheTopWhatAGuaranteeRestsOn) {
  Model model = example_model();
  model.manifest["guarantee_kind"] = "model";
  model.manifest["calibration"] = "paper";
  model.manifest["certified_epsilon"] = 3.5;
  model.manifest["federation"] = {{"sites", {"north", "south"}},
                                  {"aggregation", "secure"},
                                  {"shares", 2},
                                  {"condition", "As long as they are apart."}};
  const std::string page = html_report(model);
  check_with_python(page, kWellFormed);
  const std::string top = page.substr(0, page.find("<h2>"));
  EXPECT_THAT(top, AllOf(HasSubstr("Model-based guarantee."), HasSubstr("The noise of a paper."),
                         HasSubstr("Secure aggregation.")));
  EXPECT_THAT(page, AllOf(HasSubstr("As long as they are apart."), HasSubstr("mask + 1/2 of the noise"),
                          HasSubstr(">north</text>"), HasSubstr("sees only the total")));
}

TEST(Report, ListsEveryReleaseThatThisOneTellsOf) {
  Model model = example_model();
  EXPECT_THAT(html_report(model), Not(HasSubstr("whose numbers it used")));
  const auto promise = [](double epsilon) {
    return nlohmann::json{{"epsilon", epsilon}, {"delta", 1e-7}, {"unit", "row"}};
  };
  model.manifest["start"] = nlohmann::json::array({promise(4)});
  EXPECT_THAT(html_report(model), HasSubstr("The release whose numbers it used.</strong>"));
  model.manifest["start"] = nlohmann::json::array({promise(4), promise(0.25), promise(3)});
  const std::string page = html_report(model);
  EXPECT_THAT(page, HasSubstr("The 3 releases whose numbers it used</strong>"));
  std::string told;
  for (const char* epsilon : {"4", "0.25", "3"})
    told +=
        fmt::format("{}&epsilon;&nbsp;=&nbsp;{} with &delta;&nbsp;=&nbsp;1e-7", told.empty() ? ": " : "; ", epsilon);
  EXPECT_THAT(page, HasSubstr(told));
}

TEST(Report, DrawsTheIntervalsOfColumnsByTheirNames) {
  Model model;
  model.arrays = {{"coefficients", Matrix::Constant(3, 1, 1), true},
                  {"intercept", Matrix::Constant(1, 1, 9), true},
                  {"mean", Matrix::Zero(3, 1), true},
                  {"offset", Matrix::Zero(3, 1), true},
                  {"scale", (Matrix(3, 1) << 1, 0.5, 0.1).finished(), true}};
  const auto estimated = [](const char* name, double lower, double upper) {
    return nlohmann::json{{"name", name}, {"value", (lower + upper) / 2}, {"lower", lower}, {"upper", upper}};
  };
  model.manifest = {
      {"model", "regress"},
      {"features", {"a", "b", "c"}},
      {"coefficients", {estimated("(intercept)", 8, 10), estimated("b", -1, 1), estimated("c", 0.1, 0.2)}}};
  const std::string page = html_report(model);
  check_with_python(page, kWellFormed);
  // In units of 2, the reach of b: c goes from 0.1 / 0.1 = 1 to 2, so from 75% to 100%.
  EXPECT_THAT(page, AllOf(HasSubstr("Of 2 columns, 1 has an effect whose sign is certain at 95%: <bdi>c</bdi>."),
                          HasSubstr("<span class=\"forest\"><b style=\"left:75.00%;width:25.00%\">"),
                          HasSubstr("<span class=\"forest none\"><b style=\"left:0.00%;width:100.00%\">"),
                          HasSubstr("<span class=\"forest\"></span>")));
}

TEST(Report, ExplainsTheWordsItUsesAndNoOthers) {
  EXPECT_THAT(html_report(example_model()), AllOf(HasSubstr("<dt>gram</dt>"), HasSubstr("<dt>Row bound</dt>"),
                                                  Not(HasSubstr("<dt>Ridge</dt>")), Not(HasSubstr("<dt>holds</dt>"))));
  EXPECT_THAT(html_report(judged_model()), HasSubstr("<dt>holds</dt>"));
}

TEST(Report, OfSeveralModelsHasEachIdOnce) {
  const std::string page = html_dossier({judged_model(), example_model()}, {"a.npz", "<b>.npz"});
  EXPECT_THAT(page, AllOf(HasSubstr("id=\"model-2\""), HasSubstr("&lt;b&gt;.npz")));
  std::string without_links = std::regex_replace(page, std::regex("href=\"#model-\\d\""), "");
  check_with_python(without_links, kWellFormed);
}

TEST(Report, DependsOnTheModelAlone) {
  const std::string before = html_report(example_model());
  setenv("TZ", "Asia/Tokyo", 1);
  setenv("USER", "someone", 1);
  EXPECT_EQ(html_report(example_model()), before);
  unsetenv("TZ");
}

}  // namespace
}  // namespace eigenveil
