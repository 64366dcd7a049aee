/**
 * Finds the senders of messages. mosquitto_sub prints topic and payload, but not the sender, and lockgate's topics name
 * no lock. Mosquitto's log (`log_type all`) has the client, topic and length of each PUBLISH, but not the payload.
 * Messages and PUBLISHes of the same topic and length are matched in order, if their times differ by at most some
 * seconds. Either of the two logs may be read first.
 */
import { Seconds } from '../../../proto/clock.js';
import type { Sender } from '../sender.js';

/** The maximum difference of two times: one log has whole seconds, and mosquitto_sub receives with a delay. */
const MAX_DIFFERENCE_MS = Seconds(3);
/** The maximum number of messages and PUBLISHes that wait for their match. */
const MAX_WAITING = 200_000;

/** A message that mosquitto_sub received; its sender is unknown. */
export interface SubscriberMessage {
  readonly atMs: number;
  readonly topic: string;
  readonly payload: Uint8Array;
  /** The number of the line. */
  readonly row: number;
}

/** A PUBLISH in the broker's log. */
interface Publish {
  readonly atMs: number;
  readonly sender: Sender;
}

/** Messages and PUBLISHes of one topic and length that wait for their match. */
interface Waiting {
  readonly messages: SubscriberMessage[];
  readonly publishes: Publish[];
}

/** Matches messages with PUBLISHes. */
export class MessageSenders {
  readonly #onMatch: (message: SubscriberMessage, sender: Sender) => void;
  readonly #onUnknown: (message: SubscriberMessage) => void;
  readonly #waiting = new Map<string, Waiting>();
  /** The number of waiting messages and PUBLISHes. */
  #count = 0;

  /** @param onUnknown called for a message whose sender is not known */
  constructor(
    onMatch: (message: SubscriberMessage, sender: Sender) => void,
    onUnknown: (message: SubscriberMessage) => void,
  ) {
    this.#onMatch = onMatch;
    this.#onUnknown = onUnknown;
  }

  /** Adds a line of mosquitto_sub. */
  message(message: SubscriberMessage): void {
    const waiting = this.#waitingFor(message.topic, message.payload.length);
    this.#dropOld(waiting.publishes, message.atMs);
    const [publish] = waiting.publishes;
    if (publish !== undefined && Math.abs(publish.atMs - message.atMs) <= MAX_DIFFERENCE_MS) {
      waiting.publishes.shift();
      this.#count -= 1;
      this.#onMatch(message, publish.sender);
    } else if (this.#count >= MAX_WAITING) this.#onUnknown(message);
    else {
      waiting.messages.push(message);
      this.#count += 1;
    }
  }

  /** Adds a PUBLISH of the broker's log. */
  publish(topic: string, bytes: number, atMs: number, sender: Sender): void {
    const waiting = this.#waitingFor(topic, bytes);
    while (waiting.messages[0] !== undefined && waiting.messages[0].atMs < atMs - MAX_DIFFERENCE_MS) {
      this.#onUnknown(waiting.messages.shift() as SubscriberMessage);
      this.#count -= 1;
    }
    const [message] = waiting.messages;
    if (message !== undefined && Math.abs(message.atMs - atMs) <= MAX_DIFFERENCE_MS) {
      waiting.messages.shift();
      this.#count -= 1;
      this.#onMatch(message, sender);
    } else if (this.#count < MAX_WAITING) {
      waiting.publishes.push({ atMs, sender });
      this.#count += 1;
    }
  }

  /** Call after the last line: the senders of the waiting messages are unknown. */
  finish(): void {
    for (const { messages } of this.#waiting.values()) for (const message of messages) this.#onUnknown(message);
    this.#waiting.clear();
    this.#count = 0;
  }

  #waitingFor(topic: string, bytes: number): Waiting {
    const key = `${bytes} ${topic}`;
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      // With too many different topics and lengths, gives up on everything that waits.
      if (this.#waiting.size >= MAX_WAITING) this.finish();
      waiting = { messages: [], publishes: [] };
      this.#waiting.set(key, waiting);
    }
    return waiting;
  }

  /** Drops PUBLISHes that are too old for a match: mosquitto_sub did not receive these messages. */
  #dropOld(publishes: Publish[], atMs: number): void {
    while (publishes[0] !== undefined && publishes[0].atMs < atMs - MAX_DIFFERENCE_MS) {
      publishes.shift();
      this.#count -= 1;
    }
  }
}
