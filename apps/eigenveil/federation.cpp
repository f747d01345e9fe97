// SPDX-License-Identifier: Apache-2.0
#ifdef EIGENVEIL_ENGINES
#include "eigenveil/federation/certificates.hpp"

#include <fmt/format.h>

#include <fstream>
#endif

#include "eigenveil/base/printable.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {

#ifdef EIGENVEIL_ENGINES
namespace {

constexpr const char* kFederationHelp = R"(
Sites and the coordinator of a study know each other by certificates that one authority signs, and by keys that each
party makes itself and tells the others.

  1. Someone whom every site trusts, and who does not run the coordinator, runs 'init' on a machine of their own
     and keeps ca.key there.
  2. Each party runs 'request' on its own machine: NAME.key stays there, NAME.csr goes to the authority.
  3. The authority runs 'sign' and sends NAME.crt and ca.crt back. Both are public.
  4. Each party tells the others its key's hash, by telephone or on paper ('show' prints it): sites write those of the
     others and of the coordinator into site.toml, the coordinator those of the sites into its peers file. So not even
     the authority can invent a site.

Example:
  eigenveil federation init study --name "heart study"
  eigenveil federation request hospital-a --role site --out hospital-a.csr
  eigenveil federation sign study hospital-a.csr
  eigenveil federation request coordinator --role coordinator --host c.example.org --out coordinator.csr
  eigenveil federation sign study coordinator.csr --role coordinator
  eigenveil federation show study/hospital-a.crt)";

constexpr const char* kInitHelp = R"(
Keep ca.key with someone whom all sites trust, not with the coordinator. Give ca.crt to everyone: with it they recognise
each other.
Example:
  eigenveil federation init study --name "heart study")";

constexpr const char* kRequestHelp = R"(
Writes NAME.key (for its owner only) and NAME.csr. The key stays on this machine; the request holds no secret.
Example:
  eigenveil federation request hospital-a --role site --out hospital-a.csr)";

constexpr const char* kSignHelp = R"(
Signs for the role that you name, and refuses a request for the other one: a site that asks to be the coordinator is not
signed by mistake. Of the request only name, host names and key are taken over. A name is signed once.
Example:
  eigenveil federation sign study hospital-a.csr)";

struct CertificateFlags {
  std::string folder;
  std::string study = "eigenveil study";
  std::string name;
  std::string role = "site";
  std::string file;  // a request or certificate
  std::vector<std::string> hosts;
  int days = 365;
  long long valid_seconds = 0;  // for tests: instead of days

  void add_to(CLI::App& app) {
    app.add_option("--days", days, "How long the certificate holds")->capture_default_str();
    app.add_option("--valid-seconds", valid_seconds)->group("");
  }
  Result<federation::Validity> validity() const {
    if (valid_seconds > 0) return federation::Validity{.until = valid_seconds};
    return federation::Validity::of_days(days);
  }
};

Result<std::string> text_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(fmt::format("{}: the file cannot be read", path));
  return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

int init(const CertificateFlags& flags) {
  const auto validity = flags.validity();
  if (!validity) return fail(validity.error());
  if (const Status made = federation::make_authority(flags.folder, flags.study, *validity); !made)
    return fail(made.error());
  tell(
      "Wrote {0}/ca.crt: the authority of {1}. Everyone in the study gets a copy.\n"
      "Wrote {0}/ca.key: keep it here. Who has it can sign certificates of this study.\n"
      "Next: each party runs eigenveil federation request NAME --role site (or coordinator) on its own machine.\n",
      flags.folder, quote(flags.study));
  return 0;
}

int request(const CertificateFlags& flags) {
  const auto role = federation::role_from_name(flags.role);
  if (!role) return fail(role.error());
  const std::string out = flags.file.empty() ? flags.name + ".csr" : flags.file;
  if (!out.ends_with(".csr")) return fail(usage_error("--out must end with .csr: the key is written beside it"));
  const std::string path = out.substr(0, out.size() - 4);
  const auto made = federation::make_request(path, {flags.name, *role, flags.hosts});
  if (!made) return fail(made.error());
  tell(
      "Wrote {0}.key: the private key of '{1}'. It stays on this machine.\n"
      "Wrote {0}.csr: send it to the study's authority.\n"
      "Tell the other parties, by telephone or on paper:\n{1} = \"{2}\"\n",
      path, flags.name, *made);
  return 0;
}

void print_party(const federation::Party& party, const std::vector<std::string>& hosts = {}) {
  tell("name   {}\nrole   {}\n", party.name, federation::name(party.role));
  for (const std::string& host : hosts) tell("host   {}\n", printable(host));
  tell("until  {}\nkey    {}\n", party.valid_until_utc, party.key_hash);
}

int sign(const CertificateFlags& flags) {
  const auto role = federation::role_from_name(flags.role);
  if (!role) return fail(role.error());
  const auto validity = flags.validity();
  if (!validity) return fail(validity.error());
  const auto csr = text_in(flags.file);
  if (!csr) return fail(csr.error());
  const auto asked = federation::read_request(*csr);
  if (!asked) return fail({asked.error().code, flags.file + ": " + asked.error().message});
  const auto party = federation::sign_request(flags.folder, *csr, *role, *validity);
  if (!party) return fail(party.error());
  tell("Signed, and wrote {}/{}.crt:\n", flags.folder, party->name);
  print_party(*party, asked->request.hosts);
  tell("Ask '{}' for its key's hash over another channel, and compare.\n", party->name);
  return 0;
}

int show(const CertificateFlags& flags) {
  const auto pem = text_in(flags.file);
  if (!pem) return fail(pem.error());
  const auto party = federation::party_of(*pem);
  if (!party) return fail({party.error().code, flags.file + ": " + party.error().message});
  print_party(*party);
  return 0;
}

void add_role(CLI::App& app, std::string& role) {
  app.add_option("--role", role, "What the party is: site or coordinator")
      ->check(CLI::IsMember({"site", "coordinator"}))
      ->capture_default_str();
}

}  // namespace

std::vector<Command> federation_commands(CLI::App& program) {
  auto* app = program.add_subcommand("federation", "Keys and certificates for a study of several sites");
  app->require_subcommand(1);
  app->footer(kFederationHelp);
  auto flags = std::make_shared<CertificateFlags>();

  auto* first = app->add_subcommand("init", "Make the authority of a study: FOLDER/ca.crt and FOLDER/ca.key");
  first->add_option("FOLDER", flags->folder, "Folder for the authority; made if it is not there")->required();
  first->add_option("--name", flags->study, "Name of the study")->capture_default_str();
  flags->add_to(*first);
  first->footer(kInitHelp);

  auto* second = app->add_subcommand("request", "Make one's own key, and a request for its certificate");
  second->add_option("NAME", flags->name, "Name of the party: letters, digits, dots, hyphens")->required();
  add_role(*second, flags->role);
  second->add_option("--host", flags->hosts, "coordinator: a host name or IP address; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  second->add_option("--out", flags->file, "The request's file; the key is written beside it; default: NAME.csr");
  second->footer(kRequestHelp);

  auto* third = app->add_subcommand("sign", "Sign a party's request: FOLDER/NAME.crt");
  third->add_option("FOLDER", flags->folder, "Folder of the authority")->required();
  third->add_option("REQUEST", flags->file, "The party's .csr file")->required();
  add_role(*third, flags->role);
  flags->add_to(*third);
  third->footer(kSignHelp);

  auto* fourth = app->add_subcommand("show", "Print whose certificate it is, and the hash of its key");
  fourth->add_option("CERTIFICATE", flags->file, "A .crt file")->required();
  fourth->footer("\nExample:\n  eigenveil federation show study/hospital-a.crt");

  return {{first, [flags] { return init(*flags); }},
          {second, [flags] { return request(*flags); }},
          {third, [flags] { return sign(*flags); }},
          {fourth, [flags] { return show(*flags); }}};
}

#else

std::vector<Command> federation_commands(CLI::App& program) {
  auto* app =
      program.add_subcommand("federation", "Keys and certificates for a study of several sites (not in this build)");
  app->allow_extras();
  return {{app, [] { return fail(usage_error(kNoEngines)); }}};
}

#endif

}  // namespace eigenveil::app
