// SPDX-License-Identifier: Apache-2.0
#include "src/release/html.hpp"

#include <gtest/gtest.h>

namespace eigenveil::html {
namespace {

TEST(Html, TextsEndNeitherAnElementNorAnAttribute) {
  EXPECT_EQ(escape("<b a=\"1\" c='2'>&amp;"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape("f(\\\n\tx)"), "f(\\\n\tx)");
  EXPECT_EQ(escape("Größe ε שלום 東京"), "Größe ε שלום 東京");
}

TEST(Html, TextsHideNothingAndTurnNothingRound) {
  for (const auto make : {escape, name}) {
    EXPECT_NE(make("a\xe2\x80\xae"
                   "b")
                  .find("a\\u{202e}b"),
              std::string::npos);
    EXPECT_NE(make("\xe2\x81\xa6\xe2\x81\xa9").find("\\u{2066}\\u{2069}"), std::string::npos);
    EXPECT_NE(make("\xc2\x80\xc2\x85\xc2\x9f").find("\\u{0080}\\u{0085}\\u{009f}"), std::string::npos);
    EXPECT_NE(make("\x1b\x7f\r\xff").find("\\x1b\\x7f\\x0d\\xff"), std::string::npos);
  }
}

}  // namespace
}  // namespace eigenveil::html
