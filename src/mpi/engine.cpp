// SPDX-License-Identifier: Apache-2.0
#include "comm.hpp"
#include "eigenveil/wire/convert.hpp"
#include "joint.hpp"
#include "state.hpp"

namespace eigenveil::mpi {
namespace {

// Tells the other ranks what to do, and does rank 0's part of it. An exception leaves `asking` set: nobody knows then
// which exchange the others are waiting in.
template <class Work>
auto together(const wire::v2::RankCommand& command, const Work& work) {
  state().asking = true;
  broadcast(command.SerializeAsString());
  auto answer = work();
  state().asking = false;
  return answer;
}

class MpiSums final : public RowSums {
 public:
  explicit MpiSums(OwnShare share) : rows_(std::move(share.rows)), all_(share.diagnostics.rows) {}

  const BoundedRows& here() const override { return rows_; }
  std::size_t rows() const override { return all_; }

  bool alone() const override { return ranks() == 1; }

  Result<PrivateSum> sum(const SumQuery& query, Adjacency adjacency) override {
    wire::v2::RankCommand command;
    *command.mutable_sum() = to_wire(query);
    return together(command, [&] { return joint_sum(query, rows_, adjacency); });
  }
  Result<PrivateCounts> counts(const NormExceedance& query) override {
    wire::v2::RankCommand command;
    *command.mutable_counts() = to_wire(query);
    return together(command, [&] { return joint_counts(query, rows_); });
  }
  Result<FilteredCells> cells(const FilteredApply& query) override {
    wire::v2::RankCommand command;
    *command.mutable_cells() = to_wire(query);
    return together(command, [&] { return joint_cells(query, rows_); });
  }
  Status recenter(const Vector& mean, RowBound radius) override {
    wire::v2::RankCommand command;
    *command.mutable_recenter() = to_wire(mean, radius);
    return together(command, [&] { return joint_recenter({mean, radius, {}}, rows_); });
  }
  Status remap(const LinearMap& M, RowBound radius) override {
    wire::v2::RankCommand command;
    *command.mutable_recenter() = to_wire(M, radius);
    return together(command, [&] { return joint_recenter({{}, radius, M}, rows_); });
  }

 private:
  BoundedRows rows_;
  std::size_t all_;
};

class MpiEngine final : public Engine {
 public:
  Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, OpenedData& opened, const RunOptions& run,
                                         std::size_t reserved, Observer& observer) override {
    auto shared = EIGENVEIL_TRY(share_rows(options, opened, run, reserved, observer));
    return own_rows(std::move(shared.sums), shared.diagnostics);
  }
};

wire::v2::RankPairs pairs_message(const PairReading& reading, const PairInputs& inputs) {
  wire::v2::RankPairs message;
  message.set_x(reading.files.x);
  message.set_y(reading.files.y);
  message.set_images(reading.files.images);
  message.set_captions(reading.files.captions);
  message.set_labels(reading.files.labels);
  message.set_class_names(reading.files.class_names);
  message.set_prompts(reading.files.prompts);
  message.set_x_fields(reading.files.x_fields);
  message.set_y_fields(reading.files.y_fields);
  message.set_image_encoder(reading.encoders.image_encoder);
  message.set_text_encoder(reading.encoders.text_encoder);
  if (const auto& shape = reading.encoders.image_shape) {
    message.set_height(shape->first);
    message.set_width(shape->second);
  }
  message.set_channels(reading.encoders.channels.value_or(0));
  message.set_kept(reading.encoders.kept);
  message.set_person(reading.files.person);
  message.set_lower(reading.encoders.lower);
  message.set_upper(reading.encoders.upper);
  if (inputs.basis) {
    const Matrix& B = inputs.basis->basis;
    message.set_directions(static_cast<std::uint64_t>(B.cols()));
    for (const double value : inputs.basis->mean) message.add_basis(value);
    for (const double value : B.reshaped()) message.add_basis(value);
  }
  return message;
}

wire::v2::RankRead read_message(const RowOptions& options, const OpenedData& opened, const RunOptions& run,
                                std::size_t reserved) {
  wire::v2::RankRead message;
  if (options.pairs) {
    *message.mutable_pairs() = pairs_message(*options.pairs, *opened.pairs);
    message.mutable_pairs()->set_zero_missing(options.missing == MissingPolicy::kZeroRow);
  } else {
    *message.mutable_rows() = to_wire(options, opened);
  }
  if (options.person) {
    auto* people = message.mutable_people();
    people->set_column(opened.person);
    const PersonColumn::Key& key = opened.read_with.person->key;
    people->set_key(std::string(key.begin(), key.end()));
    people->set_least_rows(options.person->least_rows);
    people->set_missing_is_own(options.person->missing_is_own);
    people->set_most_rows(options.person->most_rows.value_or(0));
    if (run.insecure_seed) people->set_insecure_seed(*run.insecure_seed);
  }
  message.set_data(options.data);
  message.set_header(opened.read_with.header == HeaderRule::kYes  ? wire::v2::RankRead::YES
                     : opened.read_with.header == HeaderRule::kNo ? wire::v2::RankRead::NO
                                                                  : wire::v2::RankRead::UNSTATED);
  message.set_delimiter(static_cast<unsigned char>(opened.read_with.delimiter));
  message.set_fields(opened.read_with.fields);
  message.set_member(options.source.member);
  message.set_memory(run.memory);
  message.set_reserved(reserved);
  message.set_threads(static_cast<std::uint32_t>(thread_count(run)));
  return message;
}

}  // namespace

std::shared_ptr<Engine> engine() { return std::make_shared<MpiEngine>(); }

Result<SharedRows> share_rows(const RowOptions& options, const OpenedData& opened, const RunOptions& run,
                              std::size_t reserved, Observer& observer) {
  if (!state().running) return internal_error("the MPI engine works within mpi::run only");
  for (const std::string& path : options.pairs ? private_files(options.pairs->files) : std::vector{options.data})
    if (is_pipe(path))
      return usage_error(path + ": is a pipe, which one process reads alone: copy it to a file, or use no MPI");
  wire::v2::RankCommand command;
  *command.mutable_read() = read_message(options, opened, run, reserved);
  const auto read = [&] { return together(command, [&] { return joint_read(command.read(), observer); }); };

  command.mutable_read()->set_cut_text(!options.pairs && is_plain_text(options.data));
  auto share = read();
  // A cut may have fallen inside quotes; and an error must be told with its row number, which a cut text does not know.
  if (!share && share.error().code == ErrorCode::kBadInput && command.read().cut_text()) {
    command.mutable_read()->set_cut_text(false);
    share = read();
  }
  if (!share) return share.error();
  const BoundingDiagnostics diagnostics = share->diagnostics;
  if (options.person && diagnostics.rows >= (std::size_t{1} << 31)) return bad_input("there are 2^31 people or more");
  return SharedRows{std::make_unique<MpiSums>(*std::move(share)), diagnostics};
}

}  // namespace eigenveil::mpi
