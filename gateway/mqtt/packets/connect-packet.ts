/**
 * Reads a complete CONNECT (MQTT 3.1.1, 3.1): the identity that it claims, and its fault, if any. A CONNECT that MQTT
 * forbids is refused here, before the broker library sees it. Authentication comes later (authentication.ts). Pure.
 */
import type { RefusalCause } from '../refusals/refusal-reason.js';
import { bodyOffset } from './frames.js';
import { textFault } from './utf8-check.js';

/** Return codes of a CONNACK (MQTT 3.1.1, 3.2.2.3). */
export const BAD_PROTOCOL_LEVEL = 1;
export const BAD_CLIENT_ID = 2;

/** Protocol names and their levels: MQTT 3.1.1, and MQTT 3.1, which is the same in everything that locks use. */
const LEVEL_BY_NAME: Readonly<Record<string, number>> = { MQTT: 4, MQIsdp: 3 };
/** The level of MQTT 5, whose CONNECT has properties before the client id. */
const MQTT_5 = 5;
/** How many characters of a wrong protocol name are quoted. */
const MAX_QUOTED_CHARS = 6;

/** The bits of the flags (MQTT 3.1.1, 3.1.2.3 to 3.1.2.9). */
const RESERVED = 0x01;
const CLEAN_SESSION = 0x02;
const WILL = 0x04;
const WILL_QOS = 0x18;
const WILL_RETAIN = 0x20;
const PASSWORD = 0x40;
const USER_NAME = 0x80;

/** The contents of a CONNECT, as far as they can be read. */
export interface ConnectContents {
  /* Each is empty if the CONNECT has none. */
  readonly clientId: string;
  readonly userName: string;
  /** Why the CONNECT is refused; undefined if it is valid. */
  readonly fault: RefusalCause | undefined;
  /** The return code to send before the connection is closed; 0 for no answer. */
  readonly returnCode: number;
}

/** Reads a CONNECT, from its fixed header to its last byte. */
export function readConnect(packet: Buffer): ConnectContents {
  const fields = new ConnectFields(packet);
  const returnCode = readFields(fields);
  const { clientId, userName, fault } = fields;
  return { clientId, userName, fault, returnCode };
}

/** Reads all fields. Returns the return code to answer with, 0 for none. */
function readFields(fields: ConnectFields): number {
  const name = fields.text('protocol name');
  if (fields.fault === undefined && LEVEL_BY_NAME[name] === undefined)
    fields.fail(`its protocol name is ${JSON.stringify(name.slice(0, MAX_QUOTED_CHARS))} and not "MQTT"`);
  const level = fields.number('protocol level', 1);
  if (fields.fault !== undefined) return 0;
  if (level !== LEVEL_BY_NAME[name]) {
    if (level === MQTT_5) readMqtt5Identity(fields);
    const why = `protocol level ${level}: this is MQTT 3.1.1, which has level ${LEVEL_BY_NAME.MQTT}`;
    fields.refuse({ reason: 'protocol-level', why });
    return BAD_PROTOCOL_LEVEL;
  }
  const flags = fields.number('flags', 1);
  fields.number('keepalive', 2);
  const why = flagsFault(flags);
  if (why !== undefined) fields.fail(why);
  fields.clientId = fields.text('client id');
  if ((flags & WILL) !== 0) {
    fields.text('will topic');
    fields.bytes('will message');
  }
  if ((flags & USER_NAME) !== 0) fields.userName = fields.text('user name');
  if ((flags & PASSWORD) !== 0) fields.bytes('password');
  if (fields.bytesLeft > 0) fields.fail('it has bytes after its last field');
  if (fields.fault !== undefined || fields.clientId !== '' || (flags & CLEAN_SESSION) !== 0) return 0;
  fields.refuse({ reason: 'identity', why: 'the client id is empty, and the session is not clean' });
  return BAD_CLIENT_ID;
}

function flagsFault(flags: number): string | undefined {
  if ((flags & RESERVED) !== 0) return 'its reserved flag is set';
  if ((flags & WILL) === 0 && (flags & (WILL_QOS | WILL_RETAIN)) !== 0) return 'it has will flags but no will';
  if ((flags & WILL_QOS) === WILL_QOS) return 'its will has QoS 3';
  return (flags & PASSWORD) !== 0 && (flags & USER_NAME) === 0 ? 'it has a password but no user name' : undefined;
}

/** Reads the identity of an MQTT 5 client, so that operators see which lock's firmware uses the wrong version. */
function readMqtt5Identity(fields: ConnectFields): void {
  const flags = fields.number('flags', 1);
  fields.number('keepalive', 2);
  fields.skipProperties();
  fields.clientId = fields.text('client id');
  if ((flags & WILL) !== 0) {
    fields.skipProperties();
    fields.text('will topic');
    fields.bytes('will message');
  }
  if ((flags & USER_NAME) !== 0) fields.userName = fields.text('user name');
}

/** Reads one field after the other. After the first malformed field, all fields read as empty. */
class ConnectFields {
  clientId = '';
  userName = '';
  fault: RefusalCause | undefined;
  readonly #packet: Buffer;
  /** The offset of the next unread byte. */
  #offset: number;

  constructor(packet: Buffer) {
    this.#packet = packet;
    this.#offset = bodyOffset(packet);
  }

  /** The number of unread bytes; 0 after a fault. */
  get bytesLeft(): number {
    return this.fault === undefined ? this.#packet.length - this.#offset : 0;
  }

  /** Notes that the CONNECT is malformed. Later faults do not replace the first. */
  fail(why: string): void {
    this.fault ??= { reason: 'malformed', why: `a malformed CONNECT: ${why}` };
  }

  /** Refuses the CONNECT for this cause. It replaces an earlier fault. */
  refuse(cause: RefusalCause): void {
    this.fault = cause;
  }

  /** Reads a number of 1 or 2 bytes. */
  number(name: string, size: 1 | 2): number {
    const bytes = this.#take(name, size);
    return bytes.length === 0 ? 0 : bytes.readUIntBE(0, size);
  }

  /** Reads bytes that follow their two-byte length. */
  bytes(name: string): Buffer {
    return this.#take(name, this.number(name, 2));
  }

  text(name: string): string {
    const bytes = this.bytes(name);
    const why = textFault(bytes);
    if (why !== undefined) this.fail(`its ${name} ${why}`);
    return why === undefined ? bytes.toString() : '';
  }

  /** Skips the properties of MQTT 5: a length in 1 to 4 bytes, then that many bytes. */
  skipProperties(): void {
    let length = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.number('properties', 1);
      length += (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    this.#take('properties', length);
  }

  #take(name: string, length: number): Buffer {
    const isComplete = this.fault === undefined && length <= this.#packet.length - this.#offset;
    if (!isComplete) this.fail(`it ends within its ${name}`);
    const from = this.#offset;
    if (isComplete) this.#offset += length;
    return this.#packet.subarray(from, this.#offset);
  }
}
