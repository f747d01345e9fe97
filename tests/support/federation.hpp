#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <thread>

#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/coordinator.hpp"
#include "eigenveil/federation/site.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {

/// An authority for a test program, and certificates as they are asked for.
class Certificates {
 public:
  static Certificates& shared() {
    static Certificates one;
    return one;
  }
  federation::Identity identity(const std::string& name) {
    const std::string base = folder_.file("ca/");
    if (!std::filesystem::exists(base + name + ".crt"))
      need(federation::issue_certificate(folder_.file("ca"), name, {}, 2));
    auto identity = federation::Identity::read(base + "ca.crt", base + name + ".crt", base + name + ".key");
    if (!identity) throw std::runtime_error(identity.error().message);
    return *std::move(identity);
  }
  static std::string site(std::size_t i) { return "site-" + std::to_string(i); }

 private:
  Certificates() { need(federation::make_authority(folder_.file("ca"), "test", 2)); }
  static void need(const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  }
  TempDir folder_;
};

/// A line of numbers that read as they are.
template <class Row>
std::string csv_line(const Row& row) {
  std::string line;
  for (const double value : row) line += fmt::format("{}{}", line.empty() ? "" : ",", value);
  return line;
}

/// Sites in threads of this process, each with a share of the rows of a CSV file, that dial a coordinator.
class TestSites {
 public:
  /// Row i of the lines goes to site i mod n; `header` names the columns.
  TestSites(std::size_t n, const std::string& header, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < n; ++i) {
      std::ofstream out(folder_.file(Certificates::site(i) + ".csv"));
      out << header << "\n";
      for (std::size_t row = i; row < lines.size(); row += n) out << lines[row] << "\n";
      out.close();
      federation::SiteConfig config;
      config.coordinator_name = "coordinator";
      config.identity = Certificates::shared().identity(Certificates::site(i));
      config.data = folder_.file(Certificates::site(i) + ".csv");
      config.dataset = "rows";
      config.state = folder_.file("state-" + std::to_string(i));
      config.threads = 1;
      config.without_ledger = true;
      configs.push_back(config);
    }
  }
  ~TestSites() {
    for (std::thread& thread : threads_) thread.join();
  }

  /// What the coordinator says tells its port; the sites dial then.
  federation::CoordinatorOptions coordinator(federation::Aggregation aggregation, const std::string& estimator) {
    federation::CoordinatorOptions options;
    options.listen = "127.0.0.1:0";
    options.identity = Certificates::shared().identity("coordinator");
    for (std::size_t i = 0; i < configs.size(); ++i) options.sites.push_back(Certificates::site(i));
    options.aggregation = aggregation;
    options.journal = folder_.file("journal");
    options.estimator = estimator;
    options.patience_seconds = 30;
    options.say = [this](const std::string& line) {
      const std::string before = "waiting at port ";
      const std::size_t at = line.find(before);
      if (at == std::string::npos || !threads_.empty()) return;
      start(std::stoi(line.substr(at + before.size())));
    };
    return options;
  }

  std::vector<federation::SiteConfig> configs;

 private:
  void start(int port) {
    for (federation::SiteConfig config : configs)
      threads_.emplace_back([config, port]() mutable {
        config.coordinator = "127.0.0.1:" + std::to_string(port);
        federation::ServeOptions options{[](const std::string&) { return true; }, [](const std::string&) {}, true, 20};
        Observer silent;
        (void)federation::serve(config, options, silent);
      });
  }
  TempDir folder_;
  std::vector<std::thread> threads_;
};

}  // namespace eigenveil::test
