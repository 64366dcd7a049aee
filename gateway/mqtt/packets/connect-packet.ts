/**
 * Reads a complete CONNECT (MQTT 3.1.1, 3.1): the identity that it claims, and what is wrong with it. What MQTT forbids
 * is refused here, before the broker library sees it. Authentication comes later (authentication.ts).
 */
import type { RefusalCause } from '../refusals/refusal-reason.js';
import { bodyOffset } from './frames.js';
import { textFault } from './utf8-check.js';

/** The return codes of a CONNACK that are used here (MQTT 3.1.1, 3.2.2.3). */
export const BAD_PROTOCOL_LEVEL = 1;
export const BAD_CLIENT_ID = 2;

/** Protocol names and their levels: MQTT 3.1.1, and 3.1, which is the same in all that locks use. */
const LEVELS: Readonly<Record<string, number>> = { MQTT: 4, MQIsdp: 3 };
/** The level of MQTT 5, whose CONNECT has properties before the client id. */
const MQTT_5 = 5;
/** How many characters of a wrong protocol name are quoted. */
const LONGEST_NAME = 6;

/** The flags (MQTT 3.1.1, 3.1.2.3 to 3.1.2.9). */
const RESERVED = 0x01;
const CLEAN_SESSION = 0x02;
const WILL = 0x04;
const WILL_QOS = 0x18;
const WILL_RETAIN = 0x20;
const PASSWORD = 0x40;
const USER_NAME = 0x80;

/** The contents of a CONNECT, as far as it can be read. */
export interface ConnectReading {
  /** Empty where it has none. */
  readonly clientId: string;
  readonly userName: string;
  /** Why it is refused; undefined where it is a valid CONNECT. */
  readonly fault: RefusalCause | undefined;
  /** The return code to send before the connection is closed; 0 for no answer. */
  readonly returnCode: number;
}

/** Reads a CONNECT, from its fixed header to its last byte. */
export function readConnect(packet: Buffer): ConnectReading {
  const fields = new ConnectFields(packet);
  const returnCode = readFields(fields);
  const { clientId, userName, fault } = fields;
  return { clientId, userName, fault, returnCode };
}

/** Reads all fields. Returns the return code to answer with, 0 for none. */
function readFields(fields: ConnectFields): number {
  const name = fields.text('protocol name');
  if (fields.fault === undefined && LEVELS[name] === undefined)
    fields.fail(`its protocol name is ${JSON.stringify(name.slice(0, LONGEST_NAME))} and not "MQTT"`);
  const level = fields.number('protocol level', 1);
  if (fields.fault !== undefined) return 0;
  if (level !== LEVELS[name]) {
    if (level === MQTT_5) readIdentityOf5(fields);
    const why = `protocol level ${level}: this is MQTT 3.1.1, which has level ${LEVELS.MQTT}`;
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
  if (fields.left > 0) fields.fail('it has bytes after its last field');
  if (fields.fault !== undefined || fields.clientId !== '' || (flags & CLEAN_SESSION) !== 0) return 0;
  fields.refuse({ reason: 'identity', why: 'an empty client id, and the session is not to be a clean one' });
  return BAD_CLIENT_ID;
}

function flagsFault(flags: number): string | undefined {
  if ((flags & RESERVED) !== 0) return 'its reserved flag is set';
  if ((flags & WILL) === 0 && (flags & (WILL_QOS | WILL_RETAIN)) !== 0) return 'its will has flags, and there is none';
  if ((flags & WILL_QOS) === WILL_QOS) return 'its will has QoS 3';
  return (flags & PASSWORD) !== 0 && (flags & USER_NAME) === 0 ? 'it has a password and no user name' : undefined;
}

/** Reads the identity of an MQTT 5 client, so that operators see whose firmware uses the wrong version. */
function readIdentityOf5(fields: ConnectFields): void {
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

/** Reads one field after the other. After the first malformed one all are empty. */
class ConnectFields {
  clientId = '';
  userName = '';
  fault: RefusalCause | undefined;
  readonly #packet: Buffer;
  #at: number;

  constructor(packet: Buffer) {
    this.#packet = packet;
    this.#at = bodyOffset(packet);
  }

  /** How many bytes are left to read. */
  get left(): number {
    return this.fault === undefined ? this.#packet.length - this.#at : 0;
  }

  /** Notes that the CONNECT is malformed. The first fault counts. */
  fail(why: string): void {
    this.fault ??= { reason: 'malformed', why: `a malformed CONNECT: ${why}` };
  }

  /** Refuses the CONNECT, whatever else is wrong with it. */
  refuse(cause: RefusalCause): void {
    this.fault = cause;
  }

  /** A number of 1 or 2 bytes. */
  number(name: string, size: 1 | 2): number {
    const bytes = this.#take(name, size);
    return bytes.length === 0 ? 0 : bytes.readUIntBE(0, size);
  }

  /** Bytes preceded by their length in two bytes. */
  bytes(name: string): Buffer {
    return this.#take(name, this.number(name, 2));
  }

  text(name: string): string {
    const bytes = this.bytes(name);
    const why = textFault(bytes);
    if (why !== undefined) this.fail(`its ${name} ${why}`);
    return why === undefined ? bytes.toString() : '';
  }

  /** Skips the properties of MQTT 5: a length of 1 to 4 bytes, and as many bytes. */
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
    const isThere = this.fault === undefined && length <= this.#packet.length - this.#at;
    if (!isThere) this.fail(`it ends within its ${name}`);
    const from = this.#at;
    if (isThere) this.#at += length;
    return this.#packet.subarray(from, this.#at);
  }
}
