// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/ledger/content_key.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kMostProposal = std::size_t{4} << 20;  // ten thousand columns with their categories

std::string folder_of(const SiteConfig& config, const std::string& study) {
  return (std::filesystem::path(config.state) / ("study-" + study_text(study))).string();
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The folder of a study. Of one that had no keys before, nothing stays that was made for it here, unless it is kept.
class StudyFolder {
 public:
  StudyFolder(std::string path, bool fresh) : path_(std::move(path)), fresh_(fresh) {}
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;
  ~StudyFolder() {
    if (!fresh_) return;
    KeyFile(path_ + "/study.key").erase();
    const std::string log = path_ + "/answers.bin";
    if (std::filesystem::is_empty(log, ignored_)) std::filesystem::remove(log, ignored_);
    std::filesystem::remove(path_, ignored_);
  }
  void keep() { fresh_ = false; }

 private:
  std::string path_;
  std::error_code ignored_;
  bool fresh_;
};

std::string roster_hash(const std::string& proposal_hash, const std::string& roster) {
  return hash("roster", {proposal_hash, roster});
}

// All that decides which rows there are, and that a proposal does not say.
Result<std::string> data_of(const SiteConfig& config, const StudyKeys& keys) {
  auto files = named_content_key(config.data, keys.data.view());
  if (!files || config.source.member.empty()) return files;
  return hex(keys.data.derive("member", {*files, config.source.member}).view());
}

// Whether a row can be such that the site does not take part: one that does not say whose it is, for instance.
bool rows_can_refuse(const RowOptions& rows) {
  return rows.missing == MissingPolicy::kError || rows.source.header == HeaderRule::kNo ||
         (rows.person && !rows.person->missing_is_own) ||
         (rows.class_column && rows.class_column->cuts.empty() && !rows.class_column->drop_unlisted);
}

// What the ledger holds against the state folder, for ever. Keys that have moved on cannot be compared any more: the
// log and the ledger's step tell then whether they are of one time.
WorkFacts facts_of(const Proposed& proposed, const StudyKeys& keys, const std::string& data,
                   const std::optional<WorkRecord>& known) {
  const auto as_known = [&](const char* fact) { return known ? known->pinned.at(fact) : std::string("moved on"); };
  return {{{"proposal", hex(proposed.hash)},
           {"mask key", keys.exchange ? hex(open_key(*keys.exchange)) : as_known("mask key")},
           {"noise key", keys.index == 0 ? hex(hash("noise key", {keys.noise.view()})) : as_known("noise key")},
           {"data", data}}};
}

// One row is one of whatever the budget counts: an epsilon per visit is no epsilon per patient.
Status check_unit(Ledger& ledger, const SiteConfig& config, const std::string& unit) {
  const auto status = EIGENVEIL_TRY(ledger.show(config.dataset));
  const std::string own = status.budget.person.empty() ? "row" : "person";
  if (own == unit) return {};
  return budget_refused(
      fmt::format("it is about one {}, and the budget of data set '{}' protects one {}: what one costs says nothing "
                  "about the other",
                  quote(unit), config.dataset, own));
}

std::string budget_in_words(Ledger& ledger, const SiteConfig& config, const Accepted& accepted) {
  const auto status = ledger.show(config.dataset);
  if (!status) return status.error().message;
  std::vector<PrivacyEvent> all;
  for (const auto& reservation : status->reservations)
    if (reservation.state != ReservationState::kReturned)
      all.insert(all.end(), reservation.plan.events.begin(), reservation.plan.events.end());
  all.insert(all.end(), accepted.plan.events.begin(), accepted.plan.events.end());
  const auto delta = Delta::of(status->spent_delta);
  const auto after = delta ? epsilon_of(all, *delta, Accounting::kTight) : Result<double>(delta.error());
  return fmt::format("epsilon {:.4g} of {} is spent before, {} after", status->spent_epsilon,
                     status->budget.limit ? fmt::format("{:g}", status->budget.limit->epsilon.value()) : "no limit",
                     after ? fmt::format("{:.4g}", *after) : "more");
}

}  // namespace

Result<Proposed> Proposed::read(const wire::v2::SignedProposal& message, const SiteConfig& config) {
  Proposed proposed{message, {}, federation::hash("proposal", {message.proposal()})};
  if (message.proposal().size() > kMostProposal) return bad_input("it is too long");
  EIGENVEIL_TRY(read_canonical(message.proposal(), proposed.proposal));
  if (proposed.proposal.version() != kWireVersion) return bad_input(other_version(proposed.proposal.version()));
  if (proposed.proposal.study().size() != kStudyBytes) return bad_input("its study has no proper number");
  EIGENVEIL_TRY(verify_party(config.identity.authority, message.certificate(), Role::kCoordinator,
                             config.coordinator_name, config.coordinator_key));
  EIGENVEIL_TRY(verify_signature(message.certificate(), proposal_statement(proposed.hash), message.signature()));
  return proposed;
}

/// What a reservation gives.
struct SiteStudy::Parts {
  SiteConfig config;
  Proposed proposed;
  Accepted accepted;
  std::unique_ptr<Work> work;
  StudyKeys keys;
  std::string data;
  AnswerLog log;
  bool fresh;
};

SiteStudy::SiteStudy(Parts parts)
    : config_(std::move(parts.config)),
      proposed_(std::move(parts.proposed)),
      row_options_(std::move(parts.accepted.rows)),
      script_(*Script::of(proposed_.proposal)),
      work_(std::move(parts.work)),
      folder_(folder_of(config_, proposed_.proposal.study())),
      key_file_(folder_ + "/study.key"),
      keys_(std::move(parts.keys)),
      data_key_(std::move(parts.data)),
      log_(std::move(parts.log)) {}

// The folder comes first and the ledger last, in one transaction that inserts what is not there: whoever lost the
// folder has other keys, and whoever has another ledger has a folder that knows more than it.
Result<SiteStudy::Parts> SiteStudy::reserve(const SiteConfig& config, const Proposed& proposed,
                                            const Approve& approve) {
  const auto& proposal = proposed.proposal;
  auto accepted = EIGENVEIL_TRY(check_proposal(proposal, config, now()));
  auto ledger = EIGENVEIL_TRY(Ledger::open_existing(config.ledger.empty() ? Ledger::default_path() : config.ledger));
  EIGENVEIL_TRY(check_unit(ledger, config, proposal.unit()));
  const std::string number = study_text(proposal.study());
  const auto known = EIGENVEIL_TRY(ledger.find_work(number));
  const std::string folder = folder_of(config, proposal.study());
  const KeyFile key_file(folder + "/study.key");
  if (!known &&
      !approve(in_words(proposal, proposed.hash, accepted, config, budget_in_words(ledger, config, accepted))))
    return budget_refused("the person at this site said no");
  // Time has passed while a person read.
  if (const auto again = check_proposal(proposal, config, now()); !again) return again.error();

  // What cannot be read is refused before anything is written.
  auto files = EIGENVEIL_TRY(ledger.hash_files({config.data}));
  EIGENVEIL_TRY(make_folder(folder));
  auto log = EIGENVEIL_TRY(AnswerLog::open(folder + "/answers.bin"));
  auto kept = EIGENVEIL_TRY(key_file.load());
  StudyFolder made(folder, !kept);  // under the log's lock: keys of a process that is at work are not ours to take away
  if (!kept) {
    kept = StudyKeys::draw();
    EIGENVEIL_TRY(key_file.save(*kept));
  }
  StudyKeys keys = *std::move(kept);
  const auto data = EIGENVEIL_TRY(data_of(config, keys));
  const WorkFacts facts = facts_of(proposed, keys, data, known);
  auto begun = ledger.begin_work({config.dataset, std::move(files)}, accepted.plan,
                                 fmt::format("study {}: {}", number, printable(proposal.purpose())), number, facts,
                                 std::chrono::system_clock::from_time_t(proposal.not_after()));
  if (!begun) {
    const auto after = ledger.find_work(number);
    if (!after || *after) made.keep();  // it may be charged, with these keys
    if (after && *after && is_final((*after)->state)) key_file.erase();
    return begun.error();
  }
  made.keep();
  return Parts{config,          proposed, std::move(accepted), std::move(begun->work),
               std::move(keys), data,     std::move(log),      begun->fresh};
}

Result<std::unique_ptr<SiteStudy>> SiteStudy::open(const SiteConfig& config, const Proposed& proposed,
                                                   const Approve& approve, Observer& observer) {
  observer.step("reserving budget");
  auto parts = EIGENVEIL_TRY(reserve(config, proposed, approve));
  const bool fresh = parts.fresh;
  std::unique_ptr<SiteStudy> study(new SiteStudy(std::move(parts)));
  // A folder that has answered, or met others, for a charge that was made just now: the ledger is another one.
  if (fresh && (study->log_.size() > 0 || study->keys_.index > 0 || !study->keys_.exchange))
    return study->end(
        budget_refused("the state folder knows this study, and the ledger did not: one of them is an older "
                       "copy"),
        WorkState::kLost);
  // That the rows cannot be used is something about them, and where that can happen, so is that they can: neither is
  // free.
  if (rows_can_refuse(study->row_options_))
    if (const auto paid = study->work_->begin_answering(); !paid) return paid.error();
  if (const auto read = study->read_rows(observer); !read) {
    if (const auto paid = study->work_->begin_answering(); !paid) return paid.error();
    return study->end(read.error());
  }
  if (const auto resumed = study->resume(); !resumed) return resumed.error();
  return study;
}

Status SiteStudy::read_rows(Observer& observer) {
  RunOptions run;
  run.threads = config_.threads;
  run.memory = config_.memory;
  // the other half is for sums
  auto rows = EIGENVEIL_TRY(bound_rows(row_options_, run, config_.memory / 2, observer));
  const auto data = EIGENVEIL_TRY(data_of(config_, keys_));
  if (data != data_key_) return bad_input(config_.data + ": the file changed while it was read");
  const auto& stated = proposed_.proposal.rows();
  if (rows.lattice().radius != stated.radius() || rows.lattice().bits != static_cast<int>(stated.bits()))
    return bad_input("the rows are on another lattice than the proposal says");
  rows_ = std::move(rows);
  return {};
}

// Signed once: a signature has randomness of its own, and the roster must have this very accept.
Status SiteStudy::make_accept() {
  const std::string path = folder_ + "/accept.bin";
  const auto there = EIGENVEIL_TRY(load(path, accept_));
  if (there) return {};
  if (!keys_.exchange) return end(bad_input("the accept of this study is gone"), WorkState::kLost);
  wire::v2::AcceptStatement statement;
  statement.set_proposal(proposed_.hash);
  statement.set_site(config_.identity.party.name);
  statement.set_role(name(Role::kSite));
  statement.set_x25519(open_key(*keys_.exchange));
  if (adjacency() == Adjacency::kReplaceOne) statement.set_rows(rows_->units());
  accept_.set_statement(canonical_bytes(statement));
  accept_.set_certificate(config_.identity.certificate);
  const auto signature = EIGENVEIL_TRY(sign(config_.identity.key, accept_statement(accept_.statement())));
  accept_.set_signature(signature);
  return store(path, accept_);
}

// Log, ledger and keys against each other: what was answered is known, or the study is lost.
Status SiteStudy::resume() {
  EIGENVEIL_TRY(make_accept());
  const WorkRecord record = work_->record();
  const auto lost = [&](const std::string& why) { return end(budget_refused(why), WorkState::kLost); };
  if (record.met.empty()) {
    if (log_.size() > 0 || keys_.index > 0 || !keys_.exchange)
      return lost("the state folder has met other sites, and the ledger knows nothing of it");
    return {};
  }
  wire::v2::Roster roster;
  const auto there = EIGENVEIL_TRY(load(folder_ + "/roster.bin", roster));
  const std::string met = there ? roster_hash(proposed_.hash, canonical_bytes(roster)) : "";
  if (hex(met) != record.met) return lost("the roster of this study is gone, or another one");
  EIGENVEIL_TRY(remember(roster, met));
  std::string before = chain_->head();
  for (std::size_t i = 0; i < log_.size(); ++i) {
    const auto stored = EIGENVEIL_TRY(log_.read(i));
    if (const auto turn = script_.next(stored.ask); !turn) return lost(turn.error().message);
    if (stored.ask.has_recenter()) EIGENVEIL_TRY(apply(stored.ask.recenter()));
    before = chain_->head();
    chain_->add(canonical_bytes(stored.ask));
    among_ = {stored.ask.among().begin(), stored.ask.among().end()};
  }
  const std::uint64_t last = log_.size();
  const bool ahead = record.step + 1 == last;  // one that never left
  const std::string& expected = ahead ? before : chain_->head();
  if (!ahead && record.step != last) return lost("the ledger and the log of answers are not of one time");
  if (record.step > 0 && record.head != hex(expected)) return lost("the ledger knows other answers than the log has");
  if (keys_.index > last || keys_.index + 1 < last) return lost("the keys and the log of answers are not of one time");
  if (ahead) return work_->advance(last, hex(chain_->head()));
  return {};
}

wire::v2::Standing SiteStudy::standing() const {
  wire::v2::Standing standing;
  standing.set_study(study());
  standing.set_last(static_cast<std::uint32_t>(answers()));
  if (chain_) standing.set_head(chain_->head());
  return standing;
}

Result<std::vector<MaskEnd>> SiteStudy::check_roster(const wire::v2::Roster& roster) const {
  std::vector<MaskEnd> ends;
  std::set<std::string> keys;
  bool own = false;
  std::size_t pinned = 0;
  for (const auto& accept : roster.accepts()) {
    wire::v2::AcceptStatement said;
    EIGENVEIL_TRY(read_canonical(accept.statement(), said));
    const std::string site = printable(said.site());
    const auto& sites = proposed_.proposal.sites();
    const auto listed =
        std::find_if(sites.begin(), sites.end(), [&](const auto& s) { return s.name() == said.site(); });
    if (listed == sites.end())
      return bad_input(fmt::format("the coordinator introduced '{}', who is not in the study", site));
    if (!ends.empty() && !(ends.back().site < said.site()))
      return bad_input("the coordinator introduced sites out of order, or one twice");
    if (said.proposal() != proposed_.hash || said.role() != name(Role::kSite) || said.x25519().size() != Secret::kBytes)
      return bad_input(fmt::format("'{}' accepted something else than this proposal", site));
    if (!keys.insert(said.x25519()).second)
      return bad_input(fmt::format("'{}' has the mask key of another site", site));
    EIGENVEIL_TRY(
        verify_party(config_.identity.authority, accept.certificate(), Role::kSite, said.site(), listed->key_hash()));
    EIGENVEIL_TRY(verify_signature(accept.certificate(), accept_statement(accept.statement()), accept.signature()));
    const auto pin = config_.peers.find(said.site());
    if (pin != config_.peers.end() && pin->second != listed->key_hash())
      return bad_input(fmt::format("'{}' has another key than this site knows", site));
    if (pin != config_.peers.end()) ++pinned;
    if (said.site() == config_.identity.party.name) own = canonical_bytes(accept) == canonical_bytes(accept_);
    ends.push_back({said.site(), said.x25519()});
  }
  if (!own) return bad_input("the coordinator introduced this site with something that it did not say");
  if (secure() && pinned < config_.colluders + std::size_t{proposed_.proposal.shares()})
    return bad_input(
        fmt::format("of the sites that take part this one knows {}, and {} may collude: fewer than {} are "
                    "left, which the noise needs",
                    pinned, config_.colluders, proposed_.proposal.shares()));
  return ends;
}

Status SiteStudy::remember(const wire::v2::Roster& roster, const std::string& roster_hash) {
  ends_.clear();
  among_.clear();
  for (const auto& accept : roster.accepts()) {
    wire::v2::AcceptStatement said;
    EIGENVEIL_TRY(read_canonical(accept.statement(), said));
    ends_.push_back({said.site(), said.x25519()});
    among_.push_back(said.site());
  }
  chain_.emplace(proposed_.hash, roster_hash);
  return pair_up(roster_hash);
}

// The secret that pairs are made of is not needed afterwards, and goes.
Status SiteStudy::pair_up(const std::string& roster_hash) {
  if (!keys_.exchange) return {};
  const MaskEnd own{config_.identity.party.name, open_key(*keys_.exchange)};
  for (const MaskEnd& other : ends_) {
    if (other.site == own.site) continue;
    auto mask = EIGENVEIL_TRY(Mask::between(*keys_.exchange, own, other, proposed_.hash, roster_hash));
    keys_.masks.push_back(std::move(mask));
  }
  keys_.exchange.reset();
  return key_file_.save(keys_);
}

Status SiteStudy::meet(const std::string& bytes) {
  if (ended_) return *ended_;
  const std::string met = roster_hash(proposed_.hash, bytes);
  if (chain_) {
    if (hex(met) == work_->record().met) return {};
    return end(bad_input("the coordinator introduces other sites than before"));
  }
  wire::v2::Roster roster;
  if (const auto read = read_canonical(bytes, roster); !read) return end(read.error());
  if (roster.study() != study()) return end(bad_input("the coordinator introduced the sites of another study"));
  const auto ends = check_roster(roster);
  if (!ends) return end(ends.error());
  // Low order is seen before anything is fixed.
  const MaskEnd own{config_.identity.party.name, open_key(*keys_.exchange)};
  for (const MaskEnd& other : *ends)
    if (other.site != own.site)
      if (const auto mask = Mask::between(*keys_.exchange, own, other, proposed_.hash, met); !mask)
        return end(mask.error());
  if (const auto stored = store(folder_ + "/roster.bin", roster); !stored) return stop(stored.error());
  if (const auto fixed = work_->meet(hex(met)); !fixed) return stop(fixed.error());
  if (const auto known = remember(roster, met); !known) return stop(known.error());
  return {};
}

Error SiteStudy::end(const Error& why, WorkState as) {
  if (!ended_) {
    ended_ = why;
    key_file_.erase();
    keys_ = StudyKeys::draw();
    (void)work_->close(as);
  }
  return *ended_;
}

// For this process: another one may go on from what is on disk.
Error SiteStudy::stop(const Error& why) {
  ended_ = Error{ErrorCode::kInternal, why.message};
  return *ended_;
}

void erase_ended_keys(const SiteConfig& config) {
  std::error_code failed;
  std::vector<std::string> folders;
  for (std::filesystem::directory_iterator entry(config.state, failed), end; !failed && entry != end;
       entry.increment(failed))
    if (std::filesystem::exists(entry->path() / "study.key")) folders.push_back(entry->path().string());
  if (folders.empty()) return;
  auto ledger = Ledger::open_existing(config.ledger.empty() ? Ledger::default_path() : config.ledger);
  for (std::size_t i = 0; ledger && i < folders.size(); ++i) {
    const std::string name = std::filesystem::path(folders[i]).filename().string();
    constexpr std::string_view kPrefix = "study-";
    if (!name.starts_with(kPrefix)) continue;
    const auto work = ledger->find_work(name.substr(kPrefix.size()));
    if (work && *work && is_final((*work)->state)) KeyFile(folders[i] + "/study.key").erase();
  }
}

void SiteStudy::finish() { (void)end(bad_input("the study is over"), WorkState::kClosed); }

}  // namespace eigenveil::federation
