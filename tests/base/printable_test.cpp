// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/printable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace eigenveil {
namespace {

using testing::EndsWith;
using testing::Not;

TEST(Printable, OrdinaryTextOfAnyScriptStaysAsItIs) {
  for (const char* text : {"", "heart study 2026", "Größe", "Αθήνα", "Москва", "東京", "한국어", "हिन्दी", "ไทย", "שלום",
                           "مستشفى", "a+b=c €5 (½)", "naïve's \"quote\""})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, NothingMovesTheCursorOrBeginsALine) {
  EXPECT_EQ(printable("a\nb"), "a\\x0ab");
  EXPECT_EQ(printable("\x1b[2J\x1b[H"), "\\x1b[2J\\x1b[H");
  EXPECT_EQ(printable("\r\t\b\x7f"), "\\x0d\\x09\\x08\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u{009b}2J");  // the one-character escape of C1
  EXPECT_EQ(printable("\xe2\x80\xa8\xe2\x80\xa9\xc2\x85"), "\\u{2028}\\u{2029}\\u{0085}");  // separators, next line
}

TEST(Printable, NothingIsInvisibleOrChangesTheOrder) {
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc\xe2\x81\xa6"),
            "\\u{202e}abc\\u{2066}");  // bidirectional override, isolate
  EXPECT_EQ(printable("a\xe2\x80\x8b\xef\xbb\xbf\xc2\xad"),
            "a\\u{200b}\\u{feff}\\u{00ad}");  // zero width, mark, hyphen
  EXPECT_EQ(printable("\xc2\xa0\xe3\x80\x80\xe2\xa0\x80\xe3\x85\xa4"),
            "\\u{00a0}\\u{3000}\\u{2800}\\u{3164}");                            // blanks
  EXPECT_EQ(printable("\xf3\xa0\x81\x81\xee\x80\x80"), "\\u{e0041}\\u{e000}");  // tag letter, private use
  EXPECT_EQ(printable("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(Printable, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a");                    // an overlong newline
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");           // an overlong escape
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(printable("a\xe2\x82"), "a\\xe2\\x82");                  // cut off
}

TEST(Printable, LinesOfAPageKeepWhatAProgramIsWrittenWithAndNothingElse) {
  const std::string program = "for x in y:\n\tprint('\\n', x) \\\n";
  EXPECT_EQ(printable_lines(program), program);
  EXPECT_EQ(printable_lines(std::string(100'000, 'a')), std::string(100'000, 'a'));
  for (const char* text : {"\r\b\x1b\x7f", "\xe2\x80\xae", "\xe2\x81\xa6", "\xc2\x80\xc2\x9f", "\xe2\x80\xa8", "\xff",
                           "\xc2\xa0\xe2\x80\x8b", "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"})
    EXPECT_EQ(printable_lines(text), printable(text));
}

TEST(Printable, DifferentTextsLookDifferent) {
  EXPECT_EQ(printable("\\x0a"), "\\\\x0a");
  EXPECT_NE(printable("\\x0a"), printable("\n"));
  EXPECT_EQ(quote("it's"), "'it\\'s'");
  EXPECT_NE(quote("a', 'b"), quote("a") + ", " + quote("b"));
}

TEST(Printable, MarksDoNotPileUpNorChangeWhatStandsBefore) {
  const std::string mark = "\xcc\x81";
  EXPECT_EQ(printable("e" + mark), "e" + mark);
  EXPECT_EQ(printable(mark + "e"), "\\u{0301}e");
  EXPECT_EQ(printable("e" + mark + mark + mark + mark + mark + "x"), "e" + mark + mark + mark + mark + "\\u{0301}x");
}

TEST(Printable, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde... (1 bytes more)");
  EXPECT_EQ(printable("abc\n", 5), "abc... (1 bytes more)");
  EXPECT_EQ(printable("\xe6\x9d\xb1\xe6\x9d\xb1", 5), "\xe6\x9d\xb1... (3 bytes more)");
  EXPECT_LT(printable(std::string(60'000'000, '\x1b')).size(), kShownBytes + 40);
}

// Whatever the bytes are: one line, no control byte, and once more changes nothing but backslashes.
TEST(Printable, RandomBytesAreOnePieceOfALine) {
  std::mt19937 random(20261117);
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 24, '\0');
    for (char& byte : text) byte = static_cast<char>(random() % 4 == 0 ? 0xe2 : random());
    const std::string seen = printable(text, 1000);
    for (const char byte : seen) {
      EXPECT_GE(static_cast<unsigned char>(byte), 0x20);
      EXPECT_NE(byte, '\x7f');
    }
    EXPECT_THAT(seen, Not(EndsWith("bytes more)")));
    std::string doubled;
    for (const char byte : seen) doubled += byte == '\\' ? "\\\\" : std::string(1, byte);
    EXPECT_EQ(printable(seen, 1000), doubled);
  }
}

}  // namespace
}  // namespace eigenveil
