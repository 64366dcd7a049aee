/**
 * Checks the fields of the packets that a client sends after its CONNECT (MQTT 3.1.1, chapter 3): each field lies
 * within its packet, packet ids are not 0, topic filters are UTF-8. The bytes are checked as they arrive, without
 * buffering.
 *
 * If a packet is too short for a field, the broker library would read the field from the next packet and answer a
 * packet that was never sent. So such a packet closes the connection before the library has all of it.
 */
import type { RefusalCause } from '../refusals/refusal-reason.js';
import { Utf8Check } from './utf8-check.js';

/** Packet types (MQTT 3.1.1, 2.2.1). */
const [PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ] = [3, 4, 8, 10, 12];

/* The fields. They are numbers instead of strings, since this code runs for every byte of every header. */
const TOPIC_LENGTH = 0;
const TOPIC = 1;
const PACKET_ID = 2;
const QOS = 3;
/** A payload or the end of the packet: nothing more is checked. */
const UNCHECKED = 4;

/** The fixed header's flags of SUBSCRIBE and UNSUBSCRIBE. PUBACK, PINGREQ and DISCONNECT have no flags (2.2.2). */
const SUBSCRIBING_FLAGS = 0b0010;
const DUP = 0b1000;
const QOS_BITS = 0b0110;
const MAX_QOS = 2;
/** The length of a PUBACK's body, which is its packet id. */
const PUBACK_BODY_BYTES = 2;

/** Follows the fields of one packet after the other through chunks of any size. */
export class PacketFields {
  #type = 0;
  #hasQos = false;
  #field = UNCHECKED;
  /** How many bytes of the current field are still missing. */
  #missingBytes = 0;
  /** How many bytes of the packet come after the current field. */
  #bytesAfterField = 0;
  /** The value of the current field, if it is a number. */
  #number = 0;
  /** Created for the first topic filter: most connections send few. */
  #text: Utf8Check | undefined;

  /** Starts a packet with a body of `length` bytes. Returns its fault, if any. */
  begin(header: number, length: number): RefusalCause | undefined {
    this.#type = header >> 4;
    this.#bytesAfterField = length;
    if (this.#type === PUBLISH) {
      this.#hasQos = (header & QOS_BITS) !== 0;
      return this.#startField(TOPIC_LENGTH, 2);
    }
    if (isSubscribing(this.#type)) return this.#startField(PACKET_ID, 2);
    const expected = this.#type === PUBACK ? PUBACK_BODY_BYTES : 0;
    if (length !== expected) return this.#fault(`its length is ${length} and not ${expected}`);
    return this.#type === PUBACK ? this.#startField(PACKET_ID, 2) : this.#startField(UNCHECKED, 0);
  }

  /** Takes bytes of the body. The caller must not pass bytes beyond its end. Returns their fault, if any. */
  pass(chunk: Uint8Array, from: number, to: number): RefusalCause | undefined {
    for (let at = from; at < to && this.#field !== UNCHECKED; ) {
      let fault: RefusalCause | undefined;
      if (this.#field === TOPIC) {
        const end = Math.min(at + this.#missingBytes, to);
        fault = this.#passTopic(chunk, at, end);
        this.#missingBytes -= end - at;
        at = end;
      } else {
        this.#number = (this.#number << 8) | (chunk[at] as number);
        this.#missingBytes -= 1;
        at += 1;
      }
      if (fault === undefined && this.#missingBytes === 0) fault = this.#fieldComplete();
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  /** Checks that a topic filter is UTF-8. The topic of a PUBLISH needs no check: only `up` is allowed (topics.ts). */
  #passTopic(chunk: Uint8Array, from: number, to: number): RefusalCause | undefined {
    if (this.#type === PUBLISH) return undefined;
    this.#text ??= new Utf8Check();
    const why = this.#text.pass(chunk, from, to);
    return why === undefined ? undefined : this.#fault(`a topic filter ${why}`);
  }

  #startField(field: number, length: number): RefusalCause | undefined {
    if (length > this.#bytesAfterField) return this.#fault(`it ends within its ${this.#nameOf(field)}`);
    this.#field = field;
    this.#missingBytes = length;
    this.#bytesAfterField -= length;
    this.#number = 0;
    return undefined;
  }

  /** Checks the complete current field, and starts the next one. */
  #fieldComplete(): RefusalCause | undefined {
    const isPublish = this.#type === PUBLISH;
    if (this.#field === TOPIC_LENGTH) {
      if (this.#number > 0) return this.#startField(TOPIC, this.#number);
      return isPublish ? this.#afterTopic() : this.#fault('an empty topic filter');
    }
    if (this.#field === TOPIC) return this.#afterTopic();
    if (this.#field === PACKET_ID) {
      if (this.#number === 0) return this.#fault('packet id 0');
      if (isPublish || this.#type === PUBACK) return this.#startField(UNCHECKED, 0);
      return this.#bytesAfterField === 0 ? this.#fault('it has no topic filter') : this.#startField(TOPIC_LENGTH, 2);
    }
    // Only QOS is left.
    if (this.#number > MAX_QOS) return this.#fault(`it asks for QoS ${this.#number}`);
    return this.#nextFilter();
  }

  #afterTopic(): RefusalCause | undefined {
    if (this.#type === PUBLISH) return this.#hasQos ? this.#startField(PACKET_ID, 2) : this.#startField(UNCHECKED, 0);
    const why = this.#text?.end();
    if (why !== undefined) return this.#fault(`a topic filter ${why}`);
    return this.#type === SUBSCRIBE ? this.#startField(QOS, 1) : this.#nextFilter();
  }

  #nextFilter(): RefusalCause | undefined {
    return this.#bytesAfterField === 0 ? this.#startField(UNCHECKED, 0) : this.#startField(TOPIC_LENGTH, 2);
  }

  #nameOf(field: number): string {
    if (field === PACKET_ID) return 'packet id';
    if (field === QOS) return 'QoS';
    return this.#type === PUBLISH ? 'topic' : 'topic filter';
  }

  #fault(why: string): RefusalCause {
    return malformed(this.#type, why);
  }
}

/** The fault of the first byte of a packet of a type that a client may send; undefined if there is none. */
export function flagsFault(header: number): RefusalCause | undefined {
  const type = header >> 4;
  if (type === PUBLISH) return (header & (DUP | QOS_BITS)) === DUP ? malformed(type, 'DUP is set at QoS 0') : undefined;
  const expected = isSubscribing(type) ? SUBSCRIBING_FLAGS : 0;
  return (header & 0x0f) === expected ? undefined : malformed(type, 'its flags are wrong');
}

function isSubscribing(type: number): boolean {
  return type === SUBSCRIBE || type === UNSUBSCRIBE;
}

function malformed(type: number, why: string): RefusalCause {
  return { reason: 'malformed', why: `a malformed ${nameOfType(type)}: ${why}` };
}

function nameOfType(type: number): string {
  if (type === PUBLISH) return 'PUBLISH';
  if (type === PUBACK) return 'PUBACK';
  if (type === SUBSCRIBE) return 'SUBSCRIBE';
  if (type === UNSUBSCRIBE) return 'UNSUBSCRIBE';
  return type === PINGREQ ? 'PINGREQ' : 'DISCONNECT';
}
