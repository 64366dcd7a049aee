/**
 * A table of the store's methods that says which of them write, and `forwardStore`, which wraps a store and finds the
 * methods that write in this table. health/store.ts watches the writes with it; locks/current-states.ts replaces
 * methods so that they return current states. If the contract has a method that the table lacks, this file does not
 * compile.
 */
import type { Store } from './store.js';

/** A method that writes resolves once the write is durable. `closes` closes the store. */
export type MethodEffect = 'reads' | 'writes' | 'closes';

/**
 * A table with an entry for each member of a part of the store; `value` for a member that is no method. A method that
 * returns no promise can't wait for the disk, so it counts as reading.
 */
export type MethodTable<Part> = {
  readonly [Name in keyof Part]-?: Part[Name] extends (...args: never[]) => infer Result
    ? Result extends Promise<unknown>
      ? MethodEffect
      : 'reads'
    : Part[Name] extends object
      ? MethodTable<Part[Name]>
      : 'value';
};

export const STORE_METHODS: MethodTable<Store> = {
  description: 'value',
  commitSpacing: { commitsPerSecond: 'value', minSharingItems: 'value' },
  append: 'writes',
  readDeviceState: 'reads',
  readDeviceStates: 'reads',
  readUplinksAfterStates: 'reads',
  readDigests: 'reads',
  findLock: 'reads',
  readEvents: 'reads',
  readOutcomesAfter: 'reads',
  readDueDeliveries: 'reads',
  nextDueAtMs: 'reads',
  recordProgress: 'writes',
  addMerchant: 'writes',
  listMerchants: 'reads',
  addDevice: 'writes',
  addDevices: 'writes',
  findTakenMacs: 'reads',
  replaceLockCredential: 'writes',
  addPhone: 'writes',
  listCredentials: 'reads',
  listPhones: 'reads',
  revokePhone: 'writes',
  changeDevice: 'writes',
  describeLock: 'writes',
  revokeCredentials: 'writes',
  removeDevice: 'writes',
  findDeviceId: 'reads',
  eraseDevice: 'writes',
  scrub: 'writes',
  deleteOld: 'writes',
  listDevices: 'reads',
  readDevices: 'reads',
  findDevices: 'reads',
  countDevices: 'reads',
  findDevice: 'reads',
  readUplinks: 'reads',
  readFindings: 'reads',
  readLog: 'reads',
  readLogChunks: 'reads',
  readQuarantine: 'reads',
  addWebhookUrl: 'writes',
  listWebhookUrls: 'reads',
  readFigures: 'reads',
  readDiskSpace: 'reads',
  readLastReceivedAtMs: 'reads',
  readMetadata: 'reads',
  writeMetadata: 'writes',
  readCopy: 'reads',
  close: 'closes',
  webhooks: {
    find: 'reads',
    change: 'writes',
    remove: 'writes',
    rotateSecret: 'writes',
    readOldSecrets: 'reads',
    readPendingLocks: 'reads',
    readWaits: 'reads',
    shortenWaits: 'writes',
    hasPending: 'reads',
    findFirstUplinkFrom: 'reads',
    findPositionAt: 'reads',
    findEvent: 'reads',
    selectPassing: 'reads',
    readDeliveries: 'reads',
    sumUpNewestAttempts: 'reads',
    countAttempted: 'reads',
    countPings: 'reads',
    resend: 'writes',
    releaseRepaired: 'writes',
    recover: 'writes',
  },
  secrets: {
    readKeyMetadata: 'reads',
    recordKeyId: 'writes',
    sealPlaintextHeaders: 'writes',
    reseal: 'writes',
    forget: 'writes',
  },
  usage: {
    activate: 'writes',
    readActivations: 'reads',
    add: 'writes',
    read: 'reads',
    putPlan: 'writes',
    readPlans: 'reads',
    readClosedMonths: 'reads',
    close: 'writes',
    readStatements: 'reads',
    readPage: 'reads',
    readClosings: 'reads',
    noteCounted: 'reads',
    readCountedThrough: 'reads',
    findStatement: 'reads',
  },
  access: {
    addKey: 'writes',
    findKey: 'reads',
    listKeys: 'reads',
    revokeKey: 'writes',
    renameKey: 'writes',
    recordKeyUse: 'writes',
    addToken: 'writes',
    findToken: 'reads',
  },
  people: {
    addUsers: 'writes',
    checkNotTaken: 'reads',
    checkUserQuota: 'reads',
    listUsers: 'reads',
    findUser: 'reads',
    changeUser: 'writes',
    removeUser: 'writes',
    findLogin: 'reads',
    addSession: 'writes',
    findSession: 'reads',
    endSession: 'writes',
    addPet: 'writes',
    updatePet: 'writes',
  },
  merchants: { rename: 'writes', close: 'writes', reopen: 'writes' },
  invitations: { add: 'writes', list: 'reads', find: 'reads', remove: 'writes', accept: 'writes' },
  notifications: {
    readRecipients: 'reads',
    setUrl: 'writes',
    readSecrets: 'reads',
    addSecret: 'writes',
    record: 'writes',
    readOpenTroubles: 'reads',
    readDue: 'reads',
    nextDueAtMs: 'reads',
    release: 'writes',
    conclude: 'writes',
    shortenWaits: 'writes',
    countMessages: 'reads',
  },
  notices: {
    write: 'writes',
    list: 'reads',
    readOpen: 'reads',
    readLeftOpen: 'reads',
    readUnread: 'reads',
    markRead: 'writes',
  },
  why: {
    findUplinks: 'reads',
    findFinding: 'reads',
    readNewestFindings: 'reads',
    readFindingsOfMerchant: 'reads',
    findFindingsAbout: 'reads',
    findQuarantined: 'reads',
    isInGap: 'reads',
    findLogStart: 'reads',
    readLogFrom: 'reads',
    readStateChangesFrom: 'reads',
  },
  scans: { pings: 'reads', events: 'reads' },
  audit: { begin: 'writes', end: 'writes', write: 'writes', abandon: 'writes', list: 'reads' },
  refusals: { write: 'writes', read: 'reads' },
  marks: { readAll: 'reads', read: 'reads', add: 'writes' },
  consoleSessions: {
    addForUser: 'writes',
    addLink: 'writes',
    redeemLink: 'writes',
    find: 'reads',
    list: 'reads',
    end: 'writes',
  },
  ownership: {
    slot: 'value',
    locks: { isSole: 'value', owns: 'reads', claim: 'writes', adopt: 'writes', release: 'writes', onWish: 'reads' },
    urls: { owns: 'reads', claim: 'writes', release: 'writes', onWish: 'reads' },
    duties: { holds: 'reads', onGain: 'reads' },
    signals: { send: 'reads', onSignal: 'reads' },
  },
  operatorTokens: { add: 'writes', find: 'reads', list: 'reads', revoke: 'writes', recordUse: 'writes' },
  commands: {
    add: 'writes',
    addOnce: 'writes',
    findAnswer: 'reads',
    find: 'reads',
    list: 'reads',
    readUnfinished: 'reads',
    expire: 'writes',
    postpone: 'writes',
    cancel: 'writes',
    readPowerChanges: 'reads',
  },
};

/** Any method that writes. */
export type WriteMethod = (...args: readonly unknown[]) => Promise<unknown>;

/** Returns the replacement of a method that writes. `name` is for example `append` or `usage.close`. */
export type WrapWrite = (name: string, write: WriteMethod) => WriteMethod;

/** Returns a store that forwards every call to `store`; `wrapWrite` wraps the methods that write. */
export function forwardStore(store: Store, wrapWrite: WrapWrite = (_name, write) => write): Store {
  return forwardPart(store, STORE_METHODS, '', wrapWrite);
}

type Entry = MethodEffect | 'value' | MethodTable<object>;

/** As {@link forwardStore}, for a part of the store. `group` precedes the names of its methods, such as `usage.`. */
function forwardPart<Part extends object>(part: Part, table: MethodTable<Part>, group: string, wrap: WrapWrite): Part {
  const members = part as { readonly [name: string]: unknown };
  const forwarded: Record<string, unknown> = {};
  for (const [name, entry] of Object.entries<Entry>(table)) {
    const call: WriteMethod = (...args) => (members[name] as WriteMethod).apply(part, [...args]);
    if (entry === 'value') forwarded[name] = members[name];
    else if (typeof entry === 'object') forwarded[name] = forwardPart(members[name] as object, entry, `${name}.`, wrap);
    else forwarded[name] = entry === 'writes' ? wrap(`${group}${name}`, call) : call;
  }
  return forwarded as Part;
}
