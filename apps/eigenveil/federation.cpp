#ifdef EIGENVEIL_ENGINES
#include "eigenveil/federation/certificates.hpp"

#include <fmt/format.h>

#include <fstream>
#endif

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {

#ifdef EIGENVEIL_ENGINES
namespace {

constexpr const char* kFederationHelp = R"(
Sites and the coordinator of a study know each other by certificates that one authority signs.

  1. Someone whom every site trusts, and who does not run the coordinator, runs 'init' on a machine of their own
     and keeps ca.key there. Who has ca.key can pose as any site and as the coordinator.
  2. The same person runs 'issue' once for the coordinator and once for each site.
  3. NAME receives three files, over a channel that nobody else reads: ca.crt, NAME.crt and NAME.key.
     NAME.key goes to NAME only. ca.crt is public. ca.key goes to nobody.

Example:
  eigenveil federation init study --name "heart study"
  eigenveil federation issue study coordinator --host coordinator.example.org --host 192.0.2.7
  eigenveil federation issue study hospital-a)";

constexpr const char* kInitHelp = R"(
Keep ca.key with someone whom all sites trust, not with the coordinator: who has it can pose as anyone in the study.
Give ca.crt to everyone: with it they recognise each other.)";

constexpr const char* kIssueHelp = R"(
Send ca.crt, NAME.crt and NAME.key to NAME and to nobody else, then delete NAME.key here. The coordinator's
certificate should list, with --host, every host name or IP address under which sites will dial it.)";

struct CertificateFlags {
  std::string folder;
  std::string study = "eigenveil study";
  std::string name;
  std::vector<std::string> hosts;
  int days = 365;
  long long valid_seconds = 0;  // for tests: instead of days

  void add_to(CLI::App& app) {
    app.add_option("--days", days, "How long the certificate holds")->capture_default_str();
    app.add_option("--valid-seconds", valid_seconds)->group("");
  }
};

std::string end_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const auto until = federation::valid_until({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  return until ? *until : "an unreadable date";
}

int init(const CertificateFlags& flags) {
  const Status made = flags.valid_seconds > 0
                          ? federation::make_authority(flags.folder, flags.study, {.until = flags.valid_seconds})
                          : federation::make_authority(flags.folder, flags.study, flags.days);
  if (!made) return fail(made.error());
  tell(
      "Wrote {0}/ca.crt: the authority of '{1}', until {2}. Everyone in the study gets a copy.\n"
      "Wrote {0}/ca.key: keep it here. Who has it can pose as anyone in the study.\n"
      "Next: eigenveil federation issue {0} NAME, for the coordinator and for each site.\n",
      flags.folder, flags.study, end_of(flags.folder + "/ca.crt"));
  return 0;
}

int issue(const CertificateFlags& flags) {
  const Status made =
      flags.valid_seconds > 0
          ? federation::issue_certificate(flags.folder, flags.name, flags.hosts, {.until = flags.valid_seconds})
          : federation::issue_certificate(flags.folder, flags.name, flags.hosts, flags.days);
  if (!made) return fail(made.error());
  const std::string path = flags.folder + "/" + flags.name;
  tell(
      "Wrote {0}.crt: the certificate of '{1}', until {2}.\n"
      "Wrote {0}.key: its private key.\n"
      "Send {3}/ca.crt, {0}.crt and {0}.key to '{1}' and to nobody else, then delete {0}.key here.\n",
      path, flags.name, end_of(path + ".crt"), flags.folder);
  return 0;
}

}  // namespace

std::vector<Command> federation_commands(CLI::App& program) {
  auto* app = program.add_subcommand("federation", "Certificates for a study of several sites");
  app->require_subcommand(1);
  app->footer(kFederationHelp);
  auto flags = std::make_shared<CertificateFlags>();

  auto* first = app->add_subcommand("init", "Make the authority of a study: FOLDER/ca.crt and FOLDER/ca.key");
  first->add_option("FOLDER", flags->folder, "Folder for the authority; made if it is not there")->required();
  first->add_option("--name", flags->study, "Name of the study")->capture_default_str();
  flags->add_to(*first);
  first->footer(kInitHelp);

  auto* second = app->add_subcommand("issue", "Issue FOLDER/NAME.crt and FOLDER/NAME.key to a site or the coordinator");
  second->add_option("FOLDER", flags->folder, "Folder of the authority")->required();
  second->add_option("NAME", flags->name, "Name of the site or coordinator: letters, digits, dots, hyphens")
      ->required();
  second->add_option("--host", flags->hosts, "Further host name or IP address; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  flags->add_to(*second);
  second->footer(kIssueHelp);

  return {{first, [flags] { return init(*flags); }}, {second, [flags] { return issue(*flags); }}};
}

#else

std::vector<Command> federation_commands(CLI::App& program) {
  auto* app = program.add_subcommand("federation", "Certificates for a study of several sites (not in this build)");
  app->allow_extras();
  return {{app, [] { return fail(usage_error(kNoEngines)); }}};
}

#endif

}  // namespace eigenveil::app
