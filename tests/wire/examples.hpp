// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "wire.pb.h"

namespace eigenveil::test {

/// A message of version 2 in words, and its bytes in tests/wire/version2/NAME.bin. The words use field names and the
/// bytes use field numbers, so a number that changes tells the two apart. Neither changes once it is published.
struct Example {
  const char* name;
  const char* text;
};

inline const std::vector<Example>& proposal_examples() {
  static const std::vector<Example> examples = {
      {"proposal-secure", R"(
         version: 2 study: "0123456789abcdef" not_after: 1800000000 estimator: "fda" options: "fda --components 1"
         purpose: "first look"
         rows { columns { name: "age" bounded: true lower: -1.5 upper: 120 }
                columns { name: "sex" values: "F" values: "M" values: "?" other: 2 }
                row_bound: 2.5 center: CENTER_PRIVATE zero_missing: true
                class_column { column: "ill" classes: "yes" classes: "no" drop_unlisted: true } radius: 2.5 bits: 20 }
         adjacency: "replace-one" unit: "patient" sites_per_person: 1 aggregation: SECURE
         sites { name: "a" key_hash: "00ff" } sites { name: "b" key_hash: "11ee" } shares: 2 colluders: 1 lost: 1
         plan { label: "mean" kind: CLASS_SUMS rows: 3 columns: 4 grid: 5 classes: 2 mu: 0.125 count: 3 }
         spares: 2 spare_mu: 0.125 epsilon: 1.25 delta: 1e-6 accounting: "tight")"},
      {"proposal-local", R"(
         version: 2 study: "ff" estimator: "sir"
         rows { columns { name: "x" bounded: true lower: 0 upper: 1 } center: CENTER_RANGE
                class_column { column: "y" cuts: 0.25 cuts: 0.75 } }
         epsilon: 2 delta: 1e-5 adjacency: "add-remove-one" accounting: "zcdp" shares: 1)"},
      {"proposal-kinds",
       R"(plan { label: "0" kind: GRAM } plan { label: "1" kind: APPLY } plan { label: "2" kind: CLASS_SUMS } plan { label: "3" kind: CLASS_COUNTS } plan { label: "4" kind: SQUARED_NORMS } plan { label: "5" kind: PROJECTED_GRAM } plan { label: "6" kind: SOFTMAX_GRADIENT } plan { label: "7" kind: NORM_COUNTS } plan { label: "8" kind: SEARCH } plan { label: "9" kind: PRODUCT } plan { label: "10" kind: RECENTER } plan { label: "11" kind: MAP })"},
      {"proposal-response", R"(
         version: 2 estimator: "regress" rows { columns { name: "x" bounded: true lower: 0 upper: 1 }
                columns { name: "y" bounded: true lower: -1 upper: 1 } response { column: "y" weight: 0.75 constant: 1.5 } })"},
      {"proposal-people", R"(version: 2 unit: "person" people { least_rows: 20 most_rows: 50 missing_is_own: true })"},
      {"proposal-mean",
       R"(version: 2 rows { columns { name: "x" bounded: true lower: 0 upper: 1 } center: CENTER_MEAN })"},
      {"proposal-missing-value", R"(
         version: 2 rows { columns { name: "x" bounded: true lower: 0 upper: 1 missing_value: 0.25 }
                columns { name: "sex" values: "F" values: "M" missing_index: 2 weight: 1.5 } missing: MISSING_VALUE })"},
      {"proposal-missing-category", R"(
         version: 2 rows { columns { name: "sex" values: "F" values: "missing" missing_index: 1 } missing: MISSING_CATEGORY })"},
      {"proposal-free", R"(version: 2 rows { columns { name: "x" } columns { name: "y" } row_bound: 1 })"}};
  return examples;
}

inline const std::vector<Example>& roster_examples() {
  static const std::vector<Example> examples = {
      {"roster", R"(study: "ff" accepts { statement: "\001\377\000k" signature: "s\000" certificate: "PEM" })"}};
  return examples;
}

inline const std::vector<Example>& statement_examples() {
  static const std::vector<Example> examples = {
      {"accept-statement", R"(proposal: "h" site: "a" role: "site" x25519: "k" rows: 5000000000)"}};
  return examples;
}

inline const std::vector<Example>& ask_examples() {
  static const std::vector<Example> examples = {
      {"ask-gram", R"(study: "ff" number: 1 prev: "h" label: "gram" sum { gram {} })"},
      {"ask-apply", R"(study: "ff" number: 2 label: "power"
         sum { apply { x { rows: 2 columns: 1 scaled: 629145 scaled: -838860 } } } among: "a" among: "b" repeats: 1)"},
      {"ask-score-counts", R"(number: 14 sum { score_counts {
         x { rows: 2 columns: 2 scaled: 524288 scaled: 0 scaled: 0 scaled: 524288 } first: -0.5 first: 0.5 second: 0 classes: 3 } })"},
      {"ask-narrow", R"(number: 3 sum { gram {} } narrow: true)"},
      {"ask-class-sums", R"(number: 3 sum { class_sums { classes: 4 } })"},
      {"ask-class-counts", R"(number: 4 sum { class_counts { classes: 5 } })"},
      {"ask-squared-norms", R"(number: 5 sum { squared_norms {} })"},
      {"ask-projected-gram", R"(number: 6
         sum { projected_gram { x { rows: 2 columns: 1 scaled: 629145 scaled: 838860 } radius: 0.75 } })"},
      {"ask-exceedance", R"(number: 7
         exceedance { grid: 0.5 grid: 1.5 x { rows: 1 columns: 1 scaled: -1048576 } })"},
      {"ask-search", R"(number: 8 search { x { rows: 1 columns: 1 scaled: 1048576 } grid: 0.25 grid: 1 drop: true })"},
      {"ask-product", R"(number: 9 product { x { rows: 1 columns: 1 scaled: 1048576 } grid: 0.25 grid: 1 } chosen: 1)"},
      {"ask-recenter", R"(number: 10 recenter { mean: 0.5 mean: -0.25 radius: 1.5 })"},
      {"ask-softmax-gradient", R"(number: 11
         sum { softmax_gradient { w { rows: 1 columns: 2 values: 0.5 values: -1.5 } clip: 0.25 } })"},
      {"ask-map", R"(number: 12 recenter { map { rows: 1 columns: 1 values: 3 } radius: 1.5 })"}};
  return examples;
}

inline const std::vector<Example>& to_site_examples() {
  static const std::vector<Example> examples = {
      {"to-proposal", R"(proposal { proposal: "p" signature: "s" certificate: "PEM" })"},
      {"to-roster", R"(roster: "r")"},
      {"to-ask", R"(ask: "q")"},
      {"to-refusal", R"(refusal { reason: "an older version" })"},
      {"to-finish", R"(finish { study: "ff" })"}};
  return examples;
}

inline const std::vector<Example>& from_site_examples() {
  static const std::vector<Example> examples = {
      {"from-hello", R"(hello { version: 2 software: "eigenveil 0.2.0" })"},
      {"from-accept", R"(accept { statement: "a" signature: "s" certificate: "PEM" })"},
      {"from-standing", R"(standing { study: "ff" last: 3 head: "h" })"},
      {"from-refusal", R"(refusal { reason: "too much epsilon" code: 4 })"},
      {"from-answer-narrow", R"(answer { study: "ff" number: 3 rows: 2 columns: 1 entries: 2 narrow: true })"},
      {"from-answer",
       R"(answer { study: "ff" number: 3 head: "h" rows: 2 columns: 2 symmetric: true shift: -3 entries: 3
         from: "a" })"},
      {"from-part", R"(part { values: "0123456789abcde\377" })"}};
  return examples;
}

template <class Message>
Message from_text(const char* text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) throw std::runtime_error(text);
  return message;
}

}  // namespace eigenveil::test
