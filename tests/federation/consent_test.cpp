// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/proposals.hpp"

namespace eigenveil::federation {
namespace {

using test::kNow;
using test::ProposalCheck;
using testing::HasSubstr;
using testing::Not;
using wire::v2::Kind;
using wire::v2::Proposal;

class Consent : public ProposalCheck {
 protected:
  std::string words(const Proposal& p) const {
    const auto accepted = check_proposal(p, own_, kNow);
    if (!accepted) throw std::runtime_error(accepted.error().message);
    return in_words(p, std::string(32, '\xab'), *accepted, own_, "epsilon 0.5 of 3 is spent before, 1.2 after");
  }
};

TEST_F(Consent, NamesEverythingThatIsDecided) {
  Proposal p = proposal();
  sort_by_label(p);
  add(p, Kind::CLASS_COUNTS, "class counts", 0.05).set_classes(2);
  add(p, Kind::RECENTER, "recentre", 0);
  p.set_spares(1);
  p.set_spare_mu(0.2);
  p.set_epsilon(2);
  own_.policy.most_epsilon = 2;
  own_.peers.erase("e");
  p.set_shares(2);
  const std::string said = words(p);
  for (const char* part :
       {"Study 07070707070707070707070707070707, proposed by the coordinator 'coordinator':\n",
        "  Proposal   abababababababab (first digits of its hash), open until 2027-01-16 08:00 UTC\n",
        "'to see how age and sex go together'",
        "4 with keys that this site knows: a (this site), 'b', 'c', 'd'\n",
        "1 with keys that it does NOT know, trusted with nothing: 'e'\n",
        "'age' from 0 to 110\n",
        "'sex' of 'F', 'M'\n",
        "a row with a missing value counts as zero",
        "by 'label': 'A', 'B'; a row of another one counts as zero",
        "gram, 3 x 3 numbers: noise of 5 times what one row can change; called 'covariance'\n",
        "class_counts, 2 counts: noise of 20 times",
        "recenter, moves rows, answers nothing; called 'recentre'\n",
        "1 of these may be asked again",
        "1/2 of the noise variance (k = 2)",
        "c = 1, by this site's file",
        "at most 1 are lost (l)",
        "at delta 0.000001 under this condition (replace-one; it protects one 'row'",
        "no more than 1 of the sites",
        "if all other sites and the coordinator join against this one",
        "of data set 'rows': epsilon 0.5 of 3 is spent before, 1.2 after"})
    EXPECT_THAT(said, HasSubstr(part));
}

// Texts of a coordinator cannot make a line, move the cursor or look like one of ours, wherever they stand.
TEST_F(Consent, HostileTextsStayOnePieceOfTheirLine) {
  const std::size_t lines = [&] {
    const std::string plain = words(proposal());
    return static_cast<std::size_t>(std::count(plain.begin(), plain.end(), '\n'));
  }();
  for (const std::string text : {"\n  Costs      epsilon 0.001", "\r\x1b[1A\x1b[2KStudy",
                                 "\xe2\x80\xae"
                                 "eslaf",
                                 "\xc2\x9b"
                                 "2J",
                                 "a\xe2\x80\xa8"
                                 "b",
                                 "\xc0\x8a", "', told 'nothing'\n", "\xe2\x80\x8b", "\x7f\x08\x08", "\xff\xfe"}) {
    Proposal p = proposal();
    p.set_purpose(text);
    p.set_options(text);
    p.set_estimator(text);
    p.mutable_plan(0)->set_label(text);
    const std::string said = words(p);
    EXPECT_EQ(static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n')), lines) << text;
    EXPECT_THAT(said, Not(HasSubstr(text))) << "as it came";
    for (const char byte : said) {
      EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 0x20) << static_cast<int>(byte);
      EXPECT_NE(byte, '\x7f');
    }
    EXPECT_THAT(said, HasSubstr("  Costs      epsilon 0."));
  }
}

TEST_F(Consent, LongPlansAreToldInFull) {
  Proposal p = proposal();
  for (int i = 0; i < 200; ++i) add(p, Kind::GRAM, "g", 0.001);
  add(p, Kind::SQUARED_NORMS, "hidden at the end", 0.1);
  p.set_epsilon(1.5);
  own_.policy.most_epsilon = 1.5;
  const std::string said = words(p);
  EXPECT_THAT(said, HasSubstr("and 141 more of gram: noise of at least 1e+03 times"));
  EXPECT_THAT(said, HasSubstr("and 1 more of squared_norms: noise of at least 10 times"));
  EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 100);
}

}  // namespace
}  // namespace eigenveil::federation
