/*
 * An example lock in plain C: the lock protocol over MQTT 3.1.1, without protobuf or MQTT libraries. docs/firmware.md
 * explains the protocol and how to run this file. It is a starting point for firmware, so it keeps to the order of that
 * document. Replace the sockets by your modem, `now` by network time, and the lines read from stdin by your sensors.
 *
 *   cc -std=c11 -Wall -Wextra -Werror -o lock lock.c -lm
 *   LOCK_SECRET=lgs_… ./lock A4C138F0E1D3 127.0.0.1 1883 flash.bin            the machine's clock; type events
 *   LOCK_SECRET=lgs_… ./lock A4C138F0E1D3 127.0.0.1 1883 flash.bin --stepped  each line begins with its time
 *
 * Events: unlock, lock, move SPEED DIRECTION (m/s, degrees), still, battery PERCENT, ebike MILLIVOLTS (-1: none),
 * coverage on|off, sky on|off, airplane on|off, modem-reset, tick (nothing happens). Plain TCP is for a bench only: in
 * the field use TLS.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int64_t ms; /* A time, ms since 1970-01-01T00:00:00Z, or a span. */
enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
#define NEVER INT64_MIN   /* As a time: it has not happened, or nothing runs that could end then. */
#define FOREVER INT64_MAX /* As a due time: nothing is due. */
#define FIRMWARE "1.0.0-c"
#define FIX_UNCERTAINTY_M 8
#define CELL_UNCERTAINTY_M 800
enum { THEFT = 1, PERIOD, STATE, UNLOCKED_PING, UNLOCKED_MOVEMENT, GPS, CELL, NETWORK, RESET, CLOSE, NO_REASON = 0 };
enum { OK = 1, REJECTED, FAILED };                    /* CommandResult */
enum { IN_CELLULAR = 7, IN_GPS, IN_CLOSE, IN_ACK };   /* the fields of Uplink.body */
enum mode { AIRPLANE, LOW_BATTERY, RECOVERY, HIGH, MID }; /* the effective state, by rank */
enum { KEPT_UPLINKS = 256, REMEMBERED_COMMANDS = 64, MAX_JOBS = 8, MAX_UPLINK = 160 };

struct power { bool high, ride_tracking, airplane, recovery; uint32_t from, to; int32_t utc_offset; };
struct uplink { uint32_t boot, sequence; uint8_t body, reason, length, bytes[MAX_UPLINK]; };
struct finished { uint32_t id; uint8_t result; bool sets_power; char detail[24]; };

/* What must survive a reset. It is written before anything is sent: a boot number must never be used twice. */
static struct flash {
  uint32_t boot;
  struct power power;
  bool locked;
  bool told_locked;     /* The lock state in the newest ping. */
  bool told_in_silence; /* The newest ping was made in a silent mode, so it may reach the gateway only much later. */
  bool airplane_told;   /* The close-connection ping that announces airplane mode has been made. */
  ms last_period;
  uint32_t waiting, remembered;
  struct uplink uplinks[KEPT_UPLINKS];
  struct finished commands[REMEMBERED_COMMANDS];
} flash = {.power = {.from = 7 * 60, .to = 19 * 60}, .locked = true, .told_locked = true, .last_period = NEVER}, saved;
static const char *flash_file;

static ms now;
static uint32_t sequence, dropped;
/* The sensors: position in degrees, speed in m/s, direction in degrees clockwise from north. */
static int battery = 90, ebike = -1; /* In percent; in millivolts, -1 without an e-bike. */
static bool moving, covered = true, sky = true, stepped;
static double latitude = 52.3702157, longitude = 4.8951679, speed, direction;
static ms measured_at, motion_since = NEVER, lock_since = NEVER, sky_since = NEVER;
/* The triggers. An `until` is the end of a search for a fix, or NEVER while the trigger waits for none. */
static enum { NONE, IN_THEFT, IN_RIDE } tracking;
static ms track_cell_at = NEVER, track_gps_at = NEVER, track_until = NEVER;
static ms state_until = NEVER, period_until = NEVER, next_period, network_at = NEVER;
static struct jobs { uint32_t ids[MAX_JOBS]; int count; ms until; } locates, lockings;
static bool gps_on;
static ms gps_since, gps_takes, last_fix = NEVER;
/* The connection. */
static const char *mac, *host, *port, *secret;
static int sock = -1;
static bool in_flight;
static bool reset_after_close; /* The modem restarts once the close-connection ping is acknowledged. */
static bool reset_ping_due;    /* The modem has restarted, and no ping has said so yet. */
static bool silence_ping_due;   /* The close-connection ping that announces a silent mode must still be made. */
static bool tries_silence_ping; /* The only attempt to send it is due or under way. */
static uint32_t sent_on_link, failures;
static uint16_t packet_id;
static ms traffic_at, retry_at = NEVER, last_sent_real;

static ms max(ms one, ms other) { return one > other ? one : other; }
static ms min(ms one, ms other) { return one < other ? one : other; }
static ms real_ms(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (ms)t.tv_sec * SECOND + t.tv_nsec / 1000000;
}

/* ---- protobuf: every field is a tag (field number * 8 + wire type) and a value; zeros are left out ---- */

static uint8_t *varint(uint8_t *to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = (uint8_t)(value | 0x80);
  *to++ = (uint8_t)value;
  return to;
}
static uint8_t *present(uint8_t *to, int field, uint64_t value) { /* An `optional` field: its zero is sent too. */
  return varint(varint(to, (uint64_t)field << 3), value);
}
static uint8_t *number(uint8_t *to, int field, uint64_t value) { return value == 0 ? to : present(to, field, value); }
static uint64_t zigzag(int64_t value) { return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63); } /* sint32 */
static uint8_t *fixed32(uint8_t *to, int field, int32_t value) {
  to = varint(to, (uint64_t)field << 3 | 5);
  for (int shift = 0; shift < 32; shift += 8) *to++ = (uint8_t)((uint32_t)value >> shift);
  return to;
}
static uint8_t *bytes(uint8_t *to, int field, const void *from, size_t length) {
  to = varint(varint(to, (uint64_t)field << 3 | 2), length);
  memcpy(to, from, length);
  return to + length;
}
struct field { uint32_t number; bool has_bytes; uint64_t value; const uint8_t *bytes; }; /* the value, or its length */
static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    *value |= (uint64_t)(**at & 0x7f) << shift;
    if (*(*at)++ < 0x80) return true;
  }
  return false;
}
static bool read_field(const uint8_t **at, const uint8_t *end, struct field *field) {
  uint64_t tag, size;
  if (!read_varint(at, end, &tag)) return false;
  field->number = (uint32_t)(tag >> 3);
  field->has_bytes = (tag & 7) == 2;
  if ((tag & 7) == 0) return read_varint(at, end, &field->value);
  if (field->has_bytes && !read_varint(at, end, &field->value)) return false;
  if (!field->has_bytes && (tag & 7) != 1 && (tag & 7) != 5) return false;
  field->bytes = *at;
  size = field->has_bytes ? field->value : (tag & 7) == 1 ? 8 : 4; /* A field of a later version is skipped. */
  if (size > (uint64_t)(end - *at)) return false;
  *at += size;
  return true;
}

/* ---- uplinks: made at the moment they speak of, kept until acknowledged, sent as the same bytes ---- */

static enum mode mode_of(struct power power, int percent) {
  if (power.airplane) return AIRPLANE;
  if (percent < 10) return LOW_BATTERY;
  return power.recovery ? RECOVERY : power.high ? HIGH : MID;
}
static bool is_silent(enum mode mode) { return mode <= LOW_BATTERY; }
static enum mode mode(void) { return mode_of(flash.power, battery); }

static void remove_uplink(uint32_t index) {
  memmove(flash.uplinks + index, flash.uplinks + index + 1, (--flash.waiting - index) * sizeof *flash.uplinks);
}
/* A full buffer loses the oldest uplink that is not of a theft; never the one in flight. */
static void discard_oldest(void) {
  uint32_t index = in_flight;
  while (index < flash.waiting && flash.uplinks[index].reason == THEFT) index++;
  remove_uplink(index < flash.waiting ? index : in_flight);
  dropped++;
}
static void make_uplink(int body, int reason, const uint8_t *content, size_t length) {
  struct uplink uplink = {.boot = flash.boot, .sequence = ++sequence, .body = (uint8_t)body, .reason = (uint8_t)reason};
  uint8_t power[16], *end = power, *to = uplink.bytes;
  uint32_t index;
  if (flash.waiting == KEPT_UPLINKS) discard_oldest();
  if (!flash.power.airplane) flash.airplane_told = false;
  end = number(end, 1, flash.power.high);
  end = number(end, 2, flash.power.ride_tracking);
  end = number(end, 3, flash.power.airplane);
  end = number(end, 4, flash.power.recovery);
  to = present(to, 1, flash.boot);
  to = present(to, 2, sequence);
  to = present(to, 3, (uint64_t)now);
  if (end > power) to = bytes(to, 4, power, (size_t)(end - power));
  to = number(to, 5, flash.waiting);
  to = number(to, 6, dropped);
  to = bytes(to, body, content, length);
  uplink.length = (uint8_t)(to - uplink.bytes);
  index = flash.waiting++;
  if (body == IN_CELLULAR && (reason == THEFT || reason == RESET)) { /* This ping overtakes others. */
    for (index = in_flight; index + 1 < flash.waiting; index++)
      if (flash.uplinks[index].body != IN_CELLULAR || flash.uplinks[index].reason != THEFT) break;
    memmove(flash.uplinks + index + 1, flash.uplinks + index, (flash.waiting - 1 - index) * sizeof uplink);
  }
  flash.uplinks[index] = uplink;
}
static void measure(void) { /* The receiver: here dead reckoning, on your lock the GPS module. */
  double metres = speed * (double)(now - measured_at) / SECOND, turn = direction * 3.14159265358979 / 180;
  latitude += metres * cos(turn) / 111320;
  longitude += metres * sin(turn) / (111320 * cos(latitude * 3.14159265358979 / 180));
  measured_at = now;
}
static void make_ping(int body, int reason) {
  uint8_t content[80], *to = content;
  int first = body == IN_CLOSE ? 1 : 2; /* A close-connection ping has no reason. */
  if (body != IN_CLOSE) to = number(to, 1, (uint64_t)reason);
  to = number(to, first, flash.locked ? 1 : 2);
  to = number(to, first + 1, (uint64_t)battery);
  measure();
  if (body == IN_CELLULAR) {
    to = bytes(to, 4, FIRMWARE, strlen(FIRMWARE));
    if (ebike >= 0) to = present(to, 5, (uint64_t)ebike);
    to = number(to, 6, 2); /* The tether is detached. */
  }
  if (body == IN_GPS && ebike >= 0) to = present(to, 4, (uint64_t)ebike);
  if (body == IN_GPS) to = number(to, 5, 2);
  if (body == IN_GPS || reason == CELL) {
    int field = body == IN_GPS ? 6 : 7;
    to = fixed32(to, field, (int32_t)lround(latitude * 1e7));
    to = fixed32(to, field + 1, (int32_t)lround(longitude * 1e7));
  }
  if (body == IN_GPS) {
    to = number(to, 8, zigzag(lround(speed * 100)));
    to = number(to, 9, zigzag(lround(direction * 100) % 36000));
    to = number(to, 10, zigzag(FIX_UNCERTAINTY_M));
    last_fix = now;
  }
  if (reason == CELL) to = number(to, 9, zigzag(CELL_UNCERTAINTY_M));
  flash.told_locked = flash.locked;
  flash.told_in_silence = is_silent(mode());
  make_uplink(body, reason, content, (size_t)(to - content));
  if (body == IN_CLOSE && flash.power.airplane) flash.airplane_told = true;
}

/* ---- commands: each id is carried out once and acknowledged each time ---- */

static void acknowledge(const struct finished *command) {
  uint8_t content[80], window[16], *to = content, *end = window;
  to = number(to, 1, command->id);
  to = number(to, 2, command->result);
  if (command->detail[0]) to = bytes(to, 3, command->detail, strlen(command->detail));
  if (command->sets_power) {
    end = number(end, 1, flash.power.from);
    end = number(end, 2, flash.power.to);
    end = number(end, 3, zigzag(flash.power.utc_offset));
    to = bytes(to, 4, window, (size_t)(end - window));
  }
  make_uplink(IN_ACK, NO_REASON, content, (size_t)(to - content));
}
static struct finished *find_finished(uint32_t id) {
  for (uint32_t i = 0; i < flash.remembered; i++)
    if (flash.commands[i].id == id) return flash.commands + i;
  return NULL;
}
static void finish(uint32_t id, int result, const char *detail, bool sets_power) {
  struct finished *command = find_finished(id);
  if (command == NULL) {
    if (flash.remembered == REMEMBERED_COMMANDS)
      memmove(flash.commands, flash.commands + 1, --flash.remembered * sizeof *flash.commands);
    command = flash.commands + flash.remembered++;
    *command = (struct finished){.id = id, .result = (uint8_t)result, .sets_power = sets_power};
    snprintf(command->detail, sizeof command->detail, "%s", detail);
  }
  acknowledge(command);
}
static void add_job(struct jobs *jobs, uint32_t id, ms until) {
  if (jobs->count == 0) jobs->until = until;
  if (jobs->count < MAX_JOBS) jobs->ids[jobs->count++] = id;
}
static void finish_jobs(struct jobs *jobs, int result, const char *detail) {
  int count = jobs->count;
  jobs->count = 0;
  for (int i = 0; i < count; i++) finish(jobs->ids[i], result, detail, false);
}
static void plan_period(void) { /* The same minute of each UTC day, spread over the fleet by the MAC. */
  uint32_t hash = 0x811c9dc5;
  ms from = flash.last_period == NEVER ? now : max(now, flash.last_period + 1);
  for (const char *digit = mac; *digit; digit++) hash = (hash ^ (uint8_t)*digit) * 0x01000193;
  next_period = from / DAY * DAY + (ms)((hash ^ hash >> 15) % 1440) * MINUTE;
  if (next_period < from) next_period += DAY;
  if (flash.last_period != NEVER) next_period = max(next_period, flash.last_period + 23 * HOUR);
}
static void connect_at_once(void) { retry_at = now, failures = 0; }
static void change_lock(bool locked) {
  if (flash.locked == locked) return;
  flash.locked = locked;
  lock_since = now;
  if (is_silent(mode()) || (locked == flash.told_locked && !flash.told_in_silence)) return;
  connect_at_once();
  make_ping(IN_CELLULAR, STATE); /* Before any other ping can carry the new state. */
  state_until = now + 120 * SECOND;
}
static void change_power(struct power power, int percent) {
  enum mode before = mode(), after = mode_of(power, percent);
  if (after != before && is_silent(after)) { /* Answer what still waits, with the old settings. */
    finish_jobs(&lockings, FAILED, "the lock falls silent");
    finish_jobs(&locates, FAILED, "the lock falls silent");
  }
  if (power.ride_tracking && !flash.power.ride_tracking) track_until = now + 120 * SECOND;
  flash.power = power;
  battery = percent;
  if (after == before) return;
  if (is_silent(before)) plan_period(); /* A daily ping that fell into the silence is left out. */
  connect_at_once();
  silence_ping_due = is_silent(after);
  tries_silence_ping = false;
  if (!is_silent(after)) return;
  state_until = period_until = NEVER;
  if (tracking == IN_THEFT) track_cell_at = NEVER;
}
static struct power read_power(struct power power, const uint8_t *at, const uint8_t *end) {
  struct field field;
  while (read_field(&at, end, &field)) {
    if (field.number == 1) power.high = field.value == 1;
    if (field.number == 2) power.ride_tracking = field.value;
    if (field.number == 3) power.airplane = field.value;
    if (field.number == 4) power.recovery = field.value;
    if (field.number != 5 || !field.has_bytes) continue;
    power.from = power.to = 0, power.utc_offset = 0;
    for (const uint8_t *part = field.bytes, *stop = part + field.value; read_field(&part, stop, &field);) {
      if (field.number == 1) power.from = (uint32_t)field.value;
      if (field.number == 2) power.to = (uint32_t)field.value;
      if (field.number == 3) power.utc_offset = (int32_t)(field.value >> 1) ^ -(int32_t)(field.value & 1);
    }
  }
  return power;
}
static void carry_out(uint32_t id, struct field command) {
  struct field seconds = {0};
  struct power power;
  switch (command.number) {
    case 3:
      finish_jobs(&lockings, FAILED, "overtaken by an unlock");
      change_lock(false); /* Here the motor turns. The state ping comes first, then the acknowledgement. */
      finish(id, OK, "", false);
      return;
    case 4: add_job(&lockings, id, now + 5 * SECOND); return; /* Here the warning tone sounds. */
    case 5:
      read_field(&command.bytes, command.bytes + command.value, &seconds);
      printf("siren %" PRIu64 "\n", seconds.value);
      finish(id, OK, "", false);
      return;
    case 6: add_job(&locates, id, now + 120 * SECOND); return;
    case 7:
      make_ping(IN_CELLULAR, CELL);
      finish(id, OK, "", false);
      return;
    case 8:
      power = read_power(flash.power, command.bytes, command.bytes + command.value);
      if (power.from >= 1440 || power.to >= 1440 || abs(power.utc_offset) >= 1440) {
        finish(id, REJECTED, "window outside the day", true);
        return;
      }
      change_power(power, battery);
      finish(id, OK, "", true);
      return;
    case 9:
      finish(id, OK, "", false);
      make_ping(IN_CLOSE, CLOSE);
      reset_after_close = true;
      return;
    default: finish(id, REJECTED, "unknown command", false);
  }
}
static void on_downlink(const uint8_t *at, size_t length) {
  const uint8_t *end = at + length;
  struct field field, command = {0};
  uint32_t id = 0;
  ms expires = 0;
  while (read_field(&at, end, &field)) {
    if (field.number == 1) id = (uint32_t)field.value;
    else if (field.number == 2) expires = (ms)field.value;
    else if (field.has_bytes) command = field;
  }
  printf("command %" PRIu32 "\n", id);
  if (id == 0 || is_silent(mode())) return;
  traffic_at = now;
  if (find_finished(id)) acknowledge(find_finished(id));
  else if (now >= expires) finish(id, REJECTED, "expired", false);
  else carry_out(id, command);
}

/* ---- MQTT 3.1.1: CONNECT, SUBSCRIBE, one PUBLISH in flight, PINGREQ, DISCONNECT ---- */

static void mark_down(void) {
  if (sock < 0) return;
  close(sock);
  sock = -1;
  in_flight = false;
  reset_ping_due = reset_ping_due || reset_after_close;
  reset_after_close = false;
  printf("disconnected\n");
}
static void schedule_retry(void) { /* 10, 30, 60 s, then every 5 min ± 20 %. */
  static const ms waits[] = {10 * SECOND, 30 * SECOND, 60 * SECOND};
  retry_at = now + (failures < 3 ? waits[failures] : 4 * MINUTE + rand() % (2 * MINUTE));
  failures++;
  tries_silence_ping = false; /* Silence is announced in one attempt. */
}
static bool send_packet(uint8_t type, const uint8_t *content, size_t length) {
  uint8_t packet[512], *to = packet;
  *to++ = type;
  to = varint(to, length);
  if (length > 0) memcpy(to, content, length);
  to += length;
  last_sent_real = real_ms(CLOCK_MONOTONIC);
  return send(sock, packet, (size_t)(to - packet), MSG_NOSIGNAL) == to - packet;
}
static uint8_t *text(uint8_t *to, const char *from) {
  size_t length = strlen(from);
  *to++ = (uint8_t)(length >> 8), *to++ = (uint8_t)length;
  memcpy(to, from, length);
  return to + length;
}
static bool read_bytes(uint8_t *to, size_t length) {
  for (ssize_t part; length > 0; to += part, length -= (size_t)part)
    if ((part = recv(sock, to, length, 0)) <= 0) return false;
  return true;
}
static int read_packet(uint8_t *content, size_t room, size_t *length) { /* The first byte, or -1. */
  uint8_t type, digit;
  *length = 0;
  if (!read_bytes(&type, 1)) return -1;
  for (int shift = 0; shift < 28; shift += 7) {
    if (!read_bytes(&digit, 1)) return -1;
    *length |= (size_t)(digit & 0x7f) << shift;
    if (digit < 0x80) break;
  }
  return *length <= room && read_bytes(content, *length) ? type : -1;
}
static int open_socket(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  struct timeval limit = {.tv_sec = 10};
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  sock = socket(found->ai_family, SOCK_STREAM, 0);
  setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (sock >= 0 && connect(sock, found->ai_addr, found->ai_addrlen) != 0) close(sock), sock = -1;
  freeaddrinfo(found);
  return sock;
}
static void connect_lock(void) {
  static const uint8_t head[] = {0, 4, 'M', 'Q', 'T', 'T', 4, 0xc2, 300 >> 8, 300 & 0xff}; /* clean, user, password */
  static const uint8_t subscribe[] = {0, 1, 0, 4, 'd', 'o', 'w', 'n', 1};
  uint8_t content[256], *to = content;
  size_t length;
  bool up = false;
  if (!covered || open_socket() < 0) {
    schedule_retry();
    return;
  }
  memcpy(to, head, sizeof head);
  to = text(text(text(to + sizeof head, mac), mac), secret);
  packet_id = 1;
  if (send_packet(0x10, content, (size_t)(to - content)) && read_packet(content, sizeof content, &length) == 0x20) {
    if (content[1] == 0) {
      up = send_packet(0x82, subscribe, sizeof subscribe) &&
           read_packet(content, sizeof content, &length) == 0x90 && content[2] <= 1;
      if (!up) fprintf(stderr, "the subscription to `down` failed\n");
    } else {
      fprintf(stderr, "the gateway refused the connection: CONNACK %u\n", content[1]);
      if (content[1] != 3) failures = 3; /* Only a person can help, so wait longer from the start. */
    }
  }
  if (!up) {
    close(sock), sock = -1;
    schedule_retry();
    return;
  }
  printf("connected\n");
  in_flight = false, sent_on_link = 0, traffic_at = now, network_at = NEVER;
  if (!reset_ping_due || is_silent(mode())) return;
  reset_ping_due = false;
  make_ping(IN_CELLULAR, RESET);
}
static void disconnect(void) { /* Wait for the gateway's end, so that nothing is cut off. */
  uint8_t rest[64];
  send_packet(0xe0, NULL, 0);
  shutdown(sock, SHUT_WR);
  while (recv(sock, rest, sizeof rest, 0) > 0) continue;
  mark_down();
  retry_at = now;
}
static void lose_link(void) {
  if (sock < 0) return;
  mark_down();
  schedule_retry();
}
static void publish_first(void) {
  uint8_t content[MAX_UPLINK + 8] = {0, 2, 'u', 'p'}, *to = content + 4;
  const struct uplink *first = flash.uplinks;
  packet_id = packet_id == 0xffff ? 2 : packet_id + 1;
  *to++ = (uint8_t)(packet_id >> 8), *to++ = (uint8_t)packet_id;
  memcpy(to, first->bytes, first->length);
  in_flight = true, sent_on_link++, traffic_at = now;
  if (!send_packet(0x32, content, 6u + first->length)) lose_link();
}

/* ---- what a lock does: the same steps after everything that happens ---- */

static bool in_window(void) {
  int64_t minute = ((now / MINUTE + flash.power.utc_offset) % 1440 + 1440) % 1440, from = flash.power.from,
          to = flash.power.to;
  return from == to || (from < to ? minute >= from && minute < to : minute >= from || minute < to);
}
static bool keeps_connection(void) { return mode() == RECOVERY || (mode() == HIGH && in_window()); }
static bool must_stay_open(void) {
  return tracking || state_until != NEVER || period_until != NEVER || locates.count || lockings.count ||
         keeps_connection();
}
static bool wants_link(void) {
  bool theft = tracking == IN_THEFT;
  if (!is_silent(mode())) return flash.waiting > 0 || reset_ping_due || must_stay_open();
  for (uint32_t i = 0; i < flash.waiting; i++) theft = theft || flash.uplinks[i].reason == THEFT;
  return (mode() == LOW_BATTERY && theft) || tries_silence_ping;
}
static ms fix_at(void) { return max(gps_since, sky_since) + gps_takes; }
static bool has_fix(void) { return gps_on && sky && now >= fix_at(); }
static void search(void) {
  gps_since = now;
  gps_takes = last_fix != NEVER && now - last_fix < 2 * HOUR ? 5 * SECOND : 30 * SECOND; /* warm or cold */
}
static bool tracks_by_gps(void) { return tracking == IN_THEFT || (tracking == IN_RIDE && flash.power.ride_tracking); }
static bool wants_one_fix(void) { return state_until != NEVER || period_until != NEVER || locates.count > 0; }
static bool wants_fix(void) { return wants_one_fix() || (tracks_by_gps() && (has_fix() || now < track_until)); }
static ms track_gps_due(void) {
  if (track_gps_at == NEVER) return now;
  return !moving ? FOREVER : track_gps_at + (tracking == IN_THEFT ? 10 : 30) * SECOND;
}
static ms theft_starts(void) {
  if (!moving || !flash.locked || mode() == AIRPLANE) return FOREVER;
  return max(motion_since, lock_since) + 6 * SECOND + 1; /* More than 6 s, in whole ms. */
}
static void track(void) {
  if (tracking) {
    bool allowed = tracking == IN_THEFT ? flash.locked && mode() != AIRPLANE : !flash.locked && !is_silent(mode());
    if (!allowed || (!moving && now >= motion_since + 2 * MINUTE)) tracking = NONE;
  }
  if (!tracking) {
    if (now >= theft_starts()) tracking = IN_THEFT;
    else if (moving && !flash.locked && !is_silent(mode())) tracking = IN_RIDE;
    else return;
    track_cell_at = track_gps_at = NEVER;
    connect_at_once();
  }
  if (track_cell_at == NEVER || now >= track_cell_at + 5 * MINUTE) {
    track_cell_at = now;
    track_until = now + 120 * SECOND;
    make_ping(IN_CELLULAR, tracking == IN_THEFT ? THEFT : UNLOCKED_MOVEMENT);
  }
  if (!tracks_by_gps() || !has_fix() || now < track_gps_due()) return;
  track_gps_at = now;
  make_ping(IN_GPS, tracking == IN_THEFT ? THEFT : UNLOCKED_PING);
}
static void one_fix(ms *until, int reason) {
  if (*until == NEVER || (!has_fix() && now < *until)) return;
  if (has_fix()) make_ping(IN_GPS, reason);
  *until = NEVER;
}
static void save_flash(void) {
  FILE *file;
  if (flash_file == NULL || memcmp(&flash, &saved, sizeof flash) == 0) return;
  saved = flash;
  if ((file = fopen(flash_file, "wb")) == NULL || fwrite(&flash, sizeof flash, 1, file) != 1 || fclose(file) != 0)
    perror(flash_file), exit(1); /* Without a flash that can be written, a lock must not send. */
}
static void settle_link(void) {
  if (sock < 0 && now >= retry_at && wants_link()) connect_lock();
  if (sock < 0) return;
  if (in_flight) {
    if (now >= traffic_at + 300 * SECOND) lose_link();
    return;
  }
  if (keeps_connection() && (network_at == NEVER || now >= network_at + 15 * MINUTE)) {
    network_at = now;
    make_ping(IN_CELLULAR, NETWORK);
  }
  if (!keeps_connection()) network_at = NEVER;
  if (flash.waiting == 0 && !must_stay_open()) {
    if (flash.power.airplane && flash.airplane_told) {
      disconnect();
      return;
    }
    if (now >= traffic_at + 20 * SECOND) make_ping(IN_CLOSE, CLOSE);
  }
  save_flash();
  if (flash.waiting > 0) publish_first();
}
static void act(void) {
  if (lockings.count > 0 && now >= lockings.until) {
    change_lock(true); /* Here the motor turns. */
    finish_jobs(&lockings, OK, "");
  }
  track();
  one_fix(&state_until, STATE);
  if (!is_silent(mode()) && now >= next_period) {
    connect_at_once();
    make_ping(IN_CELLULAR, PERIOD);
    period_until = now + 120 * SECOND;
    flash.last_period = now;
    plan_period();
  }
  one_fix(&period_until, PERIOD);
  if (locates.count > 0 && (has_fix() || now >= locates.until)) {
    bool found = has_fix();
    if (found) make_ping(IN_GPS, GPS);
    finish_jobs(&locates, found ? OK : FAILED, found ? "" : "no fix");
  }
  if (silence_ping_due && !(mode() == LOW_BATTERY && tracking == IN_THEFT)) {
    silence_ping_due = false;
    if (!(flash.power.airplane && flash.airplane_told)) {
      make_ping(IN_CLOSE, CLOSE);
      tries_silence_ping = true;
      retry_at = now;
    }
  }
  save_flash();
  settle_link();
  if (wants_fix() != gps_on) {
    if (gps_on && has_fix()) last_fix = now;
    gps_on = !gps_on;
    if (gps_on) search();
  }
}
static ms next_minute(uint32_t of_day) { /* When the window opens or closes next. */
  int64_t minutes = ((int64_t)of_day - flash.power.utc_offset - now / MINUTE - 1) % 1440;
  return (now / MINUTE + 1 + (minutes + 1440) % 1440) * MINUTE;
}
static ms next_wake(void) { /* The earliest time at which the lock acts although nothing happens. */
  ms due = is_silent(mode()) ? FOREVER : next_period, until;
  if (mode() == HIGH) due = min(due, min(next_minute(flash.power.from), next_minute(flash.power.to)));
  if (!tracking) due = min(due, theft_starts());
  else due = min(due, min(track_cell_at + 5 * MINUTE, moving ? FOREVER : motion_since + 2 * MINUTE));
  if (has_fix()) due = min(due, wants_one_fix() ? now : tracks_by_gps() ? track_gps_due() : FOREVER);
  else if (gps_on) {
    if (sky) due = min(due, fix_at());
    if (state_until != NEVER) due = min(due, state_until);
    if (period_until != NEVER) due = min(due, period_until);
    if (locates.count > 0) due = min(due, locates.until);
    if (tracks_by_gps() && track_until > now) due = min(due, track_until);
  }
  if (lockings.count > 0) due = min(due, lockings.until);
  if (sock < 0) until = wants_link() ? retry_at : FOREVER;
  else if (in_flight) until = traffic_at + 300 * SECOND;
  else if (keeps_connection()) until = network_at + 15 * MINUTE;
  else until = flash.waiting == 0 && !must_stay_open() ? traffic_at + 20 * SECOND : FOREVER;
  return max(min(due, until), now);
}

/* ---- what happens: a packet, or an event of the sensors ---- */

static void on_packet(void) {
  uint8_t content[2048], puback[2];
  size_t length;
  struct uplink first = flash.uplinks[0];
  int type = read_packet(content, sizeof content, &length);
  if (type < 0) {
    lose_link();
  } else if (type >> 4 == 3 && length >= 2) { /* PUBLISH to `down`: acknowledge the packet, then act on it. */
    size_t topic = 2 + (size_t)(content[0] << 8 | content[1]), header = topic + (type & 6 ? 2 : 0);
    if (header > length) return;
    memcpy(puback, content + topic, 2);
    if (type & 6) send_packet(0x40, puback, 2);
    on_downlink(content + header, length - header);
  } else if (type == 0x40 && length >= 2 && in_flight && (content[0] << 8 | content[1]) == packet_id) {
    bool closes = false;
    in_flight = false, failures = 0;
    remove_uplink(0);
    for (uint32_t i = 0; i < flash.waiting; i++) closes = closes || flash.uplinks[i].body == IN_CLOSE;
    if (first.body != IN_CLOSE) return;
    if (!closes) tries_silence_ping = false;
    /* A close-connection ping that comes first belongs to the connection before, so this one may go on. */
    if (sent_on_link > 1 || reset_after_close || (flash.waiting == 0 && !must_stay_open())) disconnect();
  }
}
static void on_event(char *line) {
  struct power power = flash.power;
  char name[16] = "", word[16] = "";
  double first = 0, second = 0;
  sscanf(line, "%15s %15s", name, word);
  sscanf(line, "%*s %lf %lf", &first, &second);
  measure();
  bool on = strcmp(word, "on") == 0;
  if (strcmp(name, "unlock") == 0) change_lock(false);
  if (strcmp(name, "lock") == 0) change_lock(true);
  if (strcmp(name, "battery") == 0) change_power(power, (int)first);
  if (strcmp(name, "ebike") == 0) ebike = (int)first;
  if (strcmp(name, "airplane") == 0) power.airplane = on, change_power(power, battery);
  if (strcmp(name, "move") == 0 || strcmp(name, "still") == 0) {
    bool moves = name[0] == 'm';
    if (moves != moving) motion_since = now;
    moving = moves, speed = first, direction = second;
  }
  if (strcmp(name, "coverage") == 0 && covered != on) {
    covered = on;
    if (!on) lose_link();
  }
  if (strcmp(name, "sky") == 0 && sky != on) {
    bool lost = has_fix() && !on;
    sky = on, sky_since = now;
    if (lost) last_fix = now, track_until = now + 120 * SECOND, search();
  }
  if (strcmp(name, "modem-reset") == 0) mark_down(), reset_ping_due = true, retry_at = now;
}
static bool read_events(void) { /* False at the end of the input: the lock loses its power. */
  static char input[4096];
  static size_t held;
  ssize_t part = read(STDIN_FILENO, input + held, sizeof input - 1 - held);
  char *line = input, *end;
  if (part <= 0) return false;
  held += (size_t)part;
  input[held] = 0;
  for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = 0;
    if (stepped) now = max(now, strtoll(line, &line, 10));
    on_event(line);
    act();
  }
  held -= (size_t)(line - input);
  memmove(input, line, held);
  return true;
}
int main(int count, char **words) {
  FILE *file;
  char line[64];
  if (count < 4 || (secret = getenv("LOCK_SECRET")) == NULL || strlen(secret) > 64 || strlen(words[1]) != 12) {
    fprintf(stderr, "usage: LOCK_SECRET=lgs_… %s MAC HOST PORT [FLASH-FILE [--stepped]]\n", words[0]);
    return 2;
  }
  mac = words[1], host = words[2], port = words[3];
  stepped = count > 5 && strcmp(words[5], "--stepped") == 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  setvbuf(stdin, NULL, _IONBF, 0); /* read_events reads the descriptor. */
  if (count > 4 && (file = fopen(flash_file = words[4], "rb")) != NULL) {
    bool complete = fread(&flash, sizeof flash, 1, file) == 1;
    fclose(file);
    if (!complete) {
      fprintf(stderr, "%s: not the flash of this lock\n", flash_file);
      return 2;
    }
  }
  now = real_ms(CLOCK_REALTIME);
  if (stepped && fgets(line, sizeof line, stdin) != NULL) now = strtoll(line, NULL, 10);
  srand((unsigned)now ^ flash.boot);
  flash.boot++;
  measured_at = motion_since = lock_since = sky_since = retry_at = now;
  plan_period();
  save_flash();
  for (act();;) {
    struct pollfd inputs[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = sock, .events = POLLIN}};
    ms due = next_wake();
    if (stepped && due > now && !in_flight) { /* Nothing to do before `due`: the bench may step the clock. */
      if (due == FOREVER) printf("at %" PRId64 " wake never\n", now);
      else printf("at %" PRId64 " wake %" PRId64 "\n", now, due);
    }
    if (due > now || in_flight) poll(inputs, 2, stepped ? MINUTE : (int)min(due - now, MINUTE));
    if (!stepped) now = max(now, real_ms(CLOCK_REALTIME));
    if (inputs[1].revents) on_packet();
    else if (inputs[0].revents && !read_events()) return 0;
    if (sock >= 0 && real_ms(CLOCK_MONOTONIC) - last_sent_real > 240 * SECOND && !send_packet(0xc0, NULL, 0))
      lose_link(); /* The PINGREQ keeps the keepalive of 300 s. */
    act();
  }
}
