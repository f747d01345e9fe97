// SPDX-License-Identifier: Apache-2.0
// Version 2 as published: bytes that other versions of this program have written and will write.
// EIGENVEIL_WRITE_GOLDEN=1 writes the files that are not there yet; those that are there never change.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/support/temp_dir.hpp"
#include "tests/wire/examples.hpp"

namespace eigenveil::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

std::string golden(const std::string& name) {
  return std::string(EIGENVEIL_SOURCE_DIR) + "/tests/wire/version2/" + name + ".bin";
}

template <class Kind>
void compare_with_golden(const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    SCOPED_TRACE(example.name);
    const auto expected = from_text<Kind>(example.text);
    const std::string path = golden(example.name);
    if (std::getenv("EIGENVEIL_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
      std::ofstream out(path, std::ios::binary);
      out << expected.SerializeAsString();
    }
    Kind read;
    ASSERT_TRUE(read.ParseFromString(read_file(path)));
    std::string difference;
    MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(expected, read)) << difference;
  }
}

TEST(Version2, EveryMessageToASiteReadsAsItWasWritten) { compare_with_golden<wire::v2::ToSite>(to_site_examples()); }

TEST(Version2, EveryMessageFromASiteReadsAsItWasWritten) {
  compare_with_golden<wire::v2::FromSite>(from_site_examples());
}

TEST(Version2, EveryMessageThatIsHashedReadsAsItWasWritten) {
  compare_with_golden<wire::v2::Proposal>(proposal_examples());
  compare_with_golden<wire::v2::Ask>(ask_examples());
  compare_with_golden<wire::v2::Roster>(roster_examples());
  compare_with_golden<wire::v2::AcceptStatement>(statement_examples());
}

void collect(const Message& message, std::set<std::string>& seen) {
  std::vector<const FieldDescriptor*> fields;
  const auto* reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    seen.insert(field->full_name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
      seen.insert(reflection->GetEnum(message, field)->full_name());
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) collect(reflection->GetMessage(message, field), seen);
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
      collect(reflection->GetRepeatedMessage(message, field, i), seen);
  }
}

void expect_all(const google::protobuf::EnumDescriptor& type, const std::set<std::string>& seen) {
  for (int v = 1; v < type.value_count(); ++v)  // 0 is what an absent field means
    EXPECT_TRUE(seen.contains(type.value(v)->full_name())) << type.value(v)->full_name();
}

TEST(Version2, EveryFieldAndChoiceHasAnExample) {
  std::set<std::string> seen;
  for (const Example& example : to_site_examples()) collect(from_text<wire::v2::ToSite>(example.text), seen);
  for (const Example& example : from_site_examples()) collect(from_text<wire::v2::FromSite>(example.text), seen);
  for (const Example& example : proposal_examples()) collect(from_text<wire::v2::Proposal>(example.text), seen);
  for (const Example& example : ask_examples()) collect(from_text<wire::v2::Ask>(example.text), seen);
  for (const Example& example : roster_examples()) collect(from_text<wire::v2::Roster>(example.text), seen);
  for (const Example& example : statement_examples()) collect(from_text<wire::v2::AcceptStatement>(example.text), seen);
  const auto* file = wire::v2::ToSite::descriptor()->file();
  for (int m = 0; m < file->message_type_count(); ++m) {
    const auto* type = file->message_type(m);
    for (int f = 0; f < type->field_count(); ++f)
      EXPECT_TRUE(seen.contains(type->field(f)->full_name()))
          << type->field(f)->full_name()
          << " is in no example: add one with a new name to tests/wire/examples.hpp, and "
          << "run this program once with EIGENVEIL_WRITE_GOLDEN=1";
    for (int e = 0; e < type->enum_type_count(); ++e) expect_all(*type->enum_type(e), seen);
  }
  for (int e = 0; e < file->enum_type_count(); ++e) expect_all(*file->enum_type(e), seen);
}

TEST(Version2, TheServiceKeepsItsName) {
  const auto* service = wire::v2::ToSite::descriptor()->file()->FindServiceByName("Coordinator");
  ASSERT_NE(service, nullptr);
  ASSERT_NE(service->FindMethodByName("Join"), nullptr);
  EXPECT_EQ(service->FindMethodByName("Join")->full_name(), "eigenveil.wire.v2.Coordinator.Join");
}

}  // namespace
}  // namespace eigenveil::test
