// SPDX-License-Identifier: Apache-2.0
// The budget before and after, every noisy answer, and how to check them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/release/kinds.hpp"
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

/// How much the noise moves one number of each answer, as far as the manifest tells.
std::map<std::string, double> deviations_of(const nlohmann::json& manifest) {
  std::map<std::string, double> all;
  const auto noise = manifest.find("noise");
  if (noise == manifest.end() || !noise->is_array()) return all;
  for (const auto& one : *noise) {
    const auto label = html::text_at(one, "label");
    const auto deviation = html::number_at(one, "deviation");
    if (label && deviation) all[*label] = *deviation;
  }
  return all;
}

std::string event_row(const PrivacyEvent& event, double total, const std::map<std::string, double>& deviations) {
  const std::string mechanism = std::visit([](const auto& one) { return in_words(one); }, event.mechanism);
  const auto noise = deviations.find(event.label);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}{}</td><td class=\"number\">{}</td>{}</tr>\n",
                     html::name(event.label), mechanism,
                     noise != deviations.end() ? fmt::format("<br><span class=\"note\">&plusmn;{} in a number</span>",
                                                             html::rounded(noise->second))
                                               : "",
                     html::grouped(event.count), share_cell(event, total));
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

/// What a budget of epsilon can pay for is counted in squares of mu, which add up.
double squared_mu_of(double epsilon, double delta) {
  if (!(epsilon > 0) || !(delta > 0) || !(delta < 1) || !std::isfinite(epsilon)) return 0;
  const double mu = gaussian_mu(epsilon, std::log(delta));
  return std::isfinite(mu * mu) ? mu * mu : 0;
}

std::string bar_part(const char* css, double share, const std::string& title) {
  return share > 0 ? fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{}\"></i>", css, 100 * share, title)
                   : "";
}

std::string key(const char* css, const char* what, const std::string& amount) {
  return fmt::format("<li><i class=\"{}\"></i><span>{}</span> <b>{}</b></li>\n", css, what, amount);
}

/// Before, this release, what remains.
std::string budget_bar(const nlohmann::json& ledger, double limit, double delta) {
  const double before = html::number_at(ledger, "spent_before").value_or(0);
  const double after = html::number_at(ledger, "spent_after").value_or(before);
  const double left = html::number_at(ledger, "remaining").value_or(0);
  const double whole = squared_mu_of(limit, delta);
  if (!(whole > 0)) return "";
  const double first = std::clamp(squared_mu_of(before, delta) / whole, 0.0, 1.0);
  const double second = std::clamp(squared_mu_of(after, delta) / whole - first, 0.0, 1 - first);
  const double rest = std::max(0.0, 1 - first - second);
  const auto epsilon = [](double value) { return "&epsilon; " + html::rounded(value); };
  return fmt::format(
      "<div class=\"budget\" role=\"img\" aria-label=\"Of the budget {} were spent before, {} by this release, {} "
      "remain\">{}{}{}</div>\n<ul class=\"keys\">\n{}{}{}</ul>\n",
      html::percent(first), html::percent(second), html::percent(rest), bar_part("before", first, "before"),
      bar_part("now", second, "this release"), bar_part("left", rest, "remains"),
      key("before", "before", epsilon(before)), key("now", "with this release", epsilon(after)),
      key("left", "a further release may ask for", epsilon(left)));
}

}  // namespace

std::string budget_section(const Model& model) {
  const auto& manifest = model.manifest;
  const auto found = manifest.is_object() ? manifest.find("ledger") : manifest.end();
  if (!manifest.is_object() || found == manifest.end() || !found->is_object()) return "";
  const nlohmann::json& ledger = *found;
  std::string page = "<section>\n<h2>The budget</h2>\n";
  if (manifest.contains("federation"))
    return page + "<p>Each site charged its own ledger before it answered, and could refuse.</p>\n</section>\n";
  if (!ledger.contains("used") || ledger["used"] != true)
    return page +
           "<p class=\"caution\">No ledger was used: nothing limits how much is released of this data, and nothing "
           "counts it.</p>\n</section>\n";
  const auto dataset = html::text_at(ledger, "dataset");
  const std::string name = dataset ? " of the data set " + html::name(*dataset) : "";
  const bool limited = !ledger.contains("limited") || ledger["limited"] == true;
  if (!limited)
    return page + fmt::format(
                      "<p class=\"caution\">The ledger recorded this release, but there is no budget{}: nothing "
                      "limits releases of this data.</p>\n</section>\n",
                      name);
  page += fmt::format("<p>This release was charged to {}, before the first answer was computed.</p>\n",
                      dataset ? "the data set " + html::name(*dataset) : "a budget");
  const auto epsilon = html::number_at(ledger, "epsilon");
  const auto delta = html::number_at(ledger, "delta");
  if (!epsilon || !delta) return page + "</section>\n";
  page += budget_bar(ledger, *epsilon, *delta);
  return page + fmt::format(
                    "<p class=\"note\">The whole budget is &epsilon; {} at &delta; {}. Epsilons do not add up like "
                    "money: the noise of several releases composes to less than their sum, so that what was spent "
                    "and what may still be asked for come to more than the whole. The bar is drawn in "
                    "&mu;<sup>2</sup>, which does add up.</p>\n</section>\n",
                    html::exact(*epsilon), html::exact(*delta));
}

namespace {

/// How to compose the answers anew.
std::string check(const Model& model, const std::vector<PrivacyEvent>& events) {
  const auto& manifest = model.manifest;
  const auto delta = html::number_at(manifest, "delta");
  if (!delta || events.empty()) return "";
  std::string command = fmt::format("eigenveil account --delta {}", html::exact(*delta));
  if (html::text_at(manifest, "accounting") == "zcdp") command += " --accounting zcdp";
  for (const auto& event : events) command += fmt::format(" \\\n    --event {}", to_text(event));
  std::string page = "<h3 class=\"part\">How to check the guarantee</h3>\n";
  if (!is_private(model)) {
    page += "<p>The figures below hold for secret noise. They do not make this model private.</p>\n";
  }
  const auto epsilon = stated_epsilon(manifest);
  page +=
      fmt::format("<p>This command composes the answers listed above anew. {}</p>\n",
                  epsilon ? fmt::format("The epsilon that it prints must not be larger than {}.", html::exact(*epsilon))
                          : "It prints their epsilon.");
  return page + fmt::format("<pre>{}</pre>\n", html::escape(command));
}

std::string answers(const std::vector<PrivacyEvent>& events, const nlohmann::json& manifest) {
  double total = 0;
  for (const auto& event : events) total += squared_mu(event);
  const auto deviations = deviations_of(manifest);
  constexpr std::size_t kOpen = 12;
  std::string rows[2];
  for (std::size_t i = 0; i < events.size(); ++i) rows[i < kOpen ? 0 : 1] += event_row(events[i], total, deviations);
  const std::string head =
      "<table class=\"answers\">\n<thead><tr><th scope=\"col\">Answer</th><th scope=\"col\">Noise</th>"
      "<th scope=\"col\" class=\"number\">Count</th><th scope=\"col\" class=\"number\">Share</th><td "
      "class=\"share\"></td></tr></thead>\n<tbody>\n";
  std::string page = head + rows[0] + "</tbody>\n</table>\n";
  if (!rows[1].empty())
    page += fmt::format("<details>\n<summary>The other {}</summary>\n{}{}</tbody>\n</table>\n</details>\n",
                        events.size() - kOpen, head, rows[1]);
  return page + fmt::format("<p class=\"note\">{}</p>\n", explanation(events, total));
}

}  // namespace

std::string made_section(const Model& model) {
  if (!model.manifest.is_object() || !model.manifest.contains("events")) return "";
  const auto method = html::text_at(model.manifest, "method");
  std::string page = "<section>\n<h2>How it was made</h2>\n";
  if (method)
    page += fmt::format(
        "<p>These ({} {}) are all the answers that were computed from the rows, each with noise; "
        "everything else follows from them.</p>\n",
        kind_of(model.manifest).method, html::name(*method));
  if (const auto pilot = model.manifest.find("pilot"); pilot != model.manifest.end())
    if (const auto sentence = html::text_at(*pilot, "sentence"))
      page += fmt::format("<p>{} Answers of the plan that are given up for a matrix are listed with their share.</p>\n",
                          html::escape(*sentence));
  const auto events = events_from_json(model.manifest["events"]);
  if (!events.ok()) return page + raw_events(model.manifest["events"]) + "</section>\n";
  return page + answers(*events, model.manifest) + check(model, *events) + "</section>\n";
}

}  // namespace eigenveil
