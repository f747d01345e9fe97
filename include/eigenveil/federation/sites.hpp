// SPDX-License-Identifier: Apache-2.0
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

/// An ask as it is sent, and where it stands in the chain.
struct ChainedAsk {
  wire::v2::Ask ask;
  std::string bytes;  ///< canonical
  std::string head;   ///< h_number; `ask.prev()` is the one before
};

/// The answers that came, added up modulo 2^128.
struct Total {
  std::vector<Int128> values;
  std::set<std::string> from;
};

/// The coordinator's end of the connections. Sites dial in, each known by its certificate; whoever loses the connection
/// dials again and is told what it missed. Memory: one total, and one part of an answer per connection; what is longer
/// waits in temporary files until all of it is there.
class Sites {
 public:
  struct Options {
    std::string listen;  ///< host:port; port 0: any
    Identity identity;
    Pins peers;                                   ///< the sites by the names and keys of their certificates
    std::chrono::milliseconds patience{600'000};  ///< how long a site may take to accept or to answer
    Say say;
  };
  static Result<std::unique_ptr<Sites>> listen(Options options);
  ~Sites();

  int port() const;

  /// Proposes a study and waits for each site's word, which it must have signed. Refusals are in `lost`. `known`:
  /// accepted before a restart, and nobody else counts then.
  std::map<std::string, wire::v2::Accept> propose(const wire::v2::SignedProposal& proposal,
                                                  std::map<std::string, wire::v2::Accept> known);
  /// A Roster's bytes.
  void introduce(const std::string& roster);

  /// Asks the sites of the ask, waits, and adds up; a site that does not answer, refuses, sends something else or
  /// stands elsewhere in the chain (it was restored from a copy) is lost for the rest of the study.
  Total ask(const ChainedAsk& ask, const AnswerShape& shape);

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
