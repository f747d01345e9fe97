// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <stdexcept>

#include "eigenveil/federation/noise.hpp"
#include "eigenveil/federation/site_study.hpp"
#include "eigenveil/ledger/content_key.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/support/federation.hpp"

namespace eigenveil::test {

namespace wire2 = wire::v2;

/// What an answer must be before masks: the exact sum, and the noise that the plan's mu and the key on disk give.
struct Expected {
  PrivateSum sum;             ///< exact, not shifted
  std::vector<Int128> noise;  ///< in shifted units
  NoiseScale scale;           ///< of the whole noise
};

/// Sites without a network, and a coordinator that says to each of them what it likes. Rows: columns a, b in [-4, 4]
/// and a label A, B or C; another twenty rows at each site.
class StudyLab {
 public:
  static constexpr double kMu = 0.3;

  explicit StudyLab(std::size_t sites = 1, Adjacency adjacency = Adjacency::kReplaceOne) {
    for (std::size_t i = 0; i < sites; ++i) {
      const std::string name = Certificates::site(i);
      write_rows(i);
      auto config = generous_site(name, folder_.file("."), numeric_schema({"a", "b"}, 4), adjacency);
      config.classes["label"] = {{"A", "B", "C"}, {}};
      config.drop_unlisted = false;
      configs.push_back(config);
      pins[name] = config.identity.party.key_hash;
    }
    for (auto& config : configs) config.peers = pins;
    studies.resize(sites);
    proposal = blank();
    proposal.set_adjacency(std::string(name(adjacency)));
  }

  std::string data(std::size_t i) const { return folder_.file(Certificates::site(i) + ".csv"); }
  std::string state(std::size_t i) const {
    return configs[i].state + "/study-" + federation::study_text(proposal.study());
  }
  void write_rows(std::size_t i) const {
    std::ofstream out(data(i));
    out << "a,b,label\n";
    for (std::size_t r = 0; r < 20; ++r)
      out << static_cast<int>((r + i) % 7) - 3 << "," << static_cast<int>((r + 2 * i) % 5) - 2 << ","
          << "ABC"[(r + i) % 3] << "\n";
  }

  /// Adds asks to the proposal's plan.
  wire2::PlannedAsk* plan(const std::string& label, wire2::Kind kind, double mu = kMu, std::uint32_t count = 1) {
    auto* ask = proposal.add_plan();
    ask->set_label(label);
    ask->set_kind(kind);
    ask->set_rows(2);
    const bool searches = kind == wire2::NORM_COUNTS || kind == wire2::SEARCH || kind == wire2::PRODUCT;
    const bool directed = searches || kind == wire2::APPLY || kind == wire2::PROJECTED_GRAM ||
                          kind == wire2::SOFTMAX_GRADIENT || kind == wire2::MAP;
    ask->set_columns(kind == wire2::SOFTMAX_GRADIENT ? 3 : directed ? 2 : 0);
    ask->set_grid(searches ? 512 : 0);
    ask->set_classes(kind == wire2::CLASS_SUMS || kind == wire2::CLASS_COUNTS ? 3 : 0);
    ask->set_mu(federation::moves_rows(kind) ? 0 : mu);
    ask->set_count(count);
    if (!federation::moves_rows(kind)) proposal.set_spare_mu(std::max(proposal.spare_mu(), mu));
    return ask;
  }
  /// Sites whose rows can never make them refuse.
  void forgive() {
    for (auto& config : configs) {
      config.missing = MissingPolicy::kZeroRow;
      config.drop_unlisted = true;
    }
    proposal.mutable_rows()->set_zero_missing(true);
    proposal.mutable_rows()->mutable_class_column()->set_drop_unlisted(true);
  }
  void secure(std::uint32_t colluders = 1, std::uint32_t lost = 0, std::uint32_t spares = 0) {
    proposal.set_aggregation(wire2::Proposal::SECURE);
    proposal.set_colluders(colluders);
    proposal.set_lost(lost);
    proposal.set_spares(spares);
    proposal.set_shares(static_cast<std::uint32_t>(configs.size()) - colluders - lost);
  }

  wire2::SignedProposal signed_by_coordinator(const wire2::Proposal& what) const {
    const auto own = Certificates::shared().identity("coordinator");
    wire2::SignedProposal message;
    message.set_proposal(federation::canonical_bytes(what));
    message.set_certificate(own.certificate);
    message.set_signature(
        *federation::sign(own.key, federation::proposal_statement(federation::hash("proposal", {message.proposal()}))));
    return message;
  }
  std::string proposal_hash() const { return federation::hash("proposal", {federation::canonical_bytes(proposal)}); }

  Status open(std::size_t i) { return open(i, proposal); }
  Status open(std::size_t i, const wire2::Proposal& what) {
    studies[i].reset();
    const auto read = federation::Proposed::read(signed_by_coordinator(what), configs[i]);
    if (!read) return read.error();
    Observer silent;
    const auto person = [&](const std::string& words) {
      said = words;
      if (while_reading) while_reading();
      return approve;
    };
    auto study = federation::SiteStudy::open(configs[i], *read, person, silent);
    if (!study) return study.error();
    studies[i] = *std::move(study);
    return {};
  }
  Status open_all() {
    for (std::size_t i = 0; i < configs.size(); ++i) EIGENVEIL_TRY(open(i));
    return {};
  }

  wire2::Roster roster() const {
    wire2::Roster roster;
    roster.set_study(proposal.study());
    for (const auto& study : studies)
      if (study) *roster.add_accepts() = study->accept();
    return roster;
  }
  /// Everybody is opened and introduced.
  Status begin() {
    EIGENVEIL_TRY(open_all());
    const std::string bytes = federation::canonical_bytes(roster());
    for (auto& study : studies) EIGENVEIL_TRY(study->meet(bytes));
    chain.emplace(proposal_hash(), federation::hash("roster", {proposal_hash(), bytes}));
    among.clear();
    for (const auto& [name, pin] : pins) among.push_back(name);
    return {};
  }

  /// An ask with this label and the parameters that its planned kind needs, next in the chain.
  wire2::Ask ask(const std::string& label) const {
    wire2::Ask ask;
    ask.set_study(proposal.study());
    ask.set_number(chain->last() + 1);
    ask.set_prev(chain->head());
    ask.set_label(label);
    *ask.mutable_among() = {among.begin(), among.end()};
    for (const auto& planned : proposal.plan())
      if (planned.label() == label) fill(ask, planned.kind());
    return ask;
  }
  static void fill(wire2::Ask& ask, wire2::Kind kind) {
    Matrix X(2, 1);
    X << 0.6, -0.8;
    const Directions along = *Directions::quantise(X);
    const std::vector<double> grid = {0.5, 1.5, 3, 6};
    switch (kind) {
      case wire2::GRAM:
        *ask.mutable_sum() = to_wire(SumQuery(Gram{}));
        break;
      case wire2::APPLY:
        *ask.mutable_sum() = to_wire(SumQuery(Apply{along}));
        break;
      case wire2::CLASS_SUMS:
        *ask.mutable_sum() = to_wire(SumQuery(ClassSums{3}));
        break;
      case wire2::CLASS_COUNTS:
        *ask.mutable_sum() = to_wire(SumQuery(ClassCounts{3}));
        break;
      case wire2::SQUARED_NORMS:
        *ask.mutable_sum() = to_wire(SumQuery(SquaredNorms{}));
        break;
      case wire2::PROJECTED_GRAM:
        *ask.mutable_sum() = to_wire(SumQuery(ProjectedGram{along, 1.5}));
        break;
      case wire2::SOFTMAX_GRADIENT:
        *ask.mutable_sum() = to_wire(SumQuery(SoftmaxGradient{*LinearMap::quantise(Matrix::Ones(2, 3)), 0.5}));
        break;
      case wire2::NORM_COUNTS:
        *ask.mutable_exceedance() = to_wire(NormExceedance{grid, {}});
        break;
      case wire2::SEARCH:
        *ask.mutable_search() = to_wire(FilteredApply{along, grid, FilterMode::kShrink});
        break;
      case wire2::PRODUCT:
        *ask.mutable_product() = to_wire(FilteredApply{along, grid, FilterMode::kShrink});
        ask.set_chosen(2);
        break;
      case wire2::RECENTER:
        *ask.mutable_recenter() = to_wire(Vector(Vector::Constant(2, 0.25)), *RowBound::of(3));
        break;
      case wire2::MAP:
        *ask.mutable_recenter() = to_wire(*LinearMap::quantise(2 * Matrix::Identity(2, 2)), *RowBound::of(3));
        break;
      default:
        break;
    }
  }

  Result<federation::Stored> send(std::size_t i, const wire2::Ask& ask) {
    return studies[i]->answer(federation::canonical_bytes(ask));
  }
  /// The ask is part of the history from now on.
  void sent(const wire2::Ask& ask) { chain->add(federation::canonical_bytes(ask)); }

  /// The rows of site i as its study has them after `asks`.
  BoundedRows rows(std::size_t i, const std::vector<wire2::Ask>& asks = {}) const {
    const auto accepted = federation::check_proposal(
        proposal, configs[i], std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
    if (!accepted) throw std::runtime_error(accepted.error().message);
    Observer silent;
    RunOptions run;
    run.threads = 1;
    auto rows = bound_rows(accepted->rows, run, 0, silent);
    if (!rows) throw std::runtime_error(rows.error().message);
    for (const auto& ask : asks)
      if (ask.has_recenter()) need(recenter(*rows, *from_wire(ask.recenter())));
    return *std::move(rows);
  }

  /// Computed beside the site: from its file, the plan's mu, and the noise key that it will use for the next ask.
  Expected expected(std::size_t i, const wire2::Ask& ask, double mu, const BoundedRows& held) const {
    const Adjacency adjacency = *adjacency_from_name(proposal.adjacency());
    PrivateSum sum = exact(ask, held, adjacency);
    auto keys = this->keys(i);
    if (keys.index + 1 < ask.number()) keys.advance(ask.prev());
    const std::size_t shares = proposal.aggregation() == wire2::Proposal::SECURE ? proposal.shares() : 1;
    auto random = federation::StudyNoise::stream(keys.noise, chain->after(federation::canonical_bytes(ask)),
                                                 data_hash(i, keys), sum, Mu(mu), shares);
    PrivateSum zeros = sum;
    std::fill(zeros.values.begin(), zeros.values.end(), 0);
    auto noise = *GaussianMechanism::add_noise(zeros, Mu(mu), shares, *random);
    const NoiseScale scale = *GaussianMechanism::noise_for(sum.moved, Mu(mu));
    return {std::move(sum), std::move(noise).take_values(), scale};
  }
  /// Waits while the site, which may be a process of its own, replaces them. Throws where it keeps none.
  federation::StudyKeys keys(std::size_t i) const {
    const federation::KeyFile file(state(i) + "/study.key");
    auto kept = file.load();
    for (int tries = 0; tries < 1000 && !(kept.ok() && kept->has_value()); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      kept = file.load();
    }
    if (!kept.ok() || !kept->has_value()) throw std::runtime_error("the site has no keys");
    return **std::move(kept);
  }
  /// Throws for a sum that there is not.
  static PrivateSum exact(const wire2::Ask& ask, const BoundedRows& held, Adjacency adjacency) {
    const auto proper = [](const auto& query, const auto&... facts) {
      if (!query.ok() || !validate(*query, facts...).ok()) throw std::runtime_error("no such sum");
    };
    if (ask.has_sum()) proper(from_wire(ask.sum()), held.facts(), adjacency);
    if (ask.has_exceedance()) proper(from_wire(ask.exceedance()), held.facts());
    if (ask.has_search()) proper(from_wire(ask.search()), held.facts());
    if (ask.has_product()) proper(from_wire(ask.product()), held.facts());
    if (ask.has_product() && ask.chosen() >= static_cast<std::uint32_t>(ask.product().grid_size()))
      throw std::runtime_error("no such threshold");
    if (ask.has_sum()) return *exact_sum(*from_wire(ask.sum()), held, adjacency);
    if (ask.has_exceedance())
      return NoisyHistogram::cells(*exact_counts(*from_wire(ask.exceedance()), held), adjacency);
    const auto cells = FilteredCells::sweep(*from_wire(ask.has_search() ? ask.search() : ask.product()), held);
    return ask.has_search() ? NoisyHistogram::cells(cells->above(), adjacency) : cells->sum(ask.chosen(), adjacency);
  }
  std::string data_hash(std::size_t i, const federation::StudyKeys& keys) const {
    return *named_content_key(data(i), keys.data.view());
  }

  std::size_t charges(std::size_t i) const {
    return Ledger::open(configs[i].ledger)->show("rows")->reservations.size();
  }
  std::optional<WorkRecord> work(std::size_t i) const {
    return *Ledger::open(configs[i].ledger)->find_work(federation::study_text(proposal.study()));
  }

  std::vector<federation::SiteConfig> configs;
  std::vector<std::unique_ptr<federation::SiteStudy>> studies;
  federation::Pins pins;
  wire2::Proposal proposal;
  std::optional<federation::Chain> chain;
  std::vector<std::string> among;
  bool approve = true;
  std::function<void()> while_reading;  ///< what happens between the words and the answer
  std::string said;

 private:
  wire2::Proposal blank() const {
    wire2::Proposal proposal;
    proposal.set_version(federation::kWireVersion);
    proposal.set_study(federation::draw_study());
    proposal.set_not_after(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) + 3600);
    proposal.set_estimator("pca");
    proposal.set_options("pca");
    proposal.set_purpose("a test");
    RowOptions options;
    options.bounds = numeric_schema({"a", "b"}, 4);
    options.center = Center::kRange;
    options.class_column = ClassColumn{"label", {"A", "B", "C"}, false, {}};
    const auto opened = open_data(options);
    if (!opened) throw std::runtime_error(opened.error().message);
    *proposal.mutable_rows() = to_wire(options, *opened);
    const auto bound = first_bound(options, opened->map);
    proposal.mutable_rows()->set_radius(bound->value());
    proposal.mutable_rows()->set_bits(static_cast<std::uint32_t>(BoundingOptions{*bound}.bits));
    proposal.set_unit("row");
    proposal.set_sites_per_person(1);
    for (const auto& [name, pin] : pins) {
      auto* site = proposal.add_sites();
      site->set_name(name);
      site->set_key_hash(pin);
    }
    proposal.set_shares(1);
    proposal.set_epsilon(900);
    proposal.set_delta(1e-6);
    proposal.set_accounting("tight");
    return proposal;
  }
  TempDir folder_;
};

inline std::vector<Int128> integers(const federation::Stored& stored) {
  std::vector<Int128> values(stored.answer.entries());
  std::size_t got = 0;
  const auto read = federation::for_each_part(stored, [&](const std::string& bytes) -> Status {
    add_integers(bytes, stored.answer.narrow(), values.data() + got);
    got += bytes.size() / integer_bytes(stored.answer.narrow());
    return {};
  });
  need(read);
  return values;
}

}  // namespace eigenveil::test
