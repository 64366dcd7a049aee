/**
 * The table of error codes: what each means, and what helps. Programs get a code with each error over HTTP, and a
 * metric counts quarantined uplinks by theirs; people get the sentence of the error, which says more. The codes of
 * wrong input, which all begin with `input-`, are in input-codes.ts. test/check/error-codes.test.ts compares both
 * tables with the code.
 */

/** A code, and what it means. */
export type ErrorCode = readonly [code: string, meaning: string];

/** The codes of one kind, under a heading. */
export interface ErrorGroup {
  readonly title: string;
  readonly about: string;
  readonly codes: readonly ErrorCode[];
}

const CALLERS: ErrorGroup = {
  title: 'Who calls',
  about: 'A call over HTTP has no valid credential, or its credential does not allow the call.',
  codes: [
    ['unauthorized', 'There is no valid API key or token.'],
    ['not-logged-in', 'There is no valid session: log in first.'],
    ['wrong-login', 'The merchant, the user name or the password is wrong, or the user has no role.'],
    ['wrong-credentials', 'The user name or the password of `/v2/user/login` is wrong.'],
    ['wrong-password', 'The present password is wrong.'],
    ['wrong-link', 'The one-time link is unknown, used or expired: ask for a new one.'],
    ['invalid-request', 'A parameter of a request for a token is missing, or there twice.'],
    ['unsupported-grant-type', 'A request for a token has another `grant_type` than `client_credentials`.'],
    ['invalid-scope', 'A request for a token asks for a scope that the API key does not have.'],
    ['insufficient-scope', 'The API key or the token lacks the scope that the call needs.'],
    ['insufficient-role', 'The user’s or the token’s role does not allow the call.'],
    ['no-role', 'The user has no role on the merchant’s dashboard: an owner can give one.'],
    ['merchant-closed', 'The merchant is closed: `lockgate merchant reopen` opens it again.'],
    [
      'insecure',
      'A session of the dashboard or the console is used over plain HTTP from another machine: use HTTPS or a tunnel.',
    ],
    ['wrong-host', 'The dashboard or the console is called by an unknown host name: `--console-hosts` adds names.'],
    ['cross-site', 'A call with a session’s cookie was not made by a page of the dashboard or the console.'],
  ],
};

const REQUESTS: ErrorGroup = {
  title: 'The request',
  about: 'A call over HTTP can’t be read, is too large, or comes too often.',
  codes: [
    ['request', 'The request is not valid HTTP, or the gateway failed: the status tells which.'],
    ['no-such-route', 'There is nothing at this path.'],
    ['no-such-tile', 'The map has nothing at this place.'],
    ['tile-unavailable', 'The gateway can’t get the tile: the log says why.'],
    ['wrong-method', 'The path has no such method; the header `Allow` names those that it has.'],
    ['wrong-type', 'The content type of the body is not accepted here.'],
    ['body-too-large', 'The body has too many bytes.'],
    ['too-many-values', 'The body has too many values.'],
    ['too-many-items', 'The list has too many items for one call.'],
    ['pet-too-large', 'The record in the pet registry has too many bytes of text.'],
    ['rate-limited', 'A budget is used up: `budget` names it, and `Retry-After` says when to try again.'],
    ['quota-full', 'A quota of stored data is full: `budget` names it.'],
    ['busy', 'Too many connections or password checks, or another gateway still serves the lock: try again soon.'],
    ['starting', 'The gateway is starting: try again in a moment.'],
    ['stopping', 'The gateway is stopping.'],
    ['idempotency-key-in-use', 'The first call with this idempotency key is not answered yet.'],
    ['idempotency-key-reused', 'A different call used this idempotency key before.'],
    ['events-gone', 'Events after this cursor were deleted by age: go on from `oldest_cursor`.'],
  ],
};

const MISSING: ErrorGroup = {
  title: 'Nothing by that name',
  about: 'What is named does not exist, or belongs to another merchant.',
  codes: [
    ['no-such-command', 'There is no such command to a lock.'],
    ['no-such-device', 'There is no such lock.'],
    ['no-such-event', 'There is no such event.'],
    ['no-such-finding', 'There is no such finding of the judge, or a later uplink explained it and removed it.'],
    ['no-such-invitation', 'The invitation is unknown, used, withdrawn or expired.'],
    ['no-such-key', 'There is no such API key.'],
    ['no-such-merchant', 'There is no such merchant.'],
    ['no-such-notice', 'There is no such notice.'],
    ['no-such-pet', 'The pet registry has no such pet.'],
    ['no-such-phone', 'The lock has no such phone.'],
    ['no-such-quarantined', 'There is no such quarantined message.'],
    ['no-such-session', 'There is no such session.'],
    ['no-such-statement', 'There is no statement of this month.'],
    ['no-such-subject', 'Nothing that `lockgate why` or `GET /v1/why/{id}` explains has this id.'],
    ['no-such-token', 'There is no such valid token.'],
    ['no-such-uplink', 'The lock has no such uplink in the log.'],
    ['no-such-user', 'There is no such user.'],
    ['no-such-webhook', 'There is no such webhook URL.'],
  ],
};

const STATES: ErrorGroup = {
  title: 'Not in this state',
  about: 'The call is right, but what it is about is not in a state that allows it. Nothing was changed.',
  codes: [
    ['airplane-unconfirmed', 'The command would cut the lock off until somebody switches airplane mode off by hand.'],
    ['command-sent', 'The command was sent already, so it can’t be cancelled.'],
    ['commands-full', 'Too many commands wait for the lock: let some finish, or cancel some.'],
    ['commands-exhausted', 'All ids of commands are used.'],
    ['count-differs', 'The number of locks is not the one that was expected.'],
    ['device-exists', 'There is a lock with this MAC already.'],
    ['merchant-exists', 'There is a merchant of this name already.'],
    ['merchant-open', 'The merchant is not closed.'],
    ['phone-exists', 'The lock has a phone of this name already.'],
    ['token-exists', 'There is a token of this name already.'],
    ['user-exists', 'The user name or the id is taken already.'],
    ['backup-exists', 'Another backup is being made: wait for its end.'],
    ['last-owner', 'It would leave the merchant without an owner.'],
    ['too-many-invitations', 'The merchant has too many open invitations: withdraw some.'],
    ['too-many-keys', 'The merchant has the maximum number of valid API keys: revoke one first.'],
    ['too-many-marks', 'The lock was reflashed so often that no more can be recorded.'],
    ['too-many-phones', 'The lock has the maximum number of phones: revoke one first.'],
    ['too-many-tokens', 'The maximum number of named tokens is reached: revoke one first.'],
    ['webhook-disabled', 'The webhook URL is disabled: enable it first.'],
    ['webhook-secrets', 'The webhook URL has the maximum number of valid secrets: wait until one expires.'],
    ['notify-secrets', 'The maximum number of valid secrets for notifications is reached: wait until one expires.'],
    ['no-webhook-url', 'The lock’s merchant has no active webhook URL that gets the event.'],
    ['no-notify-url', 'There is no URL for notifications.'],
    ['event-damaged', 'The stored ping does not match its checksum, so it is not sent.'],
    ['merchant-needed', 'A lock needs a merchant, and there are several: name one.'],
    ['event-filtered', 'The webhook URL is not set to get such events.'],
    ['recovery-under-way', 'A recovery of this webhook URL is under way: wait for its end.'],
    ['usage-month-closed', 'The statement of the month is closed, and a closed month can’t change.'],
    ['usage-month-open', 'The month has not ended, so it can’t be closed.'],
    ['lock-is-judged', 'The lock is judged already: there is nothing to repair.'],
    ['judge-failed', 'The judge failed at the lock’s log: report it as a bug.'],
  ],
};

const STARTS: ErrorGroup = {
  title: 'The start and the store',
  about: 'The gateway does not start, or it ends, with one sentence and exit code 3.',
  codes: [
    ['port-taken', 'Another process uses the port.'],
    ['tls-file', 'The certificate or its key can’t be read, or they don’t belong together.'],
    ['bad-token-file', 'The file has no operator’s token.'],
    ['secret-file', 'A file with a secret can’t be read or written.'],
    [
      'data-in-use',
      'Another gateway uses the data folder or the database: stop it. Or an upgrade waits for a dump: try again later.',
    ],
    ['data-open', 'Others may write to the data folder: its owner has to restrict it.'],
    ['data-unwritable', 'The data folder can’t be written.'],
    ['bad-key', 'The key file holds no key.'],
    ['key-missing', 'The key file is missing: restore it from a backup.'],
    ['wrong-key', 'The key is not the one of this store: restore the right one from a backup.'],
    ['key-fits', 'The key belongs to this store, so there is no reason to forget its secrets.'],
    ['store-missing', 'The store is missing although what belongs to it is there: restore a backup.'],
    ['store-damaged', 'The store is damaged: `lockgate db check` has more.'],
    ['store-whole', 'The store has no damage that a start would refuse.'],
    ['store-foreign', 'The file or the database belongs to another program.'],
    ['store-newer', 'A newer version of lockgate wrote the store: run that version.'],
    ['store-unsafe', 'The store can’t be made durable with these settings of the disk or the database.'],
    ['store-refused', 'The database refuses the connection.'],
    ['store-unreachable', 'The database can’t be reached.'],
    ['store-changed', 'The database was failed over or restored while the gateway ran: the gateway ends.'],
    ['store-fenced', 'Another gateway has taken over the slot of this one: this one ends.'],
    ['store-failing', 'The store can’t write now; what waits to be stored is not acknowledged.'],
    ['store-moved', 'The store was moved to a database: start with `--store` and its URL.'],
    ['store-not-empty', 'The database to move a store to is not empty: make a new one.'],
    ['move-unfinished', 'A move of a store to the database was interrupted: run the same `lockgate db move` again.'],
    ['move-differs', 'What was copied to the database differs from the store, so nothing was moved.'],
    ['backup-elsewhere', 'The store is in PostgreSQL: back it up with its own tools.'],
    ['no-room', 'The disk has too little free space for this; nothing was written.'],
    ['stop-hung', 'A part of the gateway did not stop in time, and the process was ended.'],
    ['internal-pages', 'The console’s pages or the help are missing from the build: run `npm run build`.'],
  ],
};

const CLIENTS: ErrorGroup = {
  title: 'The command line and the gateway',
  about: 'A command can’t talk to the gateway (exit code 3), or a file of its own is no good.',
  codes: [
    ['gateway-down', 'There is no gateway at this address: start one, or name another with `--gateway`.'],
    ['gateway-slow', 'The gateway did not answer in time.'],
    ['gateway-answer', 'What answered is not a gateway of this version.'],
    ['gateway-refused', 'The gateway refused the call; the sentence is the gateway’s.'],
    ['gateway-address', 'The file with the gateway’s address can’t be read.'],
    ['gateway-token', 'The file with the token can’t be read, or has none.'],
    ['out-unwritten', 'The file with the new secrets can’t be written; they are on the standard output.'],
    ['bad-demo-file', 'A file of the demo can’t be read: remove it and start again.'],
    ['bad-flash', 'The file is not the flash of a simulated lock.'],
    ['bad-count', 'A simulated fleet can’t have so many locks.'],
    ['shell', 'A line of `lockgate sim shell` is not understood.'],
    ['happening', 'An event of a scenario or of the shell is not understood.'],
  ],
};

const UPLINKS: ErrorGroup = {
  title: 'Uplinks and traces',
  about: 'Bytes from a lock that can’t be accepted go to quarantine; a wrong line of a trace has its number.',
  codes: [
    ['undecodable', 'The bytes are no protobuf message of this kind.'],
    ['too-long', 'The uplink has too many bytes.'],
    ['no-boot', 'The uplink has no boot number.'],
    ['no-sequence', 'The uplink has no sequence number.'],
    ['no-time', 'The uplink has no time.'],
    ['no-body', 'The uplink carries neither a ping nor an acknowledgement.'],
    ['no-command', 'The downlink carries no command.'],
    ['bad-mac', 'The text is no MAC: 12 hex digits are expected.'],
    ['bad-ping', 'The JSON is no ping.'],
    ['bad-uplink', 'The JSON is no uplink.'],
    ['bad-trace', 'The line is no line of a trace.'],
    ['bad-truth', 'A member of a trace’s `world` event is not valid.'],
    ['bad-state', 'The stored state of a lock can’t be read; it is computed anew from the log.'],
    ['unencodable', 'A value can’t be sent: it is outside what the wire can carry.'],
    ['publish-refused', 'The gateway refuses what a lock publishes; `lockgate tail` says why.'],
    ['session-ended', 'The connection is being ended, so nothing more is taken from it.'],
    ['account-changed', 'The lock’s account changed while its uplink waited; the lock sends it again.'],
    ['not-owner', 'Another gateway serves the lock.'],
    ['overloaded', 'Too many uplinks wait to be stored; the lock sends again.'],
  ],
};

const WEBHOOKS: ErrorGroup = {
  title: 'Webhooks',
  about: 'A webhook is not sent, or a receiver does not trust it.',
  codes: [
    ['address-refused', 'The URL’s host has an address that webhooks may not be sent to (`--allow-webhook-range`).'],
    ['unsigned', 'A header of the signature is missing.'],
    ['bad-timestamp', 'The webhook’s time is too far from this machine’s, or is no time.'],
    ['bad-signature', 'No signature matches this body and secret.'],
  ],
};

/** All groups except that of wrong input. */
export const ERROR_GROUPS: readonly ErrorGroup[] = Object.freeze([
  CALLERS,
  REQUESTS,
  MISSING,
  STATES,
  STARTS,
  CLIENTS,
  UPLINKS,
  WEBHOOKS,
]);
