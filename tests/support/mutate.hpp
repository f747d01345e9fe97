// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace eigenveil::test {

/// Changes messages at random places to what a hostile peer would write there: numeric extremes, unknown values of
/// enums, texts that forge, fields that are missing, repeated or out of order.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  void mutate(google::protobuf::Message& message) {
    using Field = google::protobuf::FieldDescriptor;
    const auto* type = message.GetDescriptor();
    if (type->field_count() == 0) return;
    const Field* field = type->field(pick(type->field_count()));
    const auto* of = message.GetReflection();
    if (field->is_repeated()) return mutate_list(message, *field);
    if (pick(12) == 0) return of->ClearField(&message, field);
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return of->SetInt32(&message, field, static_cast<std::int32_t>(integer()));
      case Field::CPPTYPE_INT64:
        return of->SetInt64(&message, field, static_cast<std::int64_t>(integer()));
      case Field::CPPTYPE_UINT32:
        return of->SetUInt32(&message, field, static_cast<std::uint32_t>(integer()));
      case Field::CPPTYPE_UINT64:
        return of->SetUInt64(&message, field, integer());
      case Field::CPPTYPE_DOUBLE:
        return of->SetDouble(&message, field, number(of->GetDouble(message, field)));
      case Field::CPPTYPE_BOOL:
        return of->SetBool(&message, field, !of->GetBool(message, field));
      case Field::CPPTYPE_ENUM:
        return of->SetEnumValue(&message, field, static_cast<int>(pick(16)) - 1);
      case Field::CPPTYPE_STRING:
        return of->SetString(&message, field, text());
      case Field::CPPTYPE_MESSAGE:
        return mutate(*of->MutableMessage(&message, field));
      default:
        return;
    }
  }

  std::size_t pick(std::size_t below) { return random_() % below; }
  int pick(int below) { return static_cast<int>(pick(static_cast<std::size_t>(below))); }

 private:
  void mutate_list(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field) {
    using Field = google::protobuf::FieldDescriptor;
    const auto* of = message.GetReflection();
    const int size = of->FieldSize(message, &field);
    if (size > 0 && pick(4) == 0) return of->RemoveLast(&message, &field);
    if (size > 1 && pick(4) == 0) return of->SwapElements(&message, &field, 0, pick(size));
    if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (size > 0 && pick(3) > 0) return mutate(*of->MutableRepeatedMessage(&message, &field, pick(size)));
      auto* added = of->AddMessage(&message, &field);
      if (size > 0) added->CopyFrom(of->GetRepeatedMessage(message, &field, pick(size)));
    } else if (field.cpp_type() == Field::CPPTYPE_STRING) {
      of->AddString(&message, &field, text());
    } else if (field.cpp_type() == Field::CPPTYPE_DOUBLE) {
      of->AddDouble(&message, &field, number(1));
    }
  }

  std::uint64_t integer() {
    static constexpr std::uint64_t kValues[] = {
        0,          1,          2,          3,          4,          5,          255,        511,
        512,        513,        9999,       10000,      10001,      0x7fffffff, 0x80000000, 1800000001,
        1802592000, 1802592001, 0xfffffffd, 0xfffffffe, 0xffffffff, 1ULL << 63, ~0ULL,      (1ULL << 63) - 1};
    return kValues[pick(std::size(kValues))];
  }
  double number(double before) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double values[] = {0,
                             -0.0,
                             1,
                             -1,
                             0.01,
                             0.1,
                             2,
                             1e-300,
                             5e-324,
                             1e308,
                             kInf,
                             -kInf,
                             std::numeric_limits<double>::quiet_NaN(),
                             before,
                             before * 2,
                             before / 2,
                             -before};
    return values[pick(std::size(values))];
  }
  std::string text() {
    static const std::vector<std::string> kTexts = {"",
                                                    "a",
                                                    "covariance",
                                                    "label",
                                                    "sex",
                                                    "hiv",
                                                    "replace-one",
                                                    "add-remove-one",
                                                    "tight",
                                                    "spare rounds",
                                                    "\n  Costs      epsilon 0.001",
                                                    "\x1b[2J\x1b[H",
                                                    "\xe2\x80\xae",
                                                    "\xc2\x9b"
                                                    "A",
                                                    "\xc0\x8a",
                                                    "coordinator",
                                                    std::string(200, 'x'),
                                                    std::string(201, 'x'),
                                                    std::string(501, 'y'),
                                                    std::string(16, '\0'),
                                                    std::string(64, '0')};
    return kTexts[pick(kTexts.size())];
  }

  std::mt19937_64 random_;
};

}  // namespace eigenveil::test
