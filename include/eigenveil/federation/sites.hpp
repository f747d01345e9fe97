#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "eigenveil/federation/site.hpp"

namespace eigenveil::federation {

/// What every site's answer to an ask must look like.
struct AnswerShape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  bool symmetric = false;
  int shift = 0;
  std::uint64_t entries = 0;
};

/// The answers that came, added up modulo 2^128.
struct Total {
  std::vector<Int128> values;
  std::set<std::string> from;
};

/// The coordinator's end of the connections. Sites dial in, each known by its certificate; whoever loses the connection
/// dials again and is told what it missed. Memory: one total and one answer, however many sites there are.
class Sites {
 public:
  struct Options {
    std::string listen;  ///< host:port; port 0: any
    Identity identity;
    std::vector<std::string> names;               ///< common names of the sites' certificates
    std::chrono::milliseconds patience{600'000};  ///< how long a site may take to accept or to answer
    Say say;
  };
  static Result<std::unique_ptr<Sites>> listen(Options options);
  ~Sites();

  int port() const;

  /// Proposes a study and waits for each site's word. Refusals are in `lost`. `known`: accepted before a restart.
  std::map<std::string, wire::v2::Accept> propose(const wire::v2::Proposal& proposal, std::size_t columns,
                                                  std::map<std::string, wire::v2::Accept> known);
  void introduce(const wire::v2::Roster& roster);

  /// Asks the sites in `ask.among`, waits, and adds up; a site that does not answer, refuses or sends something else is
  /// lost for the rest of the study.
  Total ask(const wire::v2::Ask& ask, const AnswerShape& shape);

  /// Tells everyone who is there that the study is over.
  void finish();

  /// Why sites are no longer in the study.
  std::map<std::string, Error> lost() const;

 private:
  class Service;
  explicit Sites(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace eigenveil::federation
