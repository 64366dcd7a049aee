// The load generator: a program that plays many locks and uses as little CPU as possible: plain sockets, one thread,
// epoll, no allocation during a round. A ping costs two system calls: write the PUBLISH, read the PUBACK.
//
// The program takes one argument, a plan file with these lines:
//
//   port 1883
//   template 0801…          the bytes of an uplink, hex; the fields that change from ping to ping have a fixed length
//   sequence 7 0            the offset of the sequence (a varint of 3 bytes) in the template, and the number that
//                           precedes the first one; repeated before a lock that starts from another number
//   time 11                 the offset of the time, ms since the epoch (a varint of 6 bytes)
//   begin 1763618400000     optional: a ping's time is this plus its sequence, so that a ping that is sent again has
//                           the same bytes; without it, a ping has the time at which it is sent
//   lock MAC SECRET TOPIC   one line for each lock
//
// The program prints `{}` when all locks are connected. Each line of stdin is a command; the answer, after the last
// PUBACK, is `{"pings":n,"ms":t,"p50_ms":t,"p99_ms":t,"max_ms":t}`. The last three are times from PUBLISH to PUBACK.
//
//   flood N        N pings in all, one in flight for each lock, as fast as they are acknowledged
//   run MS         the same for this time
//   pace N RATE    N pings, RATE a second by a schedule, from the locks in turn. A lock has one ping in flight; a ping
//                  that must wait for the previous one is timed from its scheduled time
//   life MS        a flood for this time, or until the server dies. Answers `{}` when there are as many PUBACKs as
//                  locks, and at the end `{"last":[n,…]}`: the last acknowledged sequence of each lock
//
// node-generator.ts replaces this program where there is no compiler.
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <netinet/tcp.h>
#include <string>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kMaxConcurrentConnects = 200;
constexpr int kMaxEventsPerWait = 256;
// 3,600 s, so that the broker disconnects no lock that is silent between two rounds.
constexpr char kKeepalive[] = {0x0e, 0x10};
// Waking up for each PUBACK would cost as much CPU time as the ping. If fewer than kFewPubacks have arrived, the
// generator sleeps, so that the next wake-up finds several: for kFloodSleepUs in a flood, where a ping takes a hundred
// times as long, and for kPaceSleepUs in a pace. A measured time may be too long by this sleep.
constexpr int kFewPubacks = 32;
constexpr int kFloodSleepUs = 200;
constexpr int kPaceSleepUs = 500;
constexpr int kSequenceBytes = 3;
constexpr int kTimeBytes = 6;
constexpr uint32_t kSequenceLimit = 1u << 21;
constexpr long kNotInFlight = -1;
constexpr long kNoDeadline = -1;
constexpr long kNoLimit = 1L << 62;
// The number of measured times for which memory is reserved beforehand.
constexpr long kMaxReservedLatencies = 1000000;

// A simulated lock: its connection, its prepared packets, and the ping that is not acknowledged yet.
struct Lock {
  int fd = -1;
  // The bytes of its CONNECT.
  std::string connect;
  // The PUBLISH; the next members are offsets in it: of the packet id, and of the uplink's sequence and time.
  std::vector<uint8_t> packet;
  size_t id_at = 0, sequence_at = 0, time_at = 0;
  uint32_t sequence = 0;
  // The last acknowledged sequence.
  uint32_t acked = 0;
  // The scheduled time of the ping in flight, ns; kNotInFlight if none is in flight.
  long scheduled_ns = kNotInFlight;
  // In a pace: how many pings are due so far, and how many were sent.
  long due = 0, sent = 0;
};

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "the load generator: %s%s%s\n", what, errno ? ": " : "", errno ? std::strerror(errno) : "");
  std::exit(1);
}

long nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

// An MQTT string: its length in two bytes, and the text.
std::string length_prefixed(const std::string &value) {
  return std::string{static_cast<char>(value.size() >> 8), static_cast<char>(value.size() & 255)} + value;
}

// An MQTT packet: its type and flags, the length of the body in bytes of seven bits, and the body.
std::string packet(char type, const std::string &body) {
  std::string bytes(1, type);
  size_t remaining = body.size();
  do {
    bytes += static_cast<char>((remaining & 127) | (remaining > 127 ? 128 : 0));
    remaining >>= 7;
  } while (remaining > 0);
  return bytes + body;
}

// Writes a number as a protobuf varint of exactly so many bytes.
void put_varint(uint8_t *at, uint64_t value, int bytes) {
  for (int index = 0; index < bytes; index++, value >>= 7)
    at[index] = (value & 127) | (index < bytes - 1 ? 128 : 0);
}

std::string from_hex(const std::string &hex) {
  std::string bytes;
  for (size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return bytes;
}

class LoadGenerator {
 public:
  explicit LoadGenerator(const char *file) {
    std::ifstream plan(file);
    std::string word, uplink;
    size_t sequence_at = 0, time_at = 0;
    uint32_t first = 0;
    while (plan >> word) {
      if (word == "port") plan >> port_;
      else if (word == "template") { plan >> word; uplink = from_hex(word); }
      else if (word == "sequence") plan >> sequence_at >> first;
      else if (word == "time") plan >> time_at;
      else if (word == "begin") plan >> beginMs_;
      else if (word == "lock") {
        std::string mac, secret, topic;
        plan >> mac >> secret >> topic;
        Lock lock;
        // MQTT 3.1.1 (level 4), clean session with user name and password (0xc2).
        const std::string head = length_prefixed("MQTT") + std::string{4, '\xc2', kKeepalive[0], kKeepalive[1]};
        lock.connect = packet(0x10, head + length_prefixed(mac) + length_prefixed(mac) + length_prefixed(secret));
        // A PUBLISH with QoS 1; the two zeros are the place of the packet id.
        const std::string bytes = packet(0x32, length_prefixed(topic) + std::string(2, '\0') + uplink);
        const size_t uplink_at = bytes.size() - uplink.size();
        lock.packet.assign(bytes.begin(), bytes.end());
        lock.id_at = uplink_at - 2;
        lock.sequence_at = uplink_at + sequence_at;
        lock.time_at = uplink_at + time_at;
        lock.sequence = lock.acked = first;
        locks_.push_back(std::move(lock));
      } else fail("invalid line in the plan");
    }
    if (locks_.empty() || port_ == 0 || uplink.empty()) fail("the plan is incomplete");
  }

  void connect() {
    epoll_ = epoll_create1(0);
    for (size_t begin = 0; begin < locks_.size(); begin += kMaxConcurrentConnects) {
      const size_t end = std::min(begin + kMaxConcurrentConnects, locks_.size());
      for (size_t index = begin; index < end; index++) open(locks_[index]);
      for (size_t index = begin; index < end; index++) await_connack(index);
    }
  }

  // Sends at most `count` pings, for at most `span` ns.
  void flood(long count, long span) {
    send_and_wait(count, span);
    finish();
  }

  // The command `life`, for at most `span` ns. Connections may close.
  void flood_until_death(long span) {
    serverMayDie_ = true;
    isFirstRoundReported_ = false;
    send_and_wait(kNoLimit, span);
    serverMayDie_ = false;
    if (!isFirstRoundReported_) std::printf("{}\n");
    std::printf("{\"last\":[");
    for (const Lock &lock : locks_) std::printf("%s%u", &lock == locks_.data() ? "" : ",", lock.acked);
    std::printf("]}\n");
    std::fflush(stdout);
  }

  // Sends at most `count` pings, for at most `span` ns, and waits for the PUBACKs of all of them.
  void send_and_wait(long count, long span) {
    start(std::min(count, kMaxReservedLatencies));
    long sent = 0;
    const auto send_next = [&](Lock &lock) {
      const long now = nanoseconds(CLOCK_MONOTONIC);
      if (sent >= count || now - startedAt_ >= span) return;
      sent++;
      send(lock, now);
    };
    for (Lock &lock : locks_) send_next(lock);
    while (acked_ + givenUp_ < sent) {
      if (wait(kNoDeadline, send_next) < kFewPubacks) usleep(kFloodSleepUs);
      if (!serverMayDie_ || isFirstRoundReported_ || acked_ < static_cast<long>(locks_.size())) continue;
      isFirstRoundReported_ = true;
      std::printf("{}\n");
      std::fflush(stdout);
    }
  }

  // Sends `count` pings by a schedule, `rate` a second.
  void pace(long count, double rate) {
    start(count);
    const long begin = nanoseconds(CLOCK_MONOTONIC);
    const auto planned = [&](long ping) { return begin + static_cast<long>(static_cast<double>(ping) * 1e9 / rate); };
    const long lock_count = static_cast<long>(locks_.size());
    long next = 0;
    const auto send_due = [&](Lock &lock) {
      if (lock.scheduled_ns != kNotInFlight || lock.sent >= lock.due) return;
      send(lock, planned(lock.sent * lock_count + (&lock - locks_.data())));
      lock.sent++;
    };
    for (Lock &lock : locks_) lock.due = lock.sent = 0;
    while (acked_ < count) {
      const long now = nanoseconds(CLOCK_MONOTONIC);
      for (; next < count && planned(next) <= now; next++) {
        Lock &lock = locks_[next % lock_count];
        lock.due++;
        send_due(lock);
      }
      if (wait(next < count ? planned(next) : kNoDeadline, send_due) < kFewPubacks) usleep(kPaceSleepUs);
    }
    finish();
  }

 private:
  // Connects a lock's socket and sends its CONNECT.
  void open(Lock &lock) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    lock.fd = socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    if (lock.fd < 0) fail("no socket");
    setsockopt(lock.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (::connect(lock.fd, reinterpret_cast<sockaddr *>(&address), sizeof address) < 0) fail("connect");
    if (write(lock.fd, lock.connect.data(), lock.connect.size()) < 0) fail("CONNECT");
  }

  // Reads the lock's CONNACK, and then has epoll report what arrives.
  void await_connack(size_t index) {
    uint8_t connack[4];
    for (size_t received = 0; received < sizeof connack;) {
      const ssize_t count = read(locks_[index].fd, connack + received, sizeof connack - received);
      if (count <= 0) fail("no CONNACK");
      received += static_cast<size_t>(count);
    }
    errno = 0;
    if (connack[0] != 0x20 || connack[3] != 0) fail("a lock was refused");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, locks_[index].fd, &event) < 0) fail("epoll");
  }

  // Resets the counters for a round of up to `count` pings.
  void start(long count) {
    acked_ = givenUp_ = 0;
    latencies_.clear();
    latencies_.reserve(static_cast<size_t>(count));
    startedAt_ = nanoseconds(CLOCK_MONOTONIC);
    nowMs_ = static_cast<uint64_t>(nanoseconds(CLOCK_REALTIME) / 1000000);
  }

  // Sends a lock's next ping: its PUBLISH with another packet id, sequence and time.
  void send(Lock &lock, long scheduled_ns) {
    if (++lock.sequence >= kSequenceLimit) fail("a lock has used up its sequences");
    uint8_t *bytes = lock.packet.data();
    const uint32_t id = packet_id(lock);
    bytes[lock.id_at] = static_cast<uint8_t>(id >> 8);
    bytes[lock.id_at + 1] = static_cast<uint8_t>(id & 255);
    put_varint(bytes + lock.sequence_at, lock.sequence, kSequenceBytes);
    put_varint(bytes + lock.time_at, beginMs_ == 0 ? nowMs_ : beginMs_ + lock.sequence, kTimeBytes);
    lock.scheduled_ns = scheduled_ns;
    const ssize_t written = lock.fd < 0 ? -1 : write(lock.fd, bytes, lock.packet.size());
    if (written < 0 && serverMayDie_) give_up(lock);
    else if (written != static_cast<ssize_t>(lock.packet.size())) fail("a PUBLISH was not taken");
  }

  // The server has died, so the ping in flight won't be acknowledged.
  void give_up(Lock &lock) {
    if (lock.fd >= 0) close(lock.fd);
    lock.fd = -1;
    if (lock.scheduled_ns == kNotInFlight) return;
    lock.scheduled_ns = kNotInFlight;
    givenUp_++;
  }

  static uint32_t packet_id(const Lock &lock) { return lock.sequence % 65535 + 1; }

  // Waits for PUBACKs, at most until `until` (ns), and calls `next` for each lock with a PUBACK. Returns their number.
  template <typename Next>
  int wait(long until, Next next) {
    epoll_event events[kMaxEventsPerWait];
    timespec span{};
    timespec *limit = nullptr;
    if (until != kNoDeadline) {
      const long remaining = std::max(until - nanoseconds(CLOCK_MONOTONIC), 0L);
      span.tv_sec = remaining / 1000000000L;
      span.tv_nsec = remaining % 1000000000L;
      limit = &span;
    }
    const int count = static_cast<int>(syscall(SYS_epoll_pwait2, epoll_, events, kMaxEventsPerWait, limit, nullptr, 0));
    if (count < 0 && errno != EINTR) fail("epoll_pwait2");
    const long now = nanoseconds(CLOCK_MONOTONIC);
    nowMs_ = static_cast<uint64_t>(nanoseconds(CLOCK_REALTIME) / 1000000);
    for (int index = 0; index < count; index++) {
      Lock &lock = locks_[events[index].data.u64];
      uint8_t puback[16];
      errno = 0;
      const ssize_t size = read(lock.fd, puback, sizeof puback);
      if (size <= 0 && serverMayDie_) {
        give_up(lock);
        continue;
      }
      if (size != 4) fail("no PUBACK, or the connection was closed");
      const uint32_t id = packet_id(lock);
      if (lock.scheduled_ns == kNotInFlight || puback[0] != 0x40 || puback[2] != id >> 8 || puback[3] != (id & 255))
        fail("an unexpected PUBACK");
      latencies_.push_back(static_cast<float>(static_cast<double>(now - lock.scheduled_ns) / 1e6));
      lock.scheduled_ns = kNotInFlight;
      lock.acked = lock.sequence;
      acked_++;
      next(lock);
    }
    return count;
  }

  // The latency, ms, that `part` of all latencies don't exceed: 0.99 gives the 99th percentile.
  float percentile(double part) {
    const double rank = std::max(static_cast<double>(latencies_.size()) * part, 1.0);
    // The rank is rounded up, and counts from 1.
    const auto at = latencies_.begin() + static_cast<long>(rank + 0.999999) - 1;
    std::nth_element(latencies_.begin(), at, latencies_.end());
    return *at;
  }

  // Prints the result of a round.
  void finish() {
    const double ms = static_cast<double>(nanoseconds(CLOCK_MONOTONIC) - startedAt_) / 1e6;
    std::printf("{\"pings\":%ld,\"ms\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n", acked_, ms,
                percentile(0.5), percentile(0.99), percentile(1));
    std::fflush(stdout);
  }

  int port_ = 0, epoll_ = -1;
  std::vector<Lock> locks_;
  std::vector<float> latencies_;
  long acked_ = 0, givenUp_ = 0, startedAt_ = 0;
  uint64_t nowMs_ = 0, beginMs_ = 0;
  bool serverMayDie_ = false, isFirstRoundReported_ = false;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) fail("expected one argument, the plan's file");
  // A lock needs an open file.
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::signal(SIGPIPE, SIG_IGN);
  // Sleeps last as long as asked, without the system's usual slack of 50 µs.
  prctl(PR_SET_TIMERSLACK, 1);
  LoadGenerator generator(argv[1]);
  generator.connect();
  std::cout << "{}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    long count = 0;
    double rate = 0;
    if (std::sscanf(line.c_str(), "pace %ld %lf", &count, &rate) == 2 && count > 0 && rate > 0)
      generator.pace(count, rate);
    else if (std::sscanf(line.c_str(), "flood %ld", &count) == 1 && count > 0) generator.flood(count, kNoLimit);
    else if (std::sscanf(line.c_str(), "life %ld", &count) == 1 && count > 0)
      generator.flood_until_death(count * 1000000);
    else if (std::sscanf(line.c_str(), "run %ld", &count) == 1 && count > 0) generator.flood(kNoLimit, count * 1000000);
    else fail("invalid command");
  }
}
