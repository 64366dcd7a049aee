/**
 * Looks up host names for webhooks with the system's name service, and detects when the name service is dead, that is,
 * answers no look-up at all.
 *
 * A look-up without an answer has one of two causes. Either the name servers of that host are broken, which is a
 * failure of the URL, or the machine's name service is dead, which is a failure of this machine. To find out, names
 * that were resolved before are looked up again: if one of them gets no answer either, the service is dead. If there is
 * no such name, the service also counts as dead: retrying a broken URL too long costs less than giving up a working
 * one.
 *
 * A look-up without an answer occupies one of the process's few threads for up to half a minute. So while the service
 * is dead, only two look-ups run at a time and further ones fail at once, until the first answer arrives.
 */
import type { LookupAddress, LookupAllOptions } from 'node:dns';

/** All addresses of a name, as node:dns looks them up. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** How many recently resolved names are remembered. */
const MAX_REMEMBERED_NAMES = 16;
/** How many remembered names are looked up again when another name gets no answer. */
const CHECKED_NAMES = 3;
/** Look-ups that may run at a time while the service is dead. */
const MAX_LOOKUPS_WHILE_DEAD = 2;

/** Error codes of look-ups without an answer. ENOTFOUND is not one: it is the answer that the name does not exist. */
const NO_ANSWER_CODES = new Set([
  ...['EAI_AGAIN', 'EAI_FAIL', 'EAI_SYSTEM', 'EIO'],
  ...['ETIMEOUT', 'ETIMEDOUT', 'ECONNREFUSED', 'ECONNRESET', 'ESERVFAIL', 'EREFUSED'],
]);

/** Whether an error means that a look-up got no answer. */
export function isUnanswered({ code = '', syscall }: NodeJS.ErrnoException): boolean {
  return syscall === 'getaddrinfo' && NO_ANSWER_CODES.has(code);
}

export class NameService {
  readonly #lookUp: LookupAll;
  /** The number of running look-ups of each name. */
  readonly #underWay = new Map<string, number>();
  /** The latest resolved names, oldest first. */
  readonly #resolvedNames = new Set<string>();
  /** For each name without an answer, the running check of other names. Resolves with whether they get answers. */
  readonly #checks = new Map<string, Promise<boolean>>();
  #isDead = false;

  constructor(lookUp: LookupAll) {
    this.#lookUp = lookUp;
  }

  /** Looks a name up; fails at once if the service is dead and enough look-ups are running. */
  readonly lookUp: LookupAll = (hostname, options, callback) => {
    if (this.#isDead && (this.#underWay.size >= MAX_LOOKUPS_WHILE_DEAD || this.isLookingUp(hostname))) {
      const error = Object.assign(new Error('the name service does not answer'), {
        code: 'EAI_AGAIN',
        syscall: 'getaddrinfo',
      });
      process.nextTick(callback, error, []);
      return;
    }
    this.#underWay.set(hostname, (this.#underWay.get(hostname) ?? 0) + 1);
    this.#lookUp(hostname, options, (error, addresses) => {
      this.#lookUpEnded(hostname);
      if (error === null) this.#remember(hostname);
      // ENOTFOUND is an answer too. Other errors do not show that the service works.
      if (error === null || error.code === 'ENOTFOUND') this.#isDead = false;
      callback(error, addresses);
    });
  };

  /** Whether this name is being looked up at the moment. */
  isLookingUp(hostname: string): boolean {
    return this.#underWay.has(hostname);
  }

  /**
   * Must be called after this name got no answer. Resolves with true if other names get one: only this name is broken.
   */
  answersOthers(hostname: string): Promise<boolean> {
    const check =
      this.#checks.get(hostname) ?? this.#checkOthers(hostname).finally(() => void this.#checks.delete(hostname));
    this.#checks.set(hostname, check);
    return check;
  }

  async #checkOthers(hostname: string): Promise<boolean> {
    if (this.#isDead) return false;
    const others = [...this.#resolvedNames].filter((each) => each !== hostname).slice(-CHECKED_NAMES);
    const answers = await Promise.all(others.map((each) => this.#getsAnswer(each)));
    // Without other names to ask for, nothing shows that the service works.
    this.#isDead = answers.length === 0 || answers.includes(false);
    return !this.#isDead;
  }

  #getsAnswer(hostname: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.lookUp(hostname, { all: true }, (error) => resolve(error === null || !isUnanswered(error)));
    });
  }

  #lookUpEnded(hostname: string): void {
    const left = (this.#underWay.get(hostname) ?? 1) - 1;
    if (left === 0) this.#underWay.delete(hostname);
    else this.#underWay.set(hostname, left);
  }

  /** Remembers a resolved name, except the names of this machine, which resolve without the service. */
  #remember(hostname: string): void {
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) return;
    this.#resolvedNames.delete(hostname);
    this.#resolvedNames.add(hostname);
    const [oldest] = this.#resolvedNames;
    if (this.#resolvedNames.size > MAX_REMEMBERED_NAMES && oldest !== undefined) this.#resolvedNames.delete(oldest);
  }
}
