/**
 * The system's name service, as webhooks use it. Where a name gets no answer, either that name's own servers are
 * broken, which is the URL's failure, or the name service is dead, which is ours. Names that were answered before tell:
 * where one of them is not answered any more either, it is dead. Where there is no other name to ask, it counts as dead
 * too: a URL that is retried for longer than it deserves costs less than a good one that is given up.
 *
 * A look-up without an answer keeps one of the process's few threads for as long as half a minute. So while the service
 * is dead only two look-ups at a time go through, and the others fail at once; the first answer ends that.
 */
import type { LookupAddress, LookupAllOptions } from 'node:dns';

/** All addresses of a name, as node:dns looks them up. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Names that were answered and are remembered, the latest. */
const REMEMBERED = 16;
/** How many of them are asked about when another gets no answer. */
const ASKED = 3;
/** Look-ups at a time while the service is dead. */
const MOST_WHILE_DEAD = 2;

/** What a look-up fails with where no answer came. ENOTFOUND is an answer: there is no such name. */
const UNANSWERED = new Set([
  ...['EAI_AGAIN', 'EAI_FAIL', 'EAI_SYSTEM', 'EIO'],
  ...['ETIMEOUT', 'ETIMEDOUT', 'ECONNREFUSED', 'ECONNRESET', 'ESERVFAIL', 'EREFUSED'],
]);

/** Whether an error means that a look-up got no answer. */
export function isUnanswered({ code = '', syscall }: NodeJS.ErrnoException): boolean {
  return syscall === 'getaddrinfo' && UNANSWERED.has(code);
}

export class NameService {
  readonly #lookUp: LookupAll;
  /** Look-ups under way, by name. */
  readonly #underWay = new Map<string, number>();
  /** The latest that were answered, the oldest first. */
  readonly #answered = new Set<string>();
  readonly #asking = new Map<string, Promise<boolean>>();
  #isDead = false;

  constructor(lookUp: LookupAll) {
    this.#lookUp = lookUp;
  }

  /** Looks a name up; fails at once where the service is dead and enough others wait for it. */
  readonly lookUp: LookupAll = (hostname, options, callback) => {
    if (this.#isDead && (this.#underWay.size >= MOST_WHILE_DEAD || this.isLookingUp(hostname))) {
      const error = Object.assign(new Error('the name service does not answer'), {
        code: 'EAI_AGAIN',
        syscall: 'getaddrinfo',
      });
      process.nextTick(callback, error, []);
      return;
    }
    this.#underWay.set(hostname, (this.#underWay.get(hostname) ?? 0) + 1);
    this.#lookUp(hostname, options, (error, addresses) => {
      this.#ended(hostname);
      if (error === null) this.#remember(hostname);
      // That there is no such name is an answer. Other errors say nothing of the service.
      if (error === null || error.code === 'ENOTFOUND') this.#isDead = false;
      callback(error, addresses);
    });
  };

  /** Whether this name is being looked up at the moment. */
  isLookingUp(hostname: string): boolean {
    return this.#underWay.has(hostname);
  }

  /** To be asked where this name got no answer: whether other names get one, so that the failure is this name's own. */
  answersOthers(hostname: string): Promise<boolean> {
    const asking = this.#asking.get(hostname) ?? this.#ask(hostname).finally(() => void this.#asking.delete(hostname));
    this.#asking.set(hostname, asking);
    return asking;
  }

  async #ask(hostname: string): Promise<boolean> {
    if (this.#isDead) return false;
    const others = [...this.#answered].filter((each) => each !== hostname).slice(-ASKED);
    const answers = await Promise.all(others.map((each) => this.#isAnswered(each)));
    this.#isDead = answers.length === 0 || answers.includes(false);
    return !this.#isDead;
  }

  #isAnswered(hostname: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.lookUp(hostname, { all: true }, (error) => resolve(error === null || !isUnanswered(error)));
    });
  }

  #ended(hostname: string): void {
    const left = (this.#underWay.get(hostname) ?? 1) - 1;
    if (left === 0) this.#underWay.delete(hostname);
    else this.#underWay.set(hostname, left);
  }

  /** Names of this machine itself are answered without the service. */
  #remember(hostname: string): void {
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) return;
    this.#answered.delete(hostname);
    this.#answered.add(hostname);
    const [oldest] = this.#answered;
    if (this.#answered.size > REMEMBERED && oldest !== undefined) this.#answered.delete(oldest);
  }
}
