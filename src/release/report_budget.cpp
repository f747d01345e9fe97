// SPDX-License-Identifier: Apache-2.0
// Where the privacy budget went, and how to check it.
#include <fmt/format.h>

#include <cmath>

#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string in_words(const GaussianEvent& event) {
  return fmt::format("Gaussian noise, &mu; = {}", html::rounded(event.mu));
}
std::string in_words(const PureEvent& event) {
  return fmt::format("pure, &epsilon; = {}", html::rounded(event.epsilon));
}
std::string in_words(const PoissonGaussianEvent& event) {
  return fmt::format("Gaussian noise on a Poisson sample, q = {}, &sigma; = {}", html::rounded(event.q),
                     html::rounded(event.sigma));
}

/// count * mu^2: for Gaussian answers this is what adds up.
double squared_mu(const PrivacyEvent& event) {
  const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism);
  return gaussian != nullptr ? static_cast<double>(event.count) * gaussian->mu * gaussian->mu : 0;
}

std::string share_cell(const PrivacyEvent& event, double total) {
  if (!std::holds_alternative<GaussianEvent>(event.mechanism) || !(total > 0) || !std::isfinite(total)) {
    return "<td class=\"number\">&ndash;</td><td class=\"share\"></td>";
  }
  const double share = squared_mu(event) / total;
  return fmt::format(
      "<td class=\"number\">{}</td><td class=\"share\"><span class=\"meter\"><i style=\"width:{:.2f}%\"></i>"
      "</span></td>",
      html::percent(share), 100 * share);
}

std::string event_row(const PrivacyEvent& event, double total) {
  const std::string mechanism = std::visit([](const auto& one) { return in_words(one); }, event.mechanism);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td>{}</tr>\n",
                     html::name(event.label), mechanism, html::grouped(event.count), share_cell(event, total));
}

/// Events that cannot be understood are shown as they are.
std::string raw_events(const nlohmann::json& events) {
  return fmt::format(
      "<p>The events in the manifest are not in a form that this version understands:</p>\n<pre>{}</pre>\n",
      html::escape(events.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)));
}

std::string explanation(const std::vector<PrivacyEvent>& events, double total) {
  bool only_gaussian = true;
  for (const auto& event : events) only_gaussian &= std::holds_alternative<GaussianEvent>(event.mechanism);
  std::string words =
      "For an answer with Gaussian noise, &mu; is the most that one row can move it, divided by the "
      "noise; the squares of &mu; add up.";
  if (only_gaussian && total > 0 && std::isfinite(total)) {
    words += fmt::format(" Together these answers have &mu; = {}.", html::rounded(std::sqrt(total)));
  }
  if (!only_gaussian) words += " Shares are among the Gaussian answers alone.";
  return words;
}

}  // namespace

std::string budget_section(const Model& model) {
  if (!model.manifest.is_object() || !model.manifest.contains("events")) return "";
  const std::string title = "<section>\n<h2>Where the privacy budget went</h2>\n";
  const auto events = events_from_json(model.manifest["events"]);
  if (!events.ok()) return title + raw_events(model.manifest["events"]) + "</section>\n";
  double total = 0;
  for (const auto& event : *events) total += squared_mu(event);
  std::string rows;
  for (const auto& event : *events) rows += event_row(event, total);
  return title + fmt::format(
                     "<table>\n<caption>Every noisy answer that was computed from the data, in order.</caption>\n"
                     "<thead><tr><th scope=\"col\">Answer</th><th scope=\"col\">Mechanism</th>"
                     "<th scope=\"col\" class=\"number\">Count</th><th scope=\"col\" class=\"number\">Share</th><td "
                     "class=\"share\"></td></tr>"
                     "</thead>\n<tbody>\n{}</tbody>\n</table>\n<p class=\"note\">{}</p>\n</section>\n",
                     rows, explanation(*events, total));
}

std::string check_section(const Model& model) {
  const auto& manifest = model.manifest;
  const auto delta = html::number_at(manifest, "delta");
  if (!delta || !manifest.contains("events")) return "";
  const auto events = events_from_json(manifest["events"]);
  if (!events.ok() || events->empty()) return "";
  std::string command = fmt::format("eigenveil account --delta {}", html::exact(*delta));
  if (html::text_at(manifest, "accounting") == "zcdp") command += " --accounting zcdp";
  for (const auto& event : *events) command += fmt::format(" \\\n    --event {}", to_text(event));
  std::string page = "<section>\n<h2>How to check the guarantee</h2>\n";
  if (!is_private(model)) {
    page += "<p>The figures below hold for secret noise. They do not make this model private.</p>\n";
  }
  const auto epsilon = stated_epsilon(manifest);
  page +=
      fmt::format("<p>This command composes the answers listed above anew. {}</p>\n",
                  epsilon ? fmt::format("The epsilon that it prints must not be larger than {}.", html::exact(*epsilon))
                          : "It prints their epsilon.");
  return page + fmt::format("<pre>{}</pre>\n</section>\n", html::escape(command));
}

}  // namespace eigenveil
