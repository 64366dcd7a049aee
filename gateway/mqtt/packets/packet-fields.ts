/**
 * Checks the fields of the packets that a client sends after its CONNECT (MQTT 3.1.1, chapter 3), byte by byte as they
 * arrive and without buffering: each field lies within its packet, packet ids are not 0, topic filters are UTF-8.
 *
 * Where a packet is too short for a field, the broker library reads the field from the next packet, and answers
 * something that was never sent. So such a packet closes the connection before the library has all of it.
 */
import type { RefusalCause } from '../refusals/refusal-reason.js';
import { Utf8Check } from './utf8-check.js';

const [PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ] = [3, 4, 8, 10, 12];

/* The fields. Numbers instead of names, since this runs for every byte of every header. */
const TOPIC_LENGTH = 0;
const TOPIC = 1;
const PACKET_ID = 2;
const QOS = 3;
/** Nothing more is to be checked: a payload, or the end. */
const REST = 4;

/** Flags that the fixed header of SUBSCRIBE and UNSUBSCRIBE has; PUBACK, PINGREQ and DISCONNECT have none (2.2.2). */
const SUBSCRIBING_FLAGS = 0b0010;
const DUP = 0b1000;
const QOS_BITS = 0b0110;
const HIGHEST_QOS = 2;
/** The body of a PUBACK is its packet id. */
const PUBACK_LENGTH = 2;

export class PacketFields {
  #type = 0;
  #hasQos = false;
  #field = REST;
  /** How many bytes of the current field are still missing. */
  #missing = 0;
  /** How many bytes of the packet come after the current field. */
  #remaining = 0;
  /** The value of the current field, where it is a number. */
  #number = 0;
  /** Made with the first topic filter: most connections send hardly any. */
  #text: Utf8Check | undefined;

  /** Starts a packet with a body of `length` bytes. Returns what is wrong with it, if anything. */
  begin(header: number, length: number): RefusalCause | undefined {
    this.#type = header >> 4;
    this.#remaining = length;
    if (this.#type === PUBLISH) {
      this.#hasQos = (header & QOS_BITS) !== 0;
      return this.#startField(TOPIC_LENGTH, 2);
    }
    if (isSubscribing(this.#type)) return this.#startField(PACKET_ID, 2);
    const wanted = this.#type === PUBACK ? PUBACK_LENGTH : 0;
    if (length !== wanted) return this.#fault(`its length is ${length} and not ${wanted}`);
    return this.#type === PUBACK ? this.#startField(PACKET_ID, 2) : this.#startField(REST, 0);
  }

  /** Takes bytes of the body, no more than it has. Returns what is wrong with them, if anything. */
  pass(piece: Uint8Array, from: number, to: number): RefusalCause | undefined {
    for (let at = from; at < to && this.#field !== REST; ) {
      let fault: RefusalCause | undefined;
      if (this.#field === TOPIC) {
        const end = Math.min(at + this.#missing, to);
        fault = this.#passTopic(piece, at, end);
        this.#missing -= end - at;
        at = end;
      } else {
        this.#number = (this.#number << 8) | (piece[at] as number);
        this.#missing -= 1;
        at += 1;
      }
      if (fault === undefined && this.#missing === 0) fault = this.#fieldComplete();
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  /** A topic is compared with the one that there is (topics.ts); a filter may be any, so it is to be a text. */
  #passTopic(piece: Uint8Array, from: number, to: number): RefusalCause | undefined {
    if (this.#type === PUBLISH) return undefined;
    this.#text ??= new Utf8Check();
    const why = this.#text.pass(piece, from, to);
    return why === undefined ? undefined : this.#fault(`a topic filter ${why}`);
  }

  #startField(field: number, length: number): RefusalCause | undefined {
    if (length > this.#remaining) return this.#fault(`it ends within its ${this.#nameOf(field)}`);
    this.#field = field;
    this.#missing = length;
    this.#remaining -= length;
    this.#number = 0;
    return undefined;
  }

  /** The field under way has all its bytes: goes on to the next. */
  #fieldComplete(): RefusalCause | undefined {
    const isPublish = this.#type === PUBLISH;
    if (this.#field === TOPIC_LENGTH) {
      if (this.#number > 0) return this.#startField(TOPIC, this.#number);
      return isPublish ? this.#afterTopic() : this.#fault('an empty topic filter');
    }
    if (this.#field === TOPIC) return this.#afterTopic();
    if (this.#field === PACKET_ID) {
      if (this.#number === 0) return this.#fault('packet id 0');
      if (isPublish || this.#type === PUBACK) return this.#startField(REST, 0);
      return this.#remaining === 0 ? this.#fault('it has no topic filter') : this.#startField(TOPIC_LENGTH, 2);
    }
    if (this.#number > HIGHEST_QOS) return this.#fault(`it asks for QoS ${this.#number}`);
    return this.#nextFilter();
  }

  #afterTopic(): RefusalCause | undefined {
    if (this.#type === PUBLISH) return this.#hasQos ? this.#startField(PACKET_ID, 2) : this.#startField(REST, 0);
    const why = this.#text?.end();
    if (why !== undefined) return this.#fault(`a topic filter ${why}`);
    return this.#type === SUBSCRIBE ? this.#startField(QOS, 1) : this.#nextFilter();
  }

  #nextFilter(): RefusalCause | undefined {
    return this.#remaining === 0 ? this.#startField(REST, 0) : this.#startField(TOPIC_LENGTH, 2);
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

/** What is wrong with the first byte of a packet that a client may send; undefined where nothing is. */
export function flagsFault(header: number): RefusalCause | undefined {
  const type = header >> 4;
  if (type === PUBLISH) return (header & (DUP | QOS_BITS)) === DUP ? malformed(type, 'DUP is set at QoS 0') : undefined;
  const wanted = isSubscribing(type) ? SUBSCRIBING_FLAGS : 0;
  return (header & 0x0f) === wanted ? undefined : malformed(type, 'its flags are wrong');
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
