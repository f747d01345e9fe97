#pragma once

#include <google/protobuf/text_format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "wire.pb.h"

namespace eigenveil::test {

/// A message of version 1 in words, and its bytes in tests/wire/version1/NAME.bin. The words use field names and the
/// bytes use field numbers, so a number that changes tells the two apart. Neither changes once it is published.
struct Example {
  const char* name;
  const char* text;
};

inline const std::vector<Example>& to_site_examples() {
  static const std::vector<Example> examples = {
      {"to-proposal-secure", R"(proposal {
         version: 1 study: "0123456789abcdef0123456789abcdef" estimator: "fda" purpose: "first look"
         rows { columns { name: "age" bounded: true lower: -1.5 upper: 120 }
                columns { name: "sex" values: "F" values: "M" values: "?" other: 2 }
                row_bound: 2.5 center: CENTER_PRIVATE zero_missing: true
                class_column { column: "ill" classes: "yes" classes: "no" drop_unlisted: true } }
         epsilon: 1.25 delta: 1e-6 adjacency: "replace-one" accounting: "tight"
         plan { events { label: "mean" gaussian_mu: 0.125 count: 3 } events { label: "bound" pure_epsilon: 0.5 count: 1 } }
         aggregation: SECURE sites: "a" sites: "b" tolerate: 1 spare_rounds: 2 })"},
      {"to-proposal-local", R"(proposal {
         version: 1 study: "ff" estimator: "sir"
         rows { columns { name: "x" bounded: true lower: 0 upper: 1 } center: CENTER_RANGE
                class_column { column: "y" cuts: 0.25 cuts: 0.75 } }
         epsilon: 2 delta: 1e-5 adjacency: "add-remove-one" accounting: "zcdp"
         plan { events { label: "gram" gaussian_mu: 0.5 count: 1 } } sites: "a" })"},
      {"to-proposal-free",
       R"(proposal { version: 1 rows { columns { name: "x" } columns { name: "y" } row_bound: 1 } })"},
      {"to-roster",
       R"(roster { study: "ff" keys { site: "a" x25519: "\001\377\000k" signature: "s\000" certificate: "PEM" } })"},
      {"to-ask-gram", R"(ask { study: "ff" number: 1 label: "gram" sum { gram {} } mu: 0.5 })"},
      {"to-ask-apply", R"(ask { study: "ff" number: 2 label: "power"
         sum { apply { x { rows: 2 columns: 1 scaled: 629145 scaled: -838860 } } } mu: 0.25 among: "a" among: "b" repeats: 1 })"},
      {"to-ask-narrow", R"(ask { number: 3 sum { gram {} } mu: 1 narrow: true })"},
      {"to-ask-class-sums", R"(ask { number: 3 sum { class_sums { classes: 4 } } mu: 1 })"},
      {"to-ask-class-counts", R"(ask { number: 4 sum { class_counts { classes: 5 } } mu: 1 })"},
      {"to-ask-squared-norms", R"(ask { number: 5 sum { squared_norms {} } mu: 1 })"},
      {"to-ask-projected-gram", R"(ask { number: 6
         sum { projected_gram { x { rows: 2 columns: 1 scaled: 629145 scaled: 838860 } radius: 0.75 } } mu: 1 })"},
      {"to-ask-exceedance", R"(ask { number: 7
         exceedance { grid: 0.5 grid: 1.5 x { rows: 1 columns: 1 scaled: -1048576 } } epsilon: 0.5 })"},
      {"to-ask-search", R"(ask { number: 8
         search { x { rows: 1 columns: 1 scaled: 1048576 } grid: 0.25 grid: 1 drop: true } epsilon: 0.5 })"},
      {"to-ask-product", R"(ask { number: 9
         product { x { rows: 1 columns: 1 scaled: 1048576 } grid: 0.25 grid: 1 } mu: 0.5 chosen: 1 })"},
      {"to-ask-recenter", R"(ask { number: 10 recenter { mean: 0.5 mean: -0.25 radius: 1.5 } })"},
      {"to-ask-softmax-gradient", R"(ask { number: 11
         sum { softmax_gradient { w { rows: 1 columns: 2 values: 0.5 values: -1.5 } clip: 0.25 } } mu: 1 })"},
      {"to-ask-map", R"(ask { number: 12 recenter { map { rows: 1 columns: 1 values: 3 } radius: 1.5 } })"},
      {"to-refusal", R"(refusal { reason: "an older version" })"},
      {"to-finish", R"(finish { study: "ff" })"}};
  return examples;
}

inline const std::vector<Example>& from_site_examples() {
  static const std::vector<Example> examples = {
      {"from-hello", R"(hello { version: 1 software: "eigenveil 0.1.0" })"},
      {"from-accept", R"(accept { study: "ff" rows: 5000000000 columns: 7
         mask_key { site: "a" x25519: "k" signature: "s" certificate: "PEM" } })"},
      {"from-refusal", R"(refusal { reason: "too much epsilon" })"},
      {"from-refusal-code", R"(refusal { reason: "too much epsilon" code: 4 })"},
      {"from-answer-narrow", R"(answer { study: "ff" number: 3 rows: 2 columns: 1 entries: 2 narrow: true })"},
      {"from-answer", R"(answer { study: "ff" number: 3 rows: 2 columns: 2 symmetric: true shift: -3 entries: 3 })"},
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
