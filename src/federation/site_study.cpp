#include "eigenveil/federation/site_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "../release/atomic_file.hpp"
#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

std::string folder_of(const SiteConfig& config, const std::string& study) {
  return (std::filesystem::path(config.state) / ("study-" + study)).string();
}

bool same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// A study that ended badly stays ended, across restarts.
std::optional<Error> how_it_ended(const std::string& folder) {
  std::ifstream in(folder + "/ended.txt");
  if (!in) return std::nullopt;
  int code = 0;
  std::string why;
  in >> code;
  in.ignore(1);
  std::getline(in, why);
  return Error{static_cast<ErrorCode>(code), why};
}

Result<MaskPair> keys_in(const std::string& folder) {
  const std::string path = folder + "/mask.key";
  std::ifstream in(path, std::ios::binary);
  if (in) return MaskPair::from_secret(std::string(std::istreambuf_iterator<char>(in), {}));
  MaskPair pair = MaskPair::draw();
  EIGENVEIL_TRY(write_secret_file(path, pair.secret));
  return pair;
}

// `begun`: the state folder knows the study. One that only the ledger knows has lost its answers, and others in their
// place would be a second set of answers for one charge.
Result<std::unique_ptr<Reservation>> pay(const SiteConfig& config, const wire::v1::Proposal& proposal,
                                         const Accepted& accepted, bool begun) {
  if (config.without_ledger) return reserve_without_ledger(accepted.plan);
  auto ledger = Ledger::open(config.ledger.empty() ? Ledger::default_path() : config.ledger);
  if (!ledger) return ledger.error();
  auto paid = ledger->begin_work(config.dataset, accepted.plan,
                                 fmt::format("study {}: {}", proposal.study(), proposal.purpose()),
                                 "study " + proposal.study(), {});
  if (!paid) return paid.error();
  if (!paid->fresh && !begun) {
    EIGENVEIL_TRY(paid->work->close(WorkState::kLost));
    return budget_refused(
        fmt::format("the ledger has paid for study {} before, but {} does not know what was answered: have a new study "
                    "proposed",
                    proposal.study(), config.state));
  }
  return std::unique_ptr<Reservation>(std::move(paid->work));
}

bool gaussian(const wire::v1::Ask& ask) { return ask.has_sum() || ask.has_product(); }

}  // namespace

Result<std::unique_ptr<SiteStudy>> SiteStudy::open(const SiteConfig& config, const wire::v1::Proposal& proposal,
                                                   const Approve& approve, Observer& observer) {
  auto accepted = check_proposal(proposal, config);
  if (!accepted) return accepted.error();
  const std::string folder = folder_of(config, proposal.study());
  if (const auto ended = how_it_ended(folder)) return *ended;
  wire::v1::Proposal before;
  const auto begun = load(folder + "/proposal.bin", before);
  if (!begun) return begun.error();
  if (*begun && !same(before, proposal)) return bad_input("it has the number of another study that was begun here");
  if (!*begun && !approve(in_words(proposal, *accepted, config)))
    return budget_refused("the person at this site said no");

  RunOptions run;
  run.threads = config.threads;
  run.memory = config.memory;
  auto rows = bound_rows(accepted->rows, run, 0, observer);
  if (!rows) return rows.error();
  EIGENVEIL_TRY(make_folder(folder));
  const std::string answers = folder + "/answers.bin";  // there before the proposal is
  if (*begun && !std::filesystem::exists(answers))
    return bad_input(answers + " is gone: bring it back, or have a new study proposed");
  auto log = AnswerLog::open(answers);
  if (!log) return log.error();
  EIGENVEIL_TRY(store(folder + "/proposal.bin", proposal));
  auto keys = keys_in(folder);
  if (!keys) return keys.error();
  observer.step("reserving budget");
  auto reservation = pay(config, proposal, *accepted, *begun);
  if (!reservation) {
    std::error_code ignored;
    if (!*begun) std::filesystem::remove(folder + "/proposal.bin", ignored);
    return reservation.error();
  }
  std::unique_ptr<SiteStudy> study(new SiteStudy(config, proposal, *std::move(accepted), *std::move(rows),
                                                 *std::move(reservation), *std::move(keys), *std::move(log)));
  EIGENVEIL_TRY(study->replay());
  return study;
}

SiteStudy::SiteStudy(const SiteConfig& config, wire::v1::Proposal proposal, Accepted accepted, BoundedRows rows,
                     std::unique_ptr<Reservation> reservation, MaskPair keys, AnswerLog log)
    : config_(config),
      proposal_(std::move(proposal)),
      accepted_(std::move(accepted)),
      rows_(std::move(rows)),
      reservation_(std::move(reservation)),
      meter_(accepted_.asked),
      random_(SecureRandom::from_kernel()),
      keys_(std::move(keys)),
      folder_(folder_of(config, proposal_.study())),
      log_(std::move(log)) {}

SiteStudy::~SiteStudy() = default;

// Brings meter and rows to where they were: what is on disk was let through before.
Status SiteStudy::replay() {
  for (std::size_t i = 0; i < log_.size(); ++i) {
    const auto stored = log_.read(i);
    if (!stored) return stored.error();
    EIGENVEIL_TRY(admit(stored->ask));
    if (stored->ask.has_recenter()) {
      const auto recentring = from_wire(stored->ask.recenter());
      if (!recentring) return recentring.error();
      EIGENVEIL_TRY(recenter(rows_, *recentring));
    } else {
      answering_ = true;
    }
  }
  return {};
}

wire::v1::Accept SiteStudy::accept() const {
  wire::v1::Accept accept;
  accept.set_study(study());
  if (accepted_.adjacency == Adjacency::kReplaceOne) accept.set_rows(rows_.rows());
  accept.set_columns(static_cast<std::uint32_t>(rows_.columns()));
  if (proposal_.aggregation() != wire::v1::Proposal::SECURE) return accept;
  const Identity& own = config_.identity;
  auto* key = accept.mutable_mask_key();
  key->set_site(own.name);
  key->set_x25519(keys_.open);
  key->set_certificate(own.certificate);
  if (const auto signature = sign(own.key, key_statement(study(), own.name, keys_.open)))
    key->set_signature(*signature);
  return accept;
}

Status SiteStudy::meet(const wire::v1::Roster& roster) {
  if (ended_) return *ended_;
  masks_.clear();
  for (const auto& key : roster.keys()) {
    if (key.site() == config_.identity.name) continue;
    if (std::find(proposal_.sites().begin(), proposal_.sites().end(), key.site()) == proposal_.sites().end())
      return end(bad_input(fmt::format("the coordinator introduced '{}', who is not in the study", key.site())));
    const auto valid = verify(config_.identity.authority, key.certificate(), key.site(),
                              key_statement(study(), key.site(), key.x25519()), key.signature());
    if (!valid)
      return end(bad_input(fmt::format("the mask key of '{}' is not its own: {}", key.site(), valid.error().message)));
    auto mask = Mask::between(keys_, config_.identity.name, key.x25519(), key.site(), study());
    if (!mask) return end(mask.error());
    masks_.emplace_back(key.site(), *std::move(mask));
  }
  return {};
}

Error SiteStudy::end(const Error& why) {
  if (!ended_) {
    ended_ = why;
    if (auto file = AtomicFile::create(folder_ + "/ended.txt")) {
      (void)file->append(fmt::format("{} {}\n", static_cast<int>(why.code), why.message));
      (void)file->commit();
    }
  }
  return *ended_;
}

Status SiteStudy::check_number(const wire::v1::Ask& ask) const {
  if (ask.study() != study()) return bad_input("the coordinator asked for another study");
  if (ask.number() == answers() + 1) return {};
  return bad_input(fmt::format("the coordinator asked number {} where {} was due", ask.number(), answers() + 1));
}

Status SiteStudy::admit_repeat(const wire::v1::Ask& ask) {
  if (ask.repeats() > answers() || !gaussian(ask))
    return bad_input("the coordinator repeats an answer that was never asked for");
  const auto failed = log_.read(ask.repeats() - 1);
  if (!failed) return failed.error();
  wire::v1::Ask first = failed->ask;
  first.set_number(ask.number());
  first.set_repeats(ask.repeats());
  *first.mutable_among() = ask.among();
  if (!same(first, ask)) return bad_input("the coordinator repeats an ask with other parameters");
  if (!accepted_.spare_mu || spares_used_ >= proposal_.spare_rounds())
    return budget_refused("the coordinator asks for a spare round that is not in the plan");
  ++spares_used_;
  mu_ = accepted_.spare_mu;
  return {};
}

Status SiteStudy::admit(const wire::v1::Ask& ask) {
  if (ask.has_recenter()) return {};
  if (ask.repeats() != 0) return admit_repeat(ask);
  const auto beyond = [](const Error& why) { return bad_input("the coordinator asks beyond the plan: " + why.message); };
  if (gaussian(ask)) {
    const auto mu = meter_.gaussian(ask.label());
    if (!mu) return beyond(mu.error());
    mu_ = *mu;
    return {};
  }
  const auto epsilon = meter_.pure(ask.label());
  if (!epsilon) return beyond(epsilon.error());
  epsilon_ = *epsilon;
  return {};
}

Result<NoisySum> SiteStudy::noisy(PrivateSum sum) {
  const bool secure = proposal_.aggregation() == wire::v1::Proposal::SECURE;
  const auto shares = secure ? static_cast<std::size_t>(proposal_.sites_size()) - proposal_.tolerate() : 1;
  return GaussianMechanism::add_noise(std::move(sum), *mu_, shares, random_);
}

Result<PrivateCounts> SiteStudy::counts_for(const wire::v1::Ask& ask) {
  if (ask.has_exceedance()) {
    const auto query = from_wire(ask.exceedance());
    if (!query) return query.error();
    EIGENVEIL_TRY(validate(*query, rows_.facts()));
    return exact_counts(*query, rows_);
  }
  const auto query = from_wire(ask.search());
  if (!query) return query.error();
  EIGENVEIL_TRY(validate(*query, rows_.facts()));
  auto cells = FilteredCells::sweep(*query, rows_);
  if (!cells) return cells.error();
  searched_ = ask.search().SerializeAsString();
  cells_ = *std::move(cells);
  return cells_->above();
}

Result<std::vector<Int128>> SiteStudy::values_for(const wire::v1::Ask& ask, wire::v1::Answer& answer) {
  const auto fill = [&](Result<NoisySum> noisy) -> Result<std::vector<Int128>> {
    if (!noisy) return noisy.error();
    answer.set_rows(static_cast<std::uint32_t>(noisy->rows()));
    answer.set_columns(static_cast<std::uint32_t>(noisy->columns()));
    answer.set_symmetric(noisy->layout() == PrivateSum::Layout::kSymmetric);
    answer.set_shift(noisy->shift());
    return std::move(*noisy).take_values();
  };
  switch (ask.kind_case()) {
    case wire::v1::Ask::kSum: {
      const auto query = from_wire(ask.sum());
      if (!query) return query.error();
      EIGENVEIL_TRY(validate(*query, rows_.facts(), accepted_.adjacency));
      auto sum = exact_sum(*query, rows_, accepted_.adjacency);
      if (!sum) return sum.error();
      return fill(noisy(*std::move(sum)));
    }
    case wire::v1::Ask::kExceedance:
    case wire::v1::Ask::kSearch: {
      const auto counts = counts_for(ask);
      if (!counts) return counts.error();
      const auto cells = NoisyHistogram::release(*counts, accepted_.adjacency, *epsilon_, random_);
      if (!cells) return cells.error();
      answer.set_rows(static_cast<std::uint32_t>((*cells)->size()));
      answer.set_columns(1);
      return std::vector<Int128>((*cells)->begin(), (*cells)->end());
    }
    case wire::v1::Ask::kProduct: {
      const auto query = from_wire(ask.product());
      if (!query) return query.error();
      EIGENVEIL_TRY(validate(*query, rows_.facts()));
      if (ask.chosen() >= query->grid.size()) return bad_input("the coordinator chose a threshold that is not there");
      if (!cells_ || searched_ != ask.product().SerializeAsString()) {
        auto cells = FilteredCells::sweep(*query, rows_);
        if (!cells) return cells.error();
        cells_ = *std::move(cells);
      }
      PrivateSum sum = cells_->sum(ask.chosen(), accepted_.adjacency);
      cells_.reset();
      return fill(noisy(std::move(sum)));
    }
    case wire::v1::Ask::kRecenter: {
      const auto recentring = from_wire(ask.recenter());
      if (!recentring) return recentring.error();
      EIGENVEIL_TRY(recenter(rows_, *recentring));
      return std::vector<Int128>();
    }
    case wire::v1::Ask::KIND_NOT_SET:
      break;
  }
  return bad_input("the coordinator asked something that this site does not know");
}

Status SiteStudy::mask(const wire::v1::Ask& ask, std::vector<Int128>& values) const {
  if (proposal_.aggregation() != wire::v1::Proposal::SECURE || !gaussian(ask)) return {};
  std::vector<std::string> among(ask.among().begin(), ask.among().end());
  std::sort(among.begin(), among.end());
  const bool twice = std::adjacent_find(among.begin(), among.end()) != among.end();
  const auto least = static_cast<std::size_t>(proposal_.sites_size()) - proposal_.tolerate();
  if (twice || among.size() < least || !std::binary_search(among.begin(), among.end(), config_.identity.name))
    return bad_input(
        fmt::format("the coordinator asks for a total over {} sites, where the noise needs {}", among.size(), least));
  for (const std::string& site : among) {
    if (site == config_.identity.name) continue;
    const auto found =
        std::find_if(masks_.begin(), masks_.end(), [&](const auto& entry) { return entry.first == site; });
    if (found == masks_.end())
      return bad_input(fmt::format("the coordinator asks for a total with '{}', whose key it never gave", site));
    found->second.apply(ask.number(), ask.narrow(), values);
  }
  return {};
}

Result<Stored> SiteStudy::answer(const wire::v1::Ask& ask) {
  if (ended_) return *ended_;
  if (ask.number() >= 1 && ask.number() <= answers()) {
    auto stored = log_.read(ask.number() - 1);
    if (!stored) return stored.error();
    if (!same(stored->ask, ask)) return end(bad_input("the coordinator repeats an ask with other parameters"));
    return stored;
  }
  if (const auto fits = check_number(ask); !fits) return end(fits.error());
  if (const auto fits = admit(ask); !fits) return end(fits.error());
  if (!answering_ && !ask.has_recenter()) {
    if (const auto begun = reservation_->begin_answering(); !begun) return begun.error();
    answering_ = true;
  }
  wire::v1::Answer answer;
  answer.set_study(study());
  answer.set_number(ask.number());
  auto values = values_for(ask, answer);
  if (!values) return end(values.error());
  if (const auto masked = mask(ask, *values); !masked) return end(masked.error());
  answer.set_entries(values->size());
  answer.set_narrow(ask.narrow());
  auto stored = log_.append(ask, answer, *values);
  if (!stored) return stored.error();
  stored->values = *std::move(values);
  if (const auto durable = log_.sync(); !durable) return end(durable.error());
  return stored;
}

void SiteStudy::finish() {
  if (!answering_) reservation_->close_unused();
  ended_ = bad_input("the study is over");
}

}  // namespace eigenveil::federation
