/**
 * Recognises repeats of a merchant's call by its idempotency key, a text that the merchant chooses for the call
 * (interfaces.md §2): a repeat gets the stored answer to the first call, and nothing happens twice. The store writes
 * the answer in the same transaction as the call's changes.
 */
import { createHash } from 'node:crypto';
import { LockgateError } from '../../proto/errors.js';
import type { CommandStore, IdempotentCall } from '../store/contract/command-record.js';

/** The answer of a call, and whether it is the stored answer of an earlier call. */
export interface OnceResult {
  readonly answer: string;
  readonly isRepeat: boolean;
}

export class IdempotentCalls {
  readonly #commands: Pick<CommandStore, 'findAnswer'>;
  /** The calls that are being answered. */
  readonly #underWay = new Set<string>();

  constructor(commands: Pick<CommandStore, 'findAnswer'>) {
    this.#commands = commands;
  }

  /**
   * Makes a call, or returns the answer of an earlier call with the same key.
   *
   * @param makeCall does what the call asks for, stores the answer with it, and returns the answer. If it fails, the
   *   key is unused.
   * @throws LockgateError `idempotency-key-in-use` while the first call is under way; `idempotency-key-reused` if the
   *   earlier call was a different one
   */
  async once(call: IdempotentCall, makeCall: () => Promise<string>): Promise<OnceResult> {
    const callName = JSON.stringify([call.merchantId, call.route, call.key]);
    if (this.#underWay.has(callName))
      throw new LockgateError('idempotency-key-in-use', 'the first call with this idempotency key is not answered yet');
    this.#underWay.add(callName);
    try {
      const earlier = await this.#commands.findAnswer(call);
      if (earlier === null) return { answer: await makeCall(), isRepeat: false };
      if (!earlier.bodyDigest.equals(call.bodyDigest))
        throw new LockgateError('idempotency-key-reused', 'a different call used this idempotency key before');
      return { answer: earlier.answer, isRepeat: true };
    } finally {
      this.#underWay.delete(callName);
    }
  }
}

/** A digest of JSON values. Values that differ only in the order of members have different digests. */
export function digestOf(...values: readonly unknown[]): Buffer {
  // JSON has no bigints; as texts with an `n` they differ from numbers.
  const text = JSON.stringify(values, (_name, value) => (typeof value === 'bigint' ? `${value}n` : value));
  return createHash('sha256').update(text).digest();
}
