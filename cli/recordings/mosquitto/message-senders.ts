/**
 * Finds who sent a message that mosquitto_sub shows without its sender: lockgate's topics name no lock. Mosquitto's log
 * (`log_type all`) has the client, topic and length of each PUBLISH. Messages of the same topic and length are matched
 * in order, within some seconds. Either log may be read first.
 */
import { Seconds } from '../../../proto/clock.js';
import type { Sender } from '../sender.js';

/** Whole seconds in one log, and the delay between broker and subscriber. */
const MAX_DIFFERENCE_MS = Seconds(3);
/** Messages that wait for their match, of all topics and lengths. */
const MAX_WAITING = 200_000;

/** A message that mosquitto_sub received. */
export interface UnsentMessage {
  readonly atMs: number;
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly row: number;
}

interface Publish {
  readonly atMs: number;
  readonly sender: Sender;
}

interface Waiting {
  readonly messages: UnsentMessage[];
  readonly publishes: Publish[];
}

/** See the head of this file. */
export class MessageSenders {
  readonly #onMatch: (message: UnsentMessage, sender: Sender) => void;
  readonly #onUnknown: (message: UnsentMessage) => void;
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;

  /** @param onUnknown called for a message whose sender is not known */
  constructor(onMatch: (message: UnsentMessage, sender: Sender) => void, onUnknown: (message: UnsentMessage) => void) {
    this.#onMatch = onMatch;
    this.#onUnknown = onUnknown;
  }

  message(message: UnsentMessage): void {
    const waiting = this.#of(message.topic, message.payload.length);
    this.#dropOld(waiting.publishes, message.atMs);
    const [first] = waiting.publishes;
    if (first !== undefined && Math.abs(first.atMs - message.atMs) <= MAX_DIFFERENCE_MS) {
      waiting.publishes.shift();
      this.#count -= 1;
      this.#onMatch(message, first.sender);
    } else if (this.#count >= MAX_WAITING) this.#onUnknown(message);
    else {
      waiting.messages.push(message);
      this.#count += 1;
    }
  }

  publish(topic: string, bytes: number, atMs: number, sender: Sender): void {
    const waiting = this.#of(topic, bytes);
    while (waiting.messages[0] !== undefined && waiting.messages[0].atMs < atMs - MAX_DIFFERENCE_MS) {
      this.#onUnknown(waiting.messages.shift() as UnsentMessage);
      this.#count -= 1;
    }
    const [first] = waiting.messages;
    if (first !== undefined && Math.abs(first.atMs - atMs) <= MAX_DIFFERENCE_MS) {
      waiting.messages.shift();
      this.#count -= 1;
      this.#onMatch(first, sender);
    } else if (this.#count < MAX_WAITING) {
      waiting.publishes.push({ atMs, sender });
      this.#count += 1;
    }
  }

  /** No more lines come: the senders of what waits are unknown. */
  finish(): void {
    for (const { messages } of this.#waiting.values()) for (const message of messages) this.#onUnknown(message);
    this.#waiting.clear();
    this.#count = 0;
  }

  #of(topic: string, bytes: number): Waiting {
    const key = `${bytes} ${topic}`;
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      if (this.#waiting.size >= MAX_WAITING) this.finish();
      waiting = { messages: [], publishes: [] };
      this.#waiting.set(key, waiting);
    }
    return waiting;
  }

  /** The broker logged these, and mosquitto_sub did not receive them. */
  #dropOld(publishes: Publish[], atMs: number): void {
    while (publishes[0] !== undefined && publishes[0].atMs < atMs - MAX_DIFFERENCE_MS) {
      publishes.shift();
      this.#count -= 1;
    }
  }
}
