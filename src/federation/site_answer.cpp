// SPDX-License-Identifier: Apache-2.0
// What a site answers, and what it checks first.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/noise.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/site_study.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

// What computing the answer takes besides the rows.
double bytes_for(const wire::v2::Ask& ask, std::size_t columns, int threads) {
  const auto d = static_cast<double>(columns);
  const double each = sizeof(Int128) + sizeof(double) * static_cast<double>(threads);
  const auto grid = [&](const auto& query) { return static_cast<double>(query.grid_size() + 1); };
  if (ask.has_exceedance()) return each * grid(ask.exceedance());
  if (ask.has_search()) return each * grid(ask.search()) * d * ask.search().x().columns();
  if (ask.has_product()) return each * grid(ask.product()) * d * ask.product().x().columns();
  if (!ask.has_sum()) return each * d;
  if (ask.sum().has_gram()) return each * d * d;
  if (ask.sum().has_apply()) return each * d * ask.sum().apply().x().columns();
  if (ask.sum().has_softmax_gradient()) return each * d * ask.sum().softmax_gradient().w().columns();
  if (ask.sum().has_projected_gram()) return each * d * ask.sum().projected_gram().x().columns();
  return each * d * (1.0 + ask.sum().class_sums().classes() + ask.sum().class_counts().classes());
}

}  // namespace

Status SiteStudy::check_ask(const wire::v2::Ask& ask) const {
  if (ask.study() != study()) return bad_input("the coordinator asked for another study");
  if (!chain_) return bad_input("the coordinator asked before it introduced the sites");
  if (ask.number() != answers() + 1)
    return bad_input(fmt::format("the coordinator asked number {} where {} was due", ask.number(), answers() + 1));
  if (ask.prev() != chain_->head())
    return bad_input("the coordinator asked this site other things before than it says now");
  if (ask.label().size() > config_.limits.label) return bad_input("the coordinator's label is too long");
  RunOptions run;
  run.threads = config_.threads;
  if (bytes_for(ask, rows_->columns(), thread_count(run)) > static_cast<double>(config_.memory) / 2)
    return bad_input("the coordinator asks for more at once than this site has memory for");
  return check_among(ask);
}

// A_r: ascending, this site in it, nobody who was not asked before; and for masked totals enough whose noise is theirs
// alone: |A_r of those whom this site knows| - c >= k.
Status SiteStudy::check_among(const wire::v2::Ask& ask) const {
  const auto& among = ask.among();
  const bool ascending = std::adjacent_find(among.begin(), among.end(), std::greater_equal<>()) == among.end();
  if (!ascending || !std::binary_search(among.begin(), among.end(), config_.identity.party.name) ||
      !std::includes(among_.begin(), among_.end(), among.begin(), among.end()))
    return bad_input("the coordinator asks a set of sites that is none, without this one, or larger than before");
  if (!secure()) return {};
  const std::size_t pinned =
      std::count_if(among.begin(), among.end(), [&](const auto& site) { return config_.peers.contains(site); });
  if (pinned >= config_.colluders + shares()) return {};
  return bad_input(
      fmt::format("the coordinator asks for a total over {} sites of which this one knows {}: {} of them may "
                  "collude, and the noise needs {} more",
                  among.size(), pinned, config_.colluders, shares()));
}

// What is to be computed must be a query that fits the rows. One that is none is the coordinator's doing, whatever the
// library would call it of a caller of its own.
Status SiteStudy::check_query(const wire::v2::Ask& ask) const {
  const RowsFacts facts = rows_->facts();
  const auto proper = [&](const auto& query, const auto&... more) {
    return query.ok() ? validate(*query, facts, more...) : Status(query.error());
  };
  const auto checked = [&]() -> Status {
    if (ask.has_sum()) return proper(from_wire(ask.sum()), adjacency());
    if (ask.has_exceedance()) return proper(from_wire(ask.exceedance()));
    if (ask.has_search()) return proper(from_wire(ask.search()));
    if (ask.has_product()) {
      EIGENVEIL_TRY(proper(from_wire(ask.product())));
      const auto grid = static_cast<std::uint32_t>(ask.product().grid_size());
      return ask.chosen() < grid ? Status() : bad_input("the coordinator chose a threshold that is not there");
    }
    if (!ask.has_recenter()) return bad_input("the coordinator asked something that this site does not know");
    const auto recentring = EIGENVEIL_TRY(from_wire(ask.recenter()));
    const auto columns = static_cast<std::size_t>(recentring.map ? recentring.map->columns() : recentring.mean.size());
    return columns == facts.columns ? Status() : bad_input("the coordinator would move rows of other columns");
  }();
  return checked ? checked : bad_input(checked.error().message);
}

// A sum and how far one row moves it, of one lattice: that of the rows as they are now.
Result<PrivateSum> SiteStudy::sum_for(const wire::v2::Ask& ask) {
  if (ask.has_sum()) return exact_sum(EIGENVEIL_TRY(from_wire(ask.sum())), *rows_, adjacency());
  if (ask.has_exceedance()) {
    const auto query = EIGENVEIL_TRY(from_wire(ask.exceedance()));
    return NoisyHistogram::cells(EIGENVEIL_TRY(exact_counts(query, *rows_)), adjacency());
  }
  const auto& filtered = ask.has_search() ? ask.search() : ask.product();
  if (ask.has_search() || !cells_ || searched_ != canonical_bytes(filtered)) {
    cells_ = EIGENVEIL_TRY(FilteredCells::sweep(EIGENVEIL_TRY(from_wire(filtered)), *rows_));
    searched_ = canonical_bytes(filtered);
  }
  return ask.has_search() ? NoisyHistogram::cells(cells_->above(), adjacency())
                          : cells_->sum(ask.chosen(), adjacency());
}

// What was computed from the rows as they were goes with them.
Status SiteStudy::apply(const wire::v2::Recenter& message) {
  const auto recentring = EIGENVEIL_TRY(from_wire(message));
  cells_.reset();
  return recenter(*rows_, recentring);
}

Result<std::vector<Int128>> SiteStudy::values_for(const wire::v2::Ask& ask, const std::string& head,
                                                  std::optional<Mu> mu, wire::v2::Answer& answer) {
  if (ask.has_recenter()) {
    EIGENVEIL_TRY(apply(ask.recenter()));
    return std::vector<Int128>();
  }
  if (!mu) return internal_error("an answer without noise");
  auto sum = EIGENVEIL_TRY(sum_for(ask));
  auto random = EIGENVEIL_TRY(StudyNoise::stream(keys_.noise, head, data_key_, sum, *mu, shares()));
  auto noisy = EIGENVEIL_TRY(GaussianMechanism::add_noise(std::move(sum), *mu, shares(), random));
  answer.set_rows(static_cast<std::uint32_t>(noisy.rows()));
  answer.set_columns(static_cast<std::uint32_t>(noisy.columns()));
  answer.set_symmetric(noisy.layout() == PrivateSum::Layout::kSymmetric);
  answer.set_shift(noisy.shift());
  return std::move(noisy).take_values();
}

Status SiteStudy::mask(const wire::v2::Ask& ask, const std::string& head, std::vector<Int128>& values) const {
  if (!secure()) return {};
  for (const std::string& site : ask.among()) {
    if (site == config_.identity.party.name) continue;
    const auto found =
        std::find_if(keys_.masks.begin(), keys_.masks.end(), [&](const Mask& mask) { return mask.other() == site; });
    if (found == keys_.masks.end()) return internal_error("a site without a mask");
    found->apply(head, ask.narrow(), values);
  }
  return {};
}

Status SiteStudy::move_on() {
  if (ended_ || !chain_ || keys_.index == answers()) return {};
  keys_.advance(chain_->head());
  if (const auto saved = key_file_.save(keys_); !saved) return stop(saved.error());
  return {};
}

Result<Stored> SiteStudy::answer(const std::string& bytes) {
  if (ended_) return *ended_;
  wire::v2::Ask ask;
  if (bytes.size() > config_.limits.message) return end(bad_input("the coordinator's ask is too long"));
  if (const auto read = read_canonical(bytes, ask); !read) return end(read.error());
  if (ask.study() == study() && ask.number() >= 1 && ask.number() <= answers()) {
    auto stored = log_.read(ask.number() - 1);
    if (!stored) return stop(stored.error());
    if (canonical_bytes(stored->ask) != bytes)
      return end(bad_input("the coordinator repeats an ask with other parameters"));
    return stored;
  }
  if (std::chrono::system_clock::now() > std::chrono::system_clock::from_time_t(proposed_.proposal.not_after()))
    return end(bad_input("the study's time is over"), WorkState::kExpired);
  if (const auto fits = check_ask(ask); !fits) return end(fits.error());
  const auto mu = script_.next(ask);
  if (!mu) return end(mu.error());
  if (const auto fits = check_query(ask); !fits) return end(fits.error());
  EIGENVEIL_TRY(move_on());

  const std::string head = chain_->after(bytes);
  wire::v2::Answer answer;
  answer.set_study(study());
  answer.set_number(ask.number());
  answer.set_head(head);
  auto values = values_for(ask, head, *mu, answer);
  if (!values) return values.error().code == ErrorCode::kInternal ? stop(values.error()) : end(values.error());
  if (const auto masked = mask(ask, head, *values); !masked) return stop(masked.error());
  answer.set_entries(values->size());
  answer.set_narrow(ask.narrow());
  // On disk, then in the ledger, and only then anywhere else.
  auto stored = log_.append(ask, answer, *values);
  if (!stored) return stop(stored.error());
  stored->values = *std::move(values);
  if (const auto durable = log_.sync(); !durable) return stop(durable.error());
  if (const auto paid = work_->advance(ask.number(), hex(head)); !paid) return stop(paid.error());
  chain_->add(bytes);
  among_ = {ask.among().begin(), ask.among().end()};
  return stored;
}

}  // namespace eigenveil::federation
