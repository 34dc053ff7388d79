// The table of options: parsing and --help come from the same lines.
#include "bench/load/options.h"

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "bench/load/workloads.h"
#include "protocol/number.h"

namespace idemd::bench {
namespace {

using Set = bool (*)(Options&, absl::string_view);

struct OptionLine {
  absl::string_view name;
  absl::string_view argument;  // "" for a flag
  absl::string_view help;
  Set set;  // false when the argument is none
};

template <class T>
bool Whole(absl::string_view text, uint64_t least, uint64_t most, T* value) {
  uint64_t number = 0;
  if (!protocol::ParseUint64(text, &number) || number < least || number > most) return false;
  *value = static_cast<T>(number);
  return true;
}

bool Number(absl::string_view text, double most, double* value) {
  double number = 0;
  if (!protocol::ParseDouble(text, &number) || !(number > 0) || number > most) return false;
  *value = number;
  return true;
}

bool Percent(absl::string_view text, double* share) {
  double number = 0;
  if (!protocol::ParseDouble(text, &number) || !(number >= 0) || number > 100) return false;
  *share = number / 100;
  return true;
}

bool Cpus(absl::string_view text, std::vector<int>* cpus) {
  cpus->clear();
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    int cpu = 0;
    if (!Whole(one, 0, 1023, &cpu)) return false;
    cpus->push_back(cpu);
  }
  return true;
}

bool Tests(absl::string_view text, std::vector<std::string>* tests) {
  tests->clear();
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    if (FindWorkload(one) == nullptr) return false;
    tests->emplace_back(one);
  }
  return true;
}

bool Text(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return !text.empty();
}

constexpr uint64_t kMost = uint64_t{1} << 40;

const OptionLine kLines[] = {
    {"-h", "HOST", "where the server is (127.0.0.1)",
     [](Options& o, absl::string_view w) { return Text(w, &o.target.host); }},
    {"-p", "PORT", "its port (6379)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, 65535, &o.target.port); }},
    {"-s", "PATH", "its Unix socket, instead of both",
     [](Options& o, absl::string_view w) { return Text(w, &o.target.socket); }},
    {"-a", "PASSWORD", "for AUTH",
     [](Options& o, absl::string_view w) { return Text(w, &o.target.password); }},
    {"--user", "NAME", "for AUTH, with -a",
     [](Options& o, absl::string_view w) { return Text(w, &o.target.user); }},
    {"--dbnum", "N", "SELECT this database (0)",
     [](Options& o, absl::string_view w) { return Whole(w, 0, 1u << 30, &o.target.db); }},
    {"-3", "", "RESP3", [](Options& o, absl::string_view) { return o.target.resp3 = true; }},
    {"--memcached", "", "the server speaks memcached's text protocol",
     [](Options& o, absl::string_view) { return o.target.memcached = true; }},
    {"-c", "N", "connections (50)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, 1'000'000, &o.connections); }},
    {"--threads", "N", "threads of this program (1)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, 1024, &o.threads); }},
    {"--cpu", "LIST", "keep thread i on the i-th of these processors, as in 1,2",
     [](Options& o, absl::string_view w) { return Cpus(w, &o.cpus); }},
    {"-P", "N", "requests in a batch, which a connection sends at once (1)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, 1'000'000, &o.pipeline); }},
    {"-n", "N", "requests (100000, or no limit with --seconds)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, kMost, &o.requests); }},
    {"--seconds", "S", "send for so long; with -n, whichever ends first",
     [](Options& o, absl::string_view w) { return Number(w, 1e7, &o.seconds); }},
    {"--rate", "N",
     "requests a second, sent when they are due even if earlier ones are not answered; latency "
     "counts "
     "from then",
     [](Options& o, absl::string_view w) { return Number(w, 1e9, &o.rate); }},
    {"-r", "N", "keys to draw from (1)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, kMost, &o.keys); }},
    {"-d", "BYTES", "of a value or an answer (3)",
     [](Options& o, absl::string_view w) { return Whole(w, 0, 512u << 20, &o.data_bytes); }},
    {"--key-space", "KIND",
     "redis (key:000000000042), uuid, token (as IDEM.TOKEN makes them) or name (36 characters)",
     [](Options& o, absl::string_view w) { return ReadKeySpace(w, &o.key_space); }},
    {"--prefix", "TEXT", "before each key",
     [](Options& o, absl::string_view w) { return Text(w, &o.prefix); }},
    {"--ttl", "SECONDS", "lifetime where a test gives one (86400)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, kMost, &o.ttl_s); }},
    {"--duplicates", "PERCENT", "of a retry storm's requests are about a recent key (80)",
     [](Options& o, absl::string_view w) { return Percent(w, &o.duplicates); }},
    {"--sets", "PERCENT", "of a mix are SET (50)",
     [](Options& o, absl::string_view w) { return Percent(w, &o.sets); }},
    {"--first", "N",
     "new keys are made from numbers from here on (by the clock, so that each run has its own)",
     [](Options& o, absl::string_view w) { return Whole(w, 1, uint64_t{1} << 62, &o.first); }},
    {"--seed", "N", "of what is drawn (1)",
     [](Options& o, absl::string_view w) { return Whole(w, 0, UINT64_MAX, &o.seed); }},
    {"--keep", "", "leave what a test made on the server",
     [](Options& o, absl::string_view) { return o.keep = true; }},
    {"-t", "TESTS", "names with commas between; --list shows them (ping,set,get)",
     [](Options& o, absl::string_view w) { return Tests(w, &o.tests); }},
    {"--list", "", "the tests there are",
     [](Options& o, absl::string_view) { return o.list = true; }},
    {"--server-pid", "PID", "show what this process, the server, used of the processors",
     [](Options& o, absl::string_view w) { return Whole(w, 1, 1u << 30, &o.server_pid); }},
    {"-q", "", "a line for each test",
     [](Options& o, absl::string_view) { return o.quiet = true; }},
    {"--csv", "", "redis-benchmark's columns, and more",
     [](Options& o, absl::string_view) { return o.csv = true; }},
    {"--json", "FILE", "everything, as JSON; - for standard output",
     [](Options& o, absl::string_view w) { return Text(w, &o.json_path); }},
    {"--svg", "FILE", "latency by percentile, as a picture",
     [](Options& o, absl::string_view w) { return Text(w, &o.svg_path); }},
    {"--help", "", "this", [](Options& o, absl::string_view) { return o.help = true; }},
    {"--version", "", "the version",
     [](Options& o, absl::string_view) { return o.version = true; }},
};

const OptionLine* FindLine(absl::string_view name) {
  for (const OptionLine& line : kLines) {
    if (line.name == name) return &line;
  }
  return nullptr;
}

absl::Status Check(Options& options) {
  if (options.help || options.list || options.version) return absl::OkStatus();
  if (options.requests == 0 && options.seconds == 0) options.requests = Options::kRequestsByDefault;
  if (options.tests.empty() && options.command.empty()) {
    options.tests = {"ping", "set", "get"};
    if (options.target.memcached) options.tests = {"set_ex", "get"};
  }
  if (!options.command.empty() && !options.tests.empty()) {
    return absl::InvalidArgumentError("either -t TESTS or a command");
  }
  if (options.threads > options.connections) {
    return absl::InvalidArgumentError("--threads: each needs a connection (-c)");
  }
  if (!options.target.user.empty() && options.target.password.empty()) {
    return absl::InvalidArgumentError("--user needs -a PASSWORD");
  }
  if (options.target.memcached) {
    if (!options.command.empty()) return absl::InvalidArgumentError("--memcached knows tests only");
    for (const std::string& name : options.tests) {
      if (!SuitsMemcached(*FindWorkload(name))) {
        return absl::InvalidArgumentError(
            absl::StrCat("--memcached: there is nothing like '", name, "' there"));
      }
    }
  }
  if (options.rate > 0) {
    for (const std::string& name : options.tests) {
      const Workload& workload = *FindWorkload(name);
      if (workload.steps.size() > 1 && !workload.mixed) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--rate: '", name, "' has steps that wait for each other, which no open loop does"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<absl::string_view>& words) {
  Options options;
  size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    absl::string_view name = words[i], argument;
    const size_t equals = name.size() > 2 && name[1] == '-' ? name.find('=') : name.npos;
    if (equals != name.npos) {
      argument = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    const OptionLine* line = FindLine(name);
    if (line == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("there is no ", name, "; --help shows all"));
    }
    if (line->argument.empty() && equals != name.npos) {
      return absl::InvalidArgumentError(absl::StrCat(name, " takes no argument"));
    }
    if (!line->argument.empty() && equals == words[i].npos) {
      if (++i == words.size()) {
        return absl::InvalidArgumentError(absl::StrCat(name, " needs ", line->argument));
      }
      argument = words[i];
    }
    if (!line->set(options, argument)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " ", argument, ": no ", line->argument, " (", line->help, ")"));
    }
  }
  for (; i < words.size(); ++i) options.command.emplace_back(words[i]);
  if (absl::Status status = Check(options); !status.ok()) return status;
  return options;
}

std::string HelpText() {
  std::string text =
      "idemd-bench [OPTION...] [COMMAND ARGUMENT...]\n\n"
      "Sends requests to a server that speaks the Redis protocol (idemd, Redis, Valkey), checks "
      "the\n"
      "replies, and says how fast they came. Its exit code is 1 when any reply was an error or "
      "not\n"
      "what the test expects.\n\n";
  for (const OptionLine& line : kLines) {
    std::string left =
        absl::StrCat("  ", line.name, line.argument.empty() ? "" : " ", line.argument);
    left.resize(std::max<size_t>(left.size() + 1, 23), ' ');
    absl::StrAppend(&text, left, line.help, "\n");
  }
  absl::StrAppend(
      &text,
      "\nIn a COMMAND of your own __key__ is one of the keys, __rand_int__ 12 digits of its "
      "number,\n"
      "__data__ the value, __claim__ a UUID of the key, __new_claim__ a fresh one.\n\n"
      "  idemd-bench -t token_cycle -P 16 -n 1000000\n"
      "  idemd-bench -t retry_storm --duplicates 90 --key-space uuid --rate 20000 --seconds 30\n"
      "  idemd-bench -r 1000000 --key-space uuid --seconds 5 GET __key__\n");
  return text;
}

}  // namespace idemd::bench
