/**
 * A model of commits to one slot of a database with a synchronous standby (gateway/store/contract/slots/ownership.ts).
 * A slot is a number under which one gateway at a time, its owner, stores uplinks (locks' messages). The slot's row in
 * the database has the owner's epoch, which each takeover replaces, and its session, which the owner itself replaces
 * when it has to stop its own earlier commits. A commit carries both, and the fence is the comparison with the row.
 *
 * One lock sends uplinks whose names are 1, 2, 3 …; an unacknowledged one is sent again. Gateways take the slot over
 * from each other, while the former owners go on (a pause, a half-open link). A commit that a gateway has given up may
 * be carried out later; it is in doubt until the gateway looks in the database for the commit's number (the mark). A
 * wait for the standby may be cancelled; a failover may lose what the standby has not got.
 *
 * {@link COMMIT_GUARDS} are the rules that make this safe. Without any one of them a fault is found.
 */
import { type Model, type Step, withItem } from './explore.js';

/** Each rule, with what goes wrong in a gateway without it. */
export const COMMIT_GUARDS = {
  /** A commit stores nothing unless epoch and session of the slot's row are its own. */
  fence: 'a paused owner stores after a takeover',
  /** Every write of a commit depends on the fence, and not only the result that it reports. */
  fencedParts: 'one part of a fenced commit is stored',
  /** A gateway in doubt about a commit takes a new session first, so that the commit can't be carried out any more. */
  session: 'a late commit of the same epoch is carried out',
  /** It looks only then whether the commit is there. */
  lookAfterSession: 'a commit is carried out after the look',
  /** It looks at all, instead of storing the commit's content again. */
  look: 'what was stored is stored again',
  /** What it reads at its start counts only if the slot is its own then. */
  loadAsOwner: 'it takes as stored what a failover has lost',
  /**
   * A commit is stored, and a look counts, only while the row's mark shows that the last commit which the gateway knows
   * to be stored is still there. Otherwise the gateway ends.
   */
  consecutive: 'a failover loses a commit that a look had found',
  /** Epochs and sessions are drawn by chance. Counted numbers come back after a failover. */
  numbersByChance: 'two owners have one epoch',
  /** A commit counts as stored only when the standby has it. */
  standby: 'a failover loses what was acknowledged',
  /** A cancelled wait for the standby is a commit in doubt, although the database reports a success. */
  cancelledWait: 'a failover loses what a cancelled wait reported',
  /** A repeat is acknowledged only by a commit that took the fence and waited for the standby. */
  fencedRepeat: 'a repeat is acknowledged before the standby has the uplink',
} as const;
export type CommitGuard = keyof typeof COMMIT_GUARDS;

/** The database, or what its standby has. */
interface Database {
  readonly epoch: number;
  readonly session: number;
  /** The number of the epoch's last commit; commits of an epoch are numbered from 1. */
  readonly mark: number;
  /** The names of the stored uplinks. */
  readonly log: readonly number[];
  /** How many changes the standby does not have yet. */
  readonly unreplicated: number;
}

/** A commit under way. `by` is the index of its gateway, `number` its place in the epoch, `names` its uplinks. */
interface SentCommit {
  readonly by: number;
  readonly epoch: number;
  readonly session: number;
  readonly number: number;
  readonly names: readonly number[];
  /** What the database has done: nothing yet, stored it, or stored nothing because of the fence. */
  readonly outcome: 'none' | 'stored' | 'fenced';
  /** Which of the changes that the standby lacks this is, from 1; 0 once the standby has it. */
  readonly changeNumber: number;
}

/**
 * What a gateway does: not started, reading the log after it took the slot, ready for an uplink, waiting for a commit's
 * answer, not knowing whether its commit was stored, finding that out, or ended for good.
 */
type Phase = 'off' | 'loading' | 'ready' | 'waiting' | 'in-doubt' | 'looking' | 'ended';

/** A gateway, as it sees its slot. A name is the number of one of the lock's uplinks. */
interface Gateway {
  readonly phase: Phase;
  readonly epoch: number;
  /** The sessions that it has taken in its epoch; the last one is current. */
  readonly sessions: readonly number[];
  /** The number of its last commit that it knows to be stored. */
  readonly number: number;
  /** The highest name that it knows to be stored. */
  readonly known: number;
  /** The name that the commit under way is to acknowledge. */
  readonly name: number;
}

/** A state of the model: both databases, the commits under way, the gateways, and what may still happen. */
export interface CommitState {
  readonly primary: Database;
  readonly standby: Database;
  readonly commits: readonly SentCommit[];
  readonly gateways: readonly Gateway[];
  /** The last name that the lock got an acknowledgement for. */
  readonly acked: number;
  /** How many more times a connection or a wait may be cut. */
  readonly cuts: number;
  /** How many more times the standby may become the primary. */
  readonly failovers: number;
}

/** How much may happen at most: `names` is the number of uplinks that the lock sends. */
export interface CommitBounds {
  readonly names: number;
  readonly gateways: number;
  readonly cuts: number;
  readonly failovers: number;
}

/** The model, with all rules or without one of them. */
export class CommitModel implements Model<CommitState> {
  readonly #bounds: CommitBounds;
  readonly #removed: CommitGuard | undefined;
  readonly start: CommitState;

  /** @param removed the rule that the gateways do not follow */
  constructor(bounds: CommitBounds, removed?: CommitGuard) {
    this.#bounds = bounds;
    this.#removed = removed;
    const first = this.#numbersOf(0, 0);
    const database = { ...first, mark: 0, log: [], unreplicated: 0 };
    const owner: Gateway = { ...OFF, phase: 'ready', epoch: first.epoch, sessions: [first.session] };
    this.start = {
      primary: database,
      standby: database,
      commits: [],
      gateways: [owner, ...Array.from({ length: bounds.gateways - 1 }, () => OFF)],
      acked: 0,
      cuts: bounds.cuts,
      failovers: bounds.failovers,
    };
  }

  #has(guard: CommitGuard): boolean {
    return this.#removed !== guard;
  }

  /**
   * Epoch and session of a gateway that takes over from an epoch. In place of random numbers they are so far apart that
   * no other gateway gets the same ones, although each later session of a gateway is only higher by one.
   */
  #numbersOf(gateway: number, epochBefore: number): { epoch: number; session: number } {
    return this.#has('numbersByChance')
      ? { epoch: gateway + 1, session: 10 * (gateway + 1) }
      : { epoch: epochBefore + 1, session: 1 };
  }

  fault({ primary, acked }: CommitState): string | undefined {
    for (const [index, name] of primary.log.entries()) {
      const before = primary.log[index - 1] ?? 0;
      if (name === before) return `uplink ${name} is stored twice`;
      if (name < before) return `uplink ${name} is stored after ${before}`;
    }
    return acked > 0 && !primary.log.includes(acked) ? `uplink ${acked} was acknowledged and is lost` : undefined;
  }

  *steps(state: CommitState): Iterable<Step<CommitState>> {
    for (const [index, gateway] of state.gateways.entries()) {
      yield* this.#gatewaySteps(state, index, gateway);
    }
    for (const index of state.commits.keys()) yield* this.#commitSteps(state, index);
    if (state.primary.unreplicated > 0) yield { name: 'the standby catches up', state: caughtUp(state) };
    if (state.failovers > 0) yield { name: 'failover', state: failover(state) };
  }

  *#gatewaySteps(state: CommitState, index: number, gateway: Gateway): Iterable<Step<CommitState>> {
    const { primary } = state;
    const become: Become = (name, changes, more = {}) => {
      const gateways = withItem(state.gateways, index, { ...gateway, ...changes });
      return { name: `gateway ${index} ${name}`, state: { ...state, ...more, gateways } };
    };
    switch (gateway.phase) {
      case 'off': {
        const numbers = this.#numbersOf(index, primary.epoch);
        const taken = { ...primary, ...numbers, mark: 0, unreplicated: primary.unreplicated + 1 };
        const owner = { phase: 'loading', epoch: numbers.epoch, sessions: [numbers.session] } as const;
        yield become('takes the slot', owner, { primary: taken });
        break;
      }
      case 'loading':
        if (primary.epoch !== gateway.epoch && this.#has('loadAsOwner')) yield become('finds another owner', ENDED);
        else yield become('reads the log', { phase: 'ready', known: Math.max(0, ...primary.log) });
        break;
      case 'ready':
        if (state.acked < this.#bounds.names) yield this.#send(state, gateway, become, index);
        break;
      case 'waiting':
        if (state.cuts > 0)
          yield become(
            'loses its connection',
            { phase: 'in-doubt' },
            { ...unread(state, index), cuts: state.cuts - 1 },
          );
        break;
      case 'in-doubt':
        if (!this.#has('look')) yield become('assumes that nothing is stored', { phase: 'ready' });
        else if (this.#has('lookAfterSession')) yield this.#takeSession(state, gateway, become, 'looking');
        else yield this.#look(state, gateway, become, 'looking');
        break;
      case 'looking':
        if (this.#has('lookAfterSession')) yield this.#look(state, gateway, become, 'ready');
        else yield this.#takeSession(state, gateway, become, 'ready');
        break;
    }
  }

  /** The lock's uplink arrives, perhaps again. */
  #send(state: CommitState, gateway: Gateway, become: Become, by: number): Step<CommitState> {
    const name = state.acked + 1;
    const isRepeat = name <= gateway.known;
    if (isRepeat && !this.#has('fencedRepeat')) return become(`acknowledges ${name} again`, {}, { acked: name });
    const names = isRepeat ? [] : [name];
    const session = gateway.sessions.at(-1) ?? 0;
    const commit = {
      by,
      epoch: gateway.epoch,
      session,
      number: gateway.number + 1,
      names,
      outcome: 'none' as const,
      changeNumber: 0,
    };
    return become(`sends a commit for ${name}`, { phase: 'waiting', name }, { commits: [...state.commits, commit] });
  }

  /** The gateway takes a new session, so that the database carries out no commit of the old one any more. */
  #takeSession({ primary }: CommitState, gateway: Gateway, become: Become, phase: Phase): Step<CommitState> {
    if (!this.#has('session')) return become('connects again', { phase });
    if (primary.epoch !== gateway.epoch || !gateway.sessions.includes(primary.session))
      return become('finds that it is not the owner', ENDED);
    const session = (gateway.sessions.at(-1) ?? 0) + 1;
    const taken = { ...primary, session, unreplicated: primary.unreplicated + 1 };
    return become('takes a new session', { phase, sessions: [...gateway.sessions, session] }, { primary: taken });
  }

  /** Looks for the commit in doubt. */
  #look({ primary }: CommitState, gateway: Gateway, become: Become, phase: Phase): Step<CommitState> {
    const number = gateway.number + 1;
    if (primary.epoch !== gateway.epoch) return become('finds another owner', ENDED);
    if (primary.mark < gateway.number && this.#has('consecutive'))
      return become('finds that its commits are lost', ENDED);
    if (primary.mark < number) return become('does not find the commit', { phase });
    return become('finds the commit', { phase, number, known: Math.max(gateway.known, gateway.name) });
  }

  /** What may happen to a commit: it is carried out, and its answer arrives. */
  *#commitSteps(state: CommitState, index: number): Iterable<Step<CommitState>> {
    const commit = state.commits[index] as SentCommit;
    const others = state.commits.filter((_, at) => at !== index);
    const label = `the commit ${commit.number} of gateway ${commit.by}`;
    if (commit.outcome === 'none') {
      yield { name: `${label} is carried out`, state: this.#execute(state, index, commit) };
      return;
    }
    const gateway = state.gateways[commit.by] as Gateway;
    const become = (changes: Partial<Gateway>): readonly Gateway[] => {
      return withItem(state.gateways, commit.by, { ...gateway, ...changes });
    };
    if (commit.outcome === 'fenced') {
      yield { name: `${label} was fenced`, state: { ...state, commits: others, gateways: become(ENDED) } };
      return;
    }
    const stored = become({ phase: 'ready', number: commit.number, known: Math.max(gateway.known, gateway.name) });
    const acknowledged = { ...state, commits: others, gateways: stored, acked: Math.max(state.acked, gateway.name) };
    if (!this.#has('standby') || commit.changeNumber === 0)
      yield { name: `${label} is acknowledged`, state: acknowledged };
    else if (state.cuts > 0) {
      const inDoubt = { ...state, commits: others, gateways: become({ phase: 'in-doubt' }) };
      const next = this.#has('cancelledWait') ? inDoubt : acknowledged;
      yield { name: `${label} stops waiting for the standby`, state: { ...next, cuts: state.cuts - 1 } };
    }
  }

  /** The database carries out the commit's statement, if the fence lets it. */
  #execute(state: CommitState, index: number, commit: SentCommit): CommitState {
    const { primary } = state;
    const isOwner = primary.epoch === commit.epoch && (primary.session === commit.session || !this.#has('session'));
    const follows = primary.mark === commit.number - 1 || !this.#has('consecutive');
    const isFenced = !(isOwner && follows) && this.#has('fence');
    const changeNumber = isFenced ? 0 : primary.unreplicated + 1;
    const log = isFenced && this.#has('fencedParts') ? primary.log : [...primary.log, ...commit.names];
    const mark = isFenced ? primary.mark : Math.max(primary.mark, commit.number);
    const carriedOut = {
      ...state,
      primary: { ...primary, log, mark, unreplicated: Math.max(primary.unreplicated, changeNumber) },
    };
    // Nobody waits for the answer on a connection that the gateway has given up.
    if (!isAwaited(state, commit)) return { ...carriedOut, commits: state.commits.filter((_, at) => at !== index) };
    const outcome = isFenced ? 'fenced' : 'stored';
    return { ...carriedOut, commits: withItem(state.commits, index, { ...commit, outcome, changeNumber }) };
  }
}

/** Makes a step of a gateway: what it does in words, what changes in it, and what else changes in the state. */
type Become = (label: string, changes: Partial<Gateway>, more?: Partial<CommitState>) => Step<CommitState>;

/** It has not started. */
const OFF: Gateway = { phase: 'off', epoch: 0, sessions: [], number: 0, known: 0, name: 0 };
/** It does nothing any more, and what it knew does not matter. */
const ENDED: Gateway = { ...OFF, phase: 'ended' };

/** Whether the gateway waits for the answer to this commit. */
function isAwaited({ gateways }: CommitState, { by, number, session }: SentCommit): boolean {
  const gateway = gateways[by] as Gateway;
  return gateway.phase === 'waiting' && gateway.number + 1 === number && gateway.sessions.at(-1) === session;
}

/** The commits without those whose answer the gateway will not read; one that may still be carried out stays. */
function unread({ commits }: CommitState, by: number): Pick<CommitState, 'commits'> {
  return { commits: commits.filter((commit) => commit.by !== by || commit.outcome === 'none') };
}

/** The standby has every change of the primary. */
function caughtUp(state: CommitState): CommitState {
  const primary = { ...state.primary, unreplicated: 0 };
  const commits = state.commits.map((commit) => ({ ...commit, changeNumber: 0 }));
  return { ...state, primary, standby: primary, commits };
}

/** The standby becomes the primary: what it has not got is lost, and so is everything on the way. */
function failover(state: CommitState): CommitState {
  const gateways = state.gateways.map((gateway) => {
    return gateway.phase === 'waiting' ? { ...gateway, phase: 'in-doubt' as const } : gateway;
  });
  return { ...state, primary: state.standby, commits: [], gateways, failovers: state.failovers - 1 };
}
