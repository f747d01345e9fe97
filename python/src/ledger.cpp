// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

namespace eigenveil::python {
namespace {

Ledger opened(const std::string& path) {
  return checked(without_lock([&] { return Ledger::open_existing(path); }));
}

nb::dict to_dict(const DatasetStatus& status) {
  nb::dict found;
  found["name"] = status.budget.name;
  if (status.budget.limit) {
    found["epsilon"] = status.budget.limit->epsilon.value();
    found["remaining_epsilon"] = status.remaining_epsilon;
  }
  found["delta"] = status.spent_delta;
  found["adjacency"] = std::string(name(status.budget.adjacency));
  found["person"] = status.budget.person;
  found["allow_model_based"] = status.budget.allow_model_based;
  found["created"] = status.created;
  found["filter"] = status.filter;
  found["spent_epsilon"] = status.spent_epsilon;
  found["remaining"] = status.remaining;
  found["frozen"] = status.frozen;
  nb::list reservations;
  for (const ReservationRecord& record : status.reservations) {
    nb::list events;
    for (const PrivacyEvent& event : record.plan.events) events.append(nb::make_tuple(event.label, to_text(event)));
    nb::dict one;
    one["id"] = record.id;
    one["created"] = record.created;
    one["purpose"] = record.purpose;
    one["state"] = std::string(name(record.state));
    one["events"] = events;
    reservations.append(one);
  }
  found["reservations"] = reservations;
  return found;
}

void create(const std::string& path, const std::string& dataset, double epsilon, double delta,
            const std::string& adjacency, const std::string& person, bool allow_model_based,
            const std::vector<std::string>& files) {
  const Epsilon loss = checked(Epsilon::of(epsilon));
  const Delta failure = checked(Delta::of(delta));
  const Adjacency neighbours = checked(adjacency_from_name(adjacency));
  checked(without_lock([&]() -> Status {
    auto ledger = EIGENVEIL_TRY(Ledger::open(path));
    const auto keys = EIGENVEIL_TRY(ledger.hash_files(files));
    return ledger.create({dataset, DatasetBudget::Limit{loss, failure}, neighbours, person, allow_model_based}, keys);
  }));
}

nb::list schema_columns(const std::string& path) {
  nb::list columns;
  for (const ColumnSpec& spec : checked(read_schema(path)).columns) {
    if (const auto* number = std::get_if<NumericColumn>(&spec.kind)) {
      columns.append(nb::make_tuple(spec.name, number->lower, number->upper, number->missing));
    } else {
      const auto& list = std::get<CategoricalColumn>(spec.kind);
      columns.append(nb::make_tuple(spec.name, list.values, list.other, list.missing, list.weight));
    }
  }
  return columns;
}

}  // namespace

void bind_ledger(nb::module_& m) {
  m.def("ledger_default_path", &Ledger::default_path);
  m.def("ledger_create", &create);
  m.def("ledger_list", [](const std::string& path) {
    Ledger ledger = opened(path);
    nb::list all;
    for (const DatasetStatus& status : checked(without_lock([&] { return ledger.list(); })))
      all.append(to_dict(status));
    return all;
  });
  m.def("ledger_show", [](const std::string& path, const std::string& dataset) {
    Ledger ledger = opened(path);
    return to_dict(checked(without_lock([&] { return ledger.show(dataset); })));
  });
  m.def("ledger_release_unused", [](const std::string& path, const std::string& dataset) {
    Ledger ledger = opened(path);
    return checked(without_lock([&] { return ledger.release_unused(dataset); }));
  });
  m.def("ledger_accept_restore", [](const std::string& path, const std::string& dataset, std::optional<double> spent) {
    std::optional<Epsilon> epsilon;
    if (spent && *spent != 0) epsilon = checked(Epsilon::of(*spent));
    Ledger ledger = opened(path);
    checked(without_lock([&] { return ledger.accept_restore(dataset, epsilon); }));
  });
  m.def("ledger_verify", [](const std::string& path) {
    Ledger ledger = opened(path);
    return checked(without_lock([&] { return ledger.verify(); }));
  });
  m.def("schema_columns", &schema_columns);
  m.def("schema_template", [](const std::string& path, std::optional<bool> header) {
    SourceOptions options;
    if (header) options.header = *header ? HeaderRule::kYes : HeaderRule::kNo;
    return checked(schema_template(path, options));
  });
}

}  // namespace eigenveil::python
