#!/usr/bin/env python3
"""An example lock in Python, with paho-mqtt 1.6 or later (Debian: python3-paho-mqtt).

docs/firmware.md explains the protocol and how to run this file. It does what lock.c does, and takes the same events
from the standard input. Replace `now` by network time, and the events by your sensors.

  LOCK_SECRET=lgs_… python3 lock.py A4C138F0E1D4 127.0.0.1 1883 --flash flash.json             the machine's clock
  LOCK_SECRET=lgs_… python3 lock.py A4C138F0E1D4 127.0.0.1 1883 --flash flash.json --stepped   lines begin with a time
  LOCK_SECRET=lgs_… python3 lock.py A4C138F0E1D4 gateway.example 8883 --ca ca.pem              TLS, as in the field

Events: unlock, lock, move SPEED DIRECTION (m/s, degrees), still, battery PERCENT, ebike MILLIVOLTS (-1: none),
coverage on|off, sky on|off, airplane on|off, modem-reset, tick (nothing happens).
"""
import argparse
import json
import math
import os
import random
import select
import socket
import struct
import sys
import time

from paho.mqtt import client as mqtt

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000  # All times are in ms; 0 is 1970-01-01T00:00:00Z.
NEVER = -math.inf  # As a time: it has not happened, or nothing runs that could end then.
FOREVER = math.inf  # As a due time: nothing is due.
FIRMWARE = "1.0.0-py"
FIX_UNCERTAINTY_M, CELL_UNCERTAINTY_M = 8, 800
(THEFT, PERIOD, STATE, UNLOCKED_PING, UNLOCKED_MOVEMENT, GPS, CELL, NETWORK, RESET, CLOSE) = range(1, 11)
CELLULAR_BODY, GPS_BODY, CLOSE_BODY, ACK_BODY = 7, 8, 9, 10
OK, REJECTED, FAILED = 1, 2, 3
SWITCHES = ("high", "ride", "airplane", "recovery")  # The fields 1 to 4 of Power and SetPower.
KEPT_UPLINKS, REMEMBERED_COMMANDS = 256, 64
SEARCH_ENDS = 120 * SECOND
RETRY_AFTER = (10 * SECOND, 30 * SECOND, 60 * SECOND)


# ---- protobuf: every field is a tag (field number * 8 + wire type) and a value; zeros are left out ----


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def present(field: int, value: int) -> bytes:
    """An `optional` field: its zero is sent too."""
    return varint(field << 3) + varint(value)


def number(field: int, value: int) -> bytes:
    return present(field, value) if value else b""


def zigzag(value: int) -> int:
    """A sint32: the sign goes into the lowest bit."""
    return -2 * value - 1 if value < 0 else 2 * value


def fixed32(field: int, value: int) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<i", value)


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def read_fields(message: bytes) -> dict:
    """The fields of a message by their numbers. Fields of a later version are read too, and ignored."""
    fields, at = {}, 0

    def read_varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = read_varint()
        kind = tag & 7
        if kind == 0:
            fields[tag >> 3] = read_varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or read_varint()
        fields[tag >> 3] = message[at : at + size]
        at += size
    return fields


# ---- the connection: paho-mqtt does the MQTT, this says when ----


class Link:
    """One connection to the gateway: a new client each time, so that the library never resends an uplink by itself."""

    def __init__(self, options, on_command, on_acknowledged):
        client_id, version = options.mac, mqtt.MQTTv311
        if hasattr(mqtt, "CallbackAPIVersion"):  # paho-mqtt 2
            api = mqtt.CallbackAPIVersion.VERSION1
            self.client = mqtt.Client(api, client_id=client_id, clean_session=True, protocol=version)
        else:
            self.client = mqtt.Client(client_id=client_id, clean_session=True, protocol=version)
        self.client.username_pw_set(options.mac, os.environ["LOCK_SECRET"])
        if options.ca:
            self.client.tls_set(ca_certs=options.ca)
        self.return_code = self.granted = None
        self.client.on_connect = lambda _client, _data, _flags, code: setattr(self, "return_code", code)
        self.client.on_subscribe = lambda _client, _data, _id, granted: setattr(self, "granted", granted[0])
        self.client.on_message = lambda _client, _data, message: on_command(message.payload)
        self.client.on_publish = lambda _client, _data, packet_id: on_acknowledged(packet_id)

    def open(self, host: str, port: int) -> bool:
        """Connects and subscribes. A lock counts as connected once it can receive commands."""
        try:
            self.client.connect(host, port, keepalive=300)
            if not self._wait(lambda: self.return_code is not None) or self.return_code != 0:
                return False
            self.client.subscribe("down", qos=1)
            return self._wait(lambda: self.granted is not None) and self.granted <= 1
        except OSError:
            return False

    def _wait(self, is_done) -> bool:
        ends = time.monotonic() + 10
        while not is_done() and time.monotonic() < ends:
            if self.client.loop(0.1) != mqtt.MQTT_ERR_SUCCESS:
                return is_done()
        return is_done()

    def publish(self, uplink: bytes) -> int:
        return self.client.publish("up", uplink, qos=1).mid

    def drop(self) -> None:
        """Ends the connection without a DISCONNECT, as a lock does that has lost its coverage."""
        connection = self.client.socket()
        if connection is not None:
            connection.close()


class Lock:
    def __init__(self, options, now: int):
        self.options, self.now = options, now
        # What must survive a reset. It is written before anything is sent: a boot must never be used twice.
        self.flash = {
            "boot": 0,
            "power": {"high": False, "ride": False, "airplane": False, "recovery": False, "window": [420, 1140, 0]},
            "locked": True,
            "told_locked": True,  # The lock state in the newest ping.
            # The newest ping was made in a silent mode, so it may reach the gateway only much later.
            "told_in_silence": False,
            "airplane_told": False,  # The close-connection ping that announces airplane mode has been made.
            "last_period": None,
            "waiting": [],
            "commands": [],
        }
        self.saved = ""
        if options.flash and os.path.exists(options.flash):
            with open(options.flash, encoding="utf-8") as file:
                self.flash = json.load(file)
        self.flash["boot"] += 1
        self.sequence = self.dropped = 0
        # The sensors.
        self.battery, self.ebike, self.moving, self.covered, self.sky = 90, -1, False, True, True
        self.latitude, self.longitude, self.speed, self.direction = 52.3702157, 4.8951679, 0.0, 0.0
        self.measured_at = self.motion_since = self.lock_since = self.sky_since = now
        # The triggers. An `until` is the end of a search for a fix, or NEVER while the trigger waits for none.
        self.tracking = None
        self.track_cell_at = self.track_gps_at = self.track_until = NEVER
        self.state_until = self.period_until = self.network_at = NEVER
        self.locates, self.locates_until, self.lockings, self.locking_at = [], NEVER, [], NEVER
        self.gps_on, self.gps_since, self.gps_takes, self.last_fix = False, NEVER, 0, NEVER
        # The connection.
        self.link, self.in_flight, self.sent_on_link, self.failures = None, None, 0, 0
        self.traffic_at, self.retry_at = NEVER, now
        self.reset_after_close = False  # The modem restarts once the close-connection ping is acknowledged.
        self.reset_ping_due = False  # The modem has restarted, and no ping has said so yet.
        self.silence_ping_due = False  # The close-connection ping that announces a silent mode must still be made.
        self.tries_silence_ping = False  # The only attempt to send it is due or under way.
        self.plan_period()

    # ---- the power model ----

    def mode_of(self, power: dict, battery: int) -> str:
        if power["airplane"]:
            return "AIRPLANE"
        if battery < 10:
            return "LOW_BATTERY"
        return "RECOVERY" if power["recovery"] else "HIGH" if power["high"] else "MID"

    @property
    def mode(self) -> str:
        return self.mode_of(self.flash["power"], self.battery)

    @property
    def is_silent(self) -> bool:
        return self.mode in ("AIRPLANE", "LOW_BATTERY")

    def keeps_connection(self) -> bool:
        start, end, offset = self.flash["power"]["window"]
        minute = (self.now // MINUTE + offset) % 1440
        inside = start <= minute < end if start < end else minute >= start or minute < end
        return self.mode == "RECOVERY" or (self.mode == "HIGH" and (start == end or inside))

    def plan_period(self) -> None:
        """The same minute of each UTC day, spread over the fleet by the MAC."""
        digest, last = 0x811C9DC5, self.flash["last_period"]
        for digit in self.options.mac.encode():
            digest = (digest ^ digit) * 0x01000193 & 0xFFFFFFFF
        start = self.now if last is None else max(self.now, last + 1)
        self.next_period = start // DAY * DAY + (digest ^ digest >> 15) % 1440 * MINUTE
        if self.next_period < start:
            self.next_period += DAY
        if last is not None:
            self.next_period = max(self.next_period, last + 23 * HOUR)

    # ---- uplinks: made at the moment they speak of, kept until acknowledged, sent as the same bytes ----

    def make_uplink(self, body: int, reason: int, content: bytes) -> None:
        waiting, power = self.flash["waiting"], self.flash["power"]
        if len(waiting) == KEPT_UPLINKS:
            self.discard_oldest()
        if not power["airplane"]:
            self.flash["airplane_told"] = False
        self.sequence += 1
        switches = b"".join(number(field, power[name]) for field, name in enumerate(SWITCHES, 1))
        message = present(1, self.flash["boot"]) + present(2, self.sequence) + present(3, self.now)
        message += block(4, switches) if switches else b""
        message += number(5, len(waiting)) + number(6, self.dropped) + block(body, content)
        place = len(waiting)
        if body == CELLULAR_BODY and reason in (THEFT, RESET):  # This ping overtakes others.
            place = 0 if self.in_flight is None else 1
            while place < len(waiting) and waiting[place][:2] == [CELLULAR_BODY, THEFT]:
                place += 1
        waiting.insert(place, [body, reason, message.hex()])

    def discard_oldest(self) -> None:
        """A full buffer loses the oldest uplink that is not of a theft; never the one in flight."""
        first = 0 if self.in_flight is None else 1
        waiting = self.flash["waiting"]
        others = [index for index in range(first, len(waiting)) if waiting[index][1] != THEFT]
        del waiting[others[0] if others else first]
        self.dropped += 1

    def measure(self) -> None:
        """The receiver: here dead reckoning, on your lock the GPS module."""
        metres, turn = self.speed * (self.now - self.measured_at) / SECOND, math.radians(self.direction)
        self.latitude += metres * math.cos(turn) / 111_320
        self.longitude += metres * math.sin(turn) / (111_320 * math.cos(math.radians(self.latitude)))
        self.measured_at = self.now

    def make_ping(self, body: int, reason: int) -> None:
        self.measure()
        lock_state = 1 if self.flash["locked"] else 2
        ebike = present(5 if body == CELLULAR_BODY else 4, self.ebike) if self.ebike >= 0 else b""
        position = round(self.latitude * 1e7), round(self.longitude * 1e7)
        if body == CLOSE_BODY:  # It has no reason.
            content = number(1, lock_state) + number(2, self.battery)
        elif body == CELLULAR_BODY:
            content = number(1, reason) + number(2, lock_state) + number(3, self.battery)
            content += block(4, FIRMWARE.encode()) + ebike + number(6, 2)  # The tether is detached.
            if reason == CELL:
                content += fixed32(7, position[0]) + fixed32(8, position[1]) + number(9, zigzag(CELL_UNCERTAINTY_M))
        else:
            content = number(1, reason) + number(2, lock_state) + number(3, self.battery) + ebike + number(5, 2)
            content += fixed32(6, position[0]) + fixed32(7, position[1]) + number(8, zigzag(round(self.speed * 100)))
            content += number(9, zigzag(round(self.direction * 100) % 36000)) + number(10, zigzag(FIX_UNCERTAINTY_M))
            self.last_fix = self.now
        self.flash["told_locked"], self.flash["told_in_silence"] = self.flash["locked"], self.is_silent
        self.make_uplink(body, reason, content)
        if body == CLOSE_BODY and self.flash["power"]["airplane"]:
            self.flash["airplane_told"] = True

    # ---- commands: each id is carried out once and acknowledged each time ----

    def finish(self, command_id: int, result: int, detail: str = "", sets_power: bool = False) -> None:
        commands = self.flash["commands"]
        before = next((command for command in commands if command[0] == command_id), None)
        if before is None:
            before = [command_id, result, detail, sets_power]
            commands.append(before)
            del commands[:-REMEMBERED_COMMANDS]
        self.acknowledge(before)

    def acknowledge(self, command) -> None:
        command_id, result, detail, sets_power = command
        content = number(1, command_id) + number(2, result) + (block(3, detail.encode()) if detail else b"")
        if sets_power:
            start, end, offset = self.flash["power"]["window"]
            content += block(4, number(1, start) + number(2, end) + number(3, zigzag(offset)))
        self.make_uplink(ACK_BODY, 0, content)

    def finish_all(self, ids: list, result: int, detail: str = "") -> None:
        pending, ids[:] = list(ids), []
        for command_id in pending:
            self.finish(command_id, result, detail)

    def on_downlink(self, payload: bytes) -> None:
        try:
            fields = read_fields(payload)
            command = next((field for field in fields if field > 2), 0)
            parameters = read_fields(fields.get(command, b""))
        except (IndexError, TypeError):
            return  # The bytes are no Downlink.
        command_id = fields.get(1, 0)
        print(f"command {command_id}")
        if command_id == 0 or self.is_silent:
            return
        self.traffic_at = self.now
        if any(command[0] == command_id for command in self.flash["commands"]):
            self.finish(command_id, OK)  # As it ended before.
        elif self.now >= fields.get(2, 0):
            self.finish(command_id, REJECTED, "expired")
        else:
            self.carry_out(command_id, command, parameters)

    def carry_out(self, command_id: int, command: int, fields: dict) -> None:
        if command == 3:
            self.finish_all(self.lockings, FAILED, "overtaken by an unlock")
            self.change_lock(False)  # Here the motor turns. The state ping comes first, then the acknowledgement.
            self.finish(command_id, OK)
        elif command == 4:  # Here the warning tone sounds.
            if not self.lockings:
                self.locking_at = self.now + 5 * SECOND
            self.lockings.append(command_id)
        elif command == 5:
            print(f"siren {fields.get(1, 0)}")
            self.finish(command_id, OK)
        elif command == 6:
            if not self.locates:
                self.locates_until = self.now + SEARCH_ENDS
            self.locates.append(command_id)
        elif command == 7:
            self.make_ping(CELLULAR_BODY, CELL)
            self.finish(command_id, OK)
        elif command == 8:
            self.set_power(command_id, fields)
        elif command == 9:
            self.finish(command_id, OK)
            self.make_ping(CLOSE_BODY, CLOSE)
            self.reset_after_close = True
        else:
            self.finish(command_id, REJECTED, "unknown command")

    def set_power(self, command_id: int, fields: dict) -> None:
        power = dict(self.flash["power"])
        for field, name in enumerate(SWITCHES, 1):
            if field in fields:  # What is absent stays as it is.
                power[name] = fields[field] == 1
        if 5 in fields:
            window = read_fields(fields[5])
            offset = window.get(3, 0)
            power["window"] = [window.get(1, 0), window.get(2, 0), offset >> 1 ^ -(offset & 1)]
        start, end, offset = power["window"]
        if start >= 1440 or end >= 1440 or abs(offset) >= 1440:
            self.finish(command_id, REJECTED, "window outside the day", True)
            return
        self.change_power(power, self.battery)
        self.finish(command_id, OK, "", True)

    def change_power(self, power: dict, battery: int) -> None:
        before, after = self.mode, self.mode_of(power, battery)
        was_silent, falls_silent = self.is_silent, after in ("AIRPLANE", "LOW_BATTERY")
        if after != before and falls_silent:  # Answer what still waits, with the old settings.
            self.finish_all(self.lockings, FAILED, "the lock falls silent")
            self.finish_all(self.locates, FAILED, "the lock falls silent")
        if power["ride"] and not self.flash["power"]["ride"]:
            self.track_until = self.now + SEARCH_ENDS
        self.flash["power"], self.battery = power, battery
        if after == before:
            return
        if was_silent:
            self.plan_period()  # A daily ping that fell into the silence is left out.
        self.connect_at_once()
        self.silence_ping_due, self.tries_silence_ping = falls_silent, False
        if falls_silent:
            self.state_until = self.period_until = NEVER
            if self.tracking == "theft":
                self.track_cell_at = NEVER

    def change_lock(self, locked: bool) -> None:
        flash = self.flash
        if flash["locked"] == locked:
            return
        flash["locked"], self.lock_since = locked, self.now
        if self.is_silent or (locked == flash["told_locked"] and not flash["told_in_silence"]):
            return
        self.connect_at_once()
        self.make_ping(CELLULAR_BODY, STATE)  # Before any other ping can carry the new state.
        self.state_until = self.now + SEARCH_ENDS

    # ---- the connection: when there is one, and what goes over it ----

    def connect_at_once(self) -> None:
        self.retry_at, self.failures = self.now, 0

    def schedule_retry(self) -> None:
        """10, 30, 60 s, then every 5 min ± 20 %."""
        steps = len(RETRY_AFTER)
        wait = RETRY_AFTER[self.failures] if self.failures < steps else round(5 * MINUTE * random.uniform(0.8, 1.2))
        self.failures, self.retry_at = self.failures + 1, self.now + wait
        self.tries_silence_ping = False  # Silence is announced in one attempt.

    def must_stay_open(self) -> bool:
        waits = self.state_until != NEVER or self.period_until != NEVER or self.locates or self.lockings
        return bool(self.tracking or waits or self.keeps_connection())

    def wants_link(self) -> bool:
        waiting = self.flash["waiting"]
        if not self.is_silent:
            return bool(waiting) or self.reset_ping_due or self.must_stay_open()
        theft = self.tracking == "theft" or any(uplink[1] == THEFT for uplink in waiting)
        return (self.mode == "LOW_BATTERY" and theft) or self.tries_silence_ping

    def connect(self) -> None:
        link = Link(self.options, self.on_downlink, self.on_acknowledged)
        self.in_flight, self.sent_on_link, self.has_closed = None, 0, False
        if not self.covered or not link.open(self.options.host, self.options.port):
            if link.return_code:
                print(f"the gateway refused the connection: CONNACK {link.return_code}", file=sys.stderr)
            if link.return_code not in (None, 0, 3):
                self.failures = len(RETRY_AFTER)  # Only a person can help, so wait longer from the start.
            link.drop()
            self.schedule_retry()
            return
        print("connected")
        self.link, self.traffic_at, self.network_at = link, self.now, NEVER
        if self.reset_ping_due and not self.is_silent:
            self.reset_ping_due = False
            self.make_ping(CELLULAR_BODY, RESET)

    def mark_down(self) -> None:
        if self.link is None:
            return
        self.link.drop()
        self.link = self.in_flight = None
        self.reset_ping_due, self.reset_after_close = self.reset_ping_due or self.reset_after_close, False
        print("disconnected")

    def disconnect(self) -> None:
        self.link.client.disconnect()
        self.mark_down()
        self.retry_at = self.now

    def lose_link(self) -> None:
        if self.link is not None:
            self.mark_down()
            self.schedule_retry()

    def settle_link(self) -> None:
        if self.link is not None and self.has_closed:
            self.disconnect()
        if self.link is None and self.now >= self.retry_at and self.wants_link():
            self.connect()
        if self.link is None:
            return
        if self.in_flight is not None:
            if self.now >= self.traffic_at + 300 * SECOND:
                self.lose_link()
            return
        if not self.keeps_connection():
            self.network_at = NEVER
        elif self.now >= self.network_at + 15 * MINUTE:
            self.network_at = self.now
            self.make_ping(CELLULAR_BODY, NETWORK)
        waiting = self.flash["waiting"]
        if not waiting and not self.must_stay_open():
            if self.flash["power"]["airplane"] and self.flash["airplane_told"]:
                self.disconnect()
                return
            if self.now >= self.traffic_at + 20 * SECOND:
                self.make_ping(CLOSE_BODY, CLOSE)
        self.save_flash()
        if waiting:
            self.traffic_at, self.sent_on_link = self.now, self.sent_on_link + 1
            self.in_flight = self.link.publish(bytes.fromhex(waiting[0][2]))

    def on_acknowledged(self, packet_id: int) -> None:
        if packet_id != self.in_flight:
            return
        body = self.flash["waiting"].pop(0)[0]
        self.in_flight, self.failures = None, 0
        if body != CLOSE_BODY:
            return
        waiting = self.flash["waiting"]
        if all(uplink[0] != CLOSE_BODY for uplink in waiting):
            self.tries_silence_ping = False
        # A close-connection ping that comes first belongs to the connection before, so this one may go on.
        self.has_closed = self.sent_on_link > 1 or self.reset_after_close or not (waiting or self.must_stay_open())

    # ---- what a lock does: the same steps after everything that happens ----

    def fix_at(self) -> float:
        return max(self.gps_since, self.sky_since) + self.gps_takes

    def has_fix(self) -> bool:
        return self.gps_on and self.sky and self.now >= self.fix_at()

    def search(self) -> None:
        self.gps_since = self.now
        self.gps_takes = 5 * SECOND if self.now - self.last_fix < 2 * HOUR else 30 * SECOND

    def tracks_by_gps(self) -> bool:
        return self.tracking == "theft" or (self.tracking == "ride" and self.flash["power"]["ride"])

    def wants_one_fix(self) -> bool:
        return self.state_until != NEVER or self.period_until != NEVER or bool(self.locates)

    def wants_fix(self) -> bool:
        return self.wants_one_fix() or (self.tracks_by_gps() and (self.has_fix() or self.now < self.track_until))

    def track_gps_due(self) -> float:
        if self.track_gps_at == NEVER:
            return self.now
        return self.track_gps_at + (10 if self.tracking == "theft" else 30) * SECOND if self.moving else FOREVER

    def theft_starts(self) -> float:
        if not self.moving or not self.flash["locked"] or self.mode == "AIRPLANE":
            return FOREVER
        return max(self.motion_since, self.lock_since) + 6 * SECOND + 1  # More than 6 s, in whole ms.

    def track(self) -> None:
        locked, may_ride = self.flash["locked"], not self.flash["locked"] and not self.is_silent
        if self.tracking is not None:
            may_go_on = locked and self.mode != "AIRPLANE" if self.tracking == "theft" else may_ride
            if not may_go_on or (not self.moving and self.now >= self.motion_since + 2 * MINUTE):
                self.tracking = None
        if self.tracking is None:
            if self.now >= self.theft_starts():
                self.tracking = "theft"
            elif self.moving and may_ride:
                self.tracking = "ride"
            else:
                return
            self.track_cell_at = self.track_gps_at = NEVER
            self.connect_at_once()
        if self.now >= self.track_cell_at + 5 * MINUTE:
            self.track_cell_at, self.track_until = self.now, self.now + SEARCH_ENDS
            self.make_ping(CELLULAR_BODY, THEFT if self.tracking == "theft" else UNLOCKED_MOVEMENT)
        if self.tracks_by_gps() and self.has_fix() and self.now >= self.track_gps_due():
            self.track_gps_at = self.now
            self.make_ping(GPS_BODY, THEFT if self.tracking == "theft" else UNLOCKED_PING)

    def one_fix(self, until: float, reason: int) -> float:
        """Makes the one GPS ping of a trigger if there is a fix, or leaves it out when the search is over."""
        if until == NEVER or (not self.has_fix() and self.now < until):
            return until
        if self.has_fix():
            self.make_ping(GPS_BODY, reason)
        return NEVER

    def announce_silence(self) -> None:
        if not self.silence_ping_due or (self.mode == "LOW_BATTERY" and self.tracking == "theft"):
            return
        self.silence_ping_due = False
        if not (self.flash["power"]["airplane"] and self.flash["airplane_told"]):
            self.make_ping(CLOSE_BODY, CLOSE)
            self.tries_silence_ping, self.retry_at = True, self.now

    def act(self) -> None:
        if self.lockings and self.now >= self.locking_at:
            self.change_lock(True)  # Here the motor turns.
            self.finish_all(self.lockings, OK)
        self.track()
        self.state_until = self.one_fix(self.state_until, STATE)
        if not self.is_silent and self.now >= self.next_period:
            self.connect_at_once()
            self.make_ping(CELLULAR_BODY, PERIOD)
            self.period_until, self.flash["last_period"] = self.now + SEARCH_ENDS, self.now
            self.plan_period()
        self.period_until = self.one_fix(self.period_until, PERIOD)
        if self.locates and (self.has_fix() or self.now >= self.locates_until):
            found = self.has_fix()
            if found:
                self.make_ping(GPS_BODY, GPS)
            self.finish_all(self.locates, OK if found else FAILED, "" if found else "no fix")
        self.announce_silence()
        self.save_flash()
        self.settle_link()
        if self.wants_fix() != self.gps_on:
            if self.has_fix():
                self.last_fix = self.now
            self.gps_on = not self.gps_on
            if self.gps_on:
                self.search()

    def next_wake(self) -> float:
        """The earliest time at which the lock acts although nothing happens."""
        due = [FOREVER if self.is_silent else self.next_period]
        if self.mode == "HIGH":
            start, end, offset = self.flash["power"]["window"]
            minute = self.now // MINUTE
            due += [(minute + 1 + (edge - offset - minute - 1) % 1440) * MINUTE for edge in (start, end)]
        if self.tracking is None:
            due.append(self.theft_starts())
        else:
            due += [self.track_cell_at + 5 * MINUTE, FOREVER if self.moving else self.motion_since + 2 * MINUTE]
        if self.has_fix():
            due.append(self.now if self.wants_one_fix() else self.track_gps_due() if self.tracks_by_gps() else FOREVER)
        elif self.gps_on:
            due.append(self.fix_at() if self.sky else FOREVER)
            due += [until for until in (self.state_until, self.period_until) if until != NEVER]
            due += [self.locates_until] if self.locates else []
            due += [self.track_until] if self.tracks_by_gps() and self.track_until > self.now else []
        due += [self.locking_at] if self.lockings else []
        if self.link is None:
            due.append(self.retry_at if self.wants_link() else FOREVER)
        elif self.in_flight is not None:
            due.append(self.traffic_at + 300 * SECOND)
        elif self.keeps_connection():
            due.append(self.network_at + 15 * MINUTE)
        elif not self.flash["waiting"] and not self.must_stay_open():
            due.append(self.traffic_at + 20 * SECOND)
        return max(min(due), self.now)

    def save_flash(self) -> None:
        if not self.options.flash:
            return
        content = json.dumps(self.flash)
        if content == self.saved:
            return
        with open(self.options.flash + ".new", "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(self.options.flash + ".new", self.options.flash)
        self.saved = content

    # ---- what happens: a packet, or an event of the sensors ----

    def on_event(self, name: str = "tick", *values: str) -> None:
        self.measure()
        on = values[:1] == ("on",)
        if name in ("unlock", "lock"):
            self.change_lock(name == "lock")
        elif name == "battery":
            self.change_power(self.flash["power"], int(values[0]))
        elif name == "ebike":
            self.ebike = int(values[0])
        elif name == "airplane":
            self.change_power({**self.flash["power"], "airplane": on}, self.battery)
        elif name in ("move", "still"):
            if self.moving != (name == "move"):
                self.moving, self.motion_since = name == "move", self.now
            self.speed, self.direction = (float(values[0]), float(values[1])) if self.moving else (0.0, 0.0)
        elif name == "coverage" and self.covered != on:
            self.covered = on
            if not on:
                self.lose_link()
        elif name == "sky" and self.sky != on:
            lost = self.has_fix()
            self.sky, self.sky_since = on, self.now
            if lost:
                self.last_fix, self.track_until = self.now, self.now + SEARCH_ENDS
                self.search()
        elif name == "modem-reset":
            self.mark_down()
            self.reset_ping_due, self.retry_at = True, self.now


def is_pending(connection) -> bool:
    """Whether TLS has decrypted more than was read: select does not see that."""
    return hasattr(connection, "pending") and connection.pending() > 0


def run(options) -> None:
    def clock() -> int:
        return time.time_ns() // 1_000_000

    source = sys.stdin.buffer.raw
    held = b""

    def read_lines() -> list:
        nonlocal held
        part = source.read(4096)
        if not part:
            raise EOFError
        *lines, held = (held + part).split(b"\n")
        return [line.decode().split() for line in lines]

    pending = read_lines() if options.stepped else []
    lock = Lock(options, int(pending.pop(0)[0]) if pending else clock())
    lock.save_flash()
    lock.act()
    while True:
        for words in pending:
            if options.stepped:
                lock.now = max(lock.now, int(words.pop(0)))
            lock.on_event(*words)
            lock.act()
        pending = []
        due = lock.next_wake()
        if options.stepped and due > lock.now and lock.in_flight is None:
            print(f"at {lock.now} wake {'never' if due == FOREVER else int(due)}")
        wait = 60.0 if options.stepped else min(due - lock.now, MINUTE) / SECOND
        if due <= lock.now and lock.in_flight is None:
            wait = 0
        client = lock.link.client if lock.link else None
        connection = client.socket() if client else None
        readable, _, _ = select.select([source, *([connection] if connection else [])], [], [], wait)
        if not options.stepped:
            lock.now = max(lock.now, clock())
        if connection is not None:
            failed = client.loop_read() if connection in readable else client.loop_misc()
            while not failed and client.socket() is connection and is_pending(connection):
                failed = client.loop_read()
            if client.want_write():
                failed = failed or client.loop_write()
            if failed and lock.link and lock.link.client is client:
                lock.lose_link()
        if source in readable and connection not in readable:
            pending = read_lines()
        lock.act()


def main() -> None:
    parser = argparse.ArgumentParser(description="An example lock. The secret is in LOCK_SECRET.")
    parser.add_argument("mac", help="12 upper-case hex digits")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--flash", help="the file that survives a reset")
    parser.add_argument("--ca", help="connect with TLS, trusting this certificate (PEM)")
    parser.add_argument("--stepped", action="store_true", help="each line of stdin begins with its time, ms")
    options = parser.parse_args()
    if "LOCK_SECRET" not in os.environ:
        parser.error("LOCK_SECRET is not set")
    sys.stdout.reconfigure(line_buffering=True)
    socket.setdefaulttimeout(10)
    try:
        run(options)
    except EOFError:
        pass  # The lock loses its power.


if __name__ == "__main__":
    main()
