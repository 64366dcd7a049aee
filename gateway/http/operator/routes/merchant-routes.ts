/** The operators' routes for merchants, and for the notify URLs by which merchants learn of troubles of their URLs. */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { checkUrl } from '../../../accounts/accounts.js';
import type { RecipientReading } from '../../../notify/notifier.js';
import type { Merchant } from '../../../store/contract/merchants/merchant-store.js';
import { originOf, pick } from '../json/audit-terms.js';
import { NotifySecretAnswer, NotifyTestAnswer, RecipientAnswer, recipientJson, testedJson } from '../json/recipient.js';
import { findMerchant } from '../merchant-name.js';
import { type OperatorParts, type Route, type RouteRequest, withBody } from '../routes.js';
import { Exact, MaybeText, MaybeTime, Name, OneOf, OrNull, Time } from '../schemas.js';

/** A merchant's notify URL, in requests. */
const NotifyUrl = Type.String({ description: 'Where the merchant learns that a URL of its fails or is disabled.' });
const NewMerchant = Exact({ name: Name, notify_url: Type.Optional(NotifyUrl) });
const ChangedMerchant = Exact({
  name: Type.Optional(Name),
  notify_url: Type.Optional(Type.String({ description: 'Its new notify URL; empty for none.' })),
});
const Rotation = Exact({ grace_seconds: Type.Optional(Type.Number()) });

const merchant = {
  id: Type.Integer(),
  name: Type.String(),
  created_at: Time,
  closed_at: MaybeTime,
  notify_url: MaybeText,
  notify: OrNull(RecipientAnswer),
};
const MerchantAnswer = Type.Object(merchant);
/** `notify_secret` is there if the merchant got its first notify URL. */
const ChangedMerchantAnswer = Type.Object({ ...merchant, notify_secret: Type.Optional(Type.String()) });

/** Every route for merchants. */
export const MERCHANT_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/merchants',
    operation: 'merchant.add',
    summary: 'Adds a merchant; returns the signing secret of its notify URL, if it has one, once.',
    success: 201,
    answer: ChangedMerchantAnswer,
    audit: {
      object: ({ body }) => (body as Static<typeof NewMerchant>).name,
      after: ({ body }, answer) => ({ ...pick(answer, 'id'), ...notifyDetails(body) }),
      merchant: (_request, answer) => answer?.name as string | undefined,
    },
    ...withBody(NewMerchant, addMerchant),
  },
  {
    method: 'GET',
    path: '/merchants',
    operation: 'merchant.list',
    summary: 'Lists merchants, with `all` closed ones too.',
    success: 200,
    query: Exact({ all: Type.Optional(OneOf(['true', 'false'])) }),
    answer: Type.Object({ merchants: Type.Array(MerchantAnswer) }),
    handle: async ({ store, notifier }, { query }) => {
      const recipients = new Map((await notifier.read()).map((recipient) => [recipient.id, recipient]));
      const merchants = await store.listMerchants();
      const shown = merchants.filter(({ closedAtMs }) => closedAtMs === null || query.all === 'true');
      return { merchants: shown.map((each) => merchantJson(each, recipients.get(each.id))) };
    },
  },
  {
    method: 'POST',
    path: '/merchants/:name',
    operation: 'merchant.set',
    summary: 'Changes a merchant’s name or notify URL; returns the secret of its first notify URL, once.',
    success: 200,
    answer: ChangedMerchantAnswer,
    audit: {
      object: nameOf,
      before: async (parts, request) =>
        notifyDetails(await showMerchant(parts, await findMerchant(parts, nameOf(request)))),
      after: ({ body }) => ({ ...pick(body, 'name'), ...notifyDetails(body) }),
      merchant: ({ params }, answer) => (answer?.name as string | undefined) ?? params.name,
    },
    body: ChangedMerchant,
    handle: changeMerchant,
  },
  {
    method: 'POST',
    path: '/merchants/:name/rotate-notify-secret',
    operation: 'merchant.rotate-notify-secret',
    summary:
      'Gives a merchant’s notify URL a new signing secret, with the old one valid for a while; returns it, once.',
    success: 200,
    answer: NotifySecretAnswer,
    audit: { object: nameOf, after: ({ body }) => pick(body, 'grace_seconds'), merchant: nameOf },
    body: Rotation,
    handle: async (parts, request) => {
      const { id } = await findMerchant(parts, nameOf(request));
      return await rotateNotifySecret(parts, id, request.body);
    },
  },
  {
    method: 'POST',
    path: '/merchants/:name/test-notify',
    operation: 'merchant.test-notify',
    summary: 'Sends a test message to a merchant’s notify URL and waits for the answer.',
    success: 200,
    answer: NotifyTestAnswer,
    audit: { object: nameOf, after: (_request, answer) => pick(answer, 'status'), merchant: nameOf },
    handle: async (parts, request) =>
      testedJson(await parts.notifier.test((await findMerchant(parts, nameOf(request))).id)),
  },
];

/** Gives a recipient a new secret; `body` is a {@link Rotation}. */
export async function rotateNotifySecret({ notifier }: OperatorParts, recipientId: number, body: unknown) {
  const { grace_seconds: grace } = body as Static<typeof Rotation>;
  const secret = await notifier.rotateSecret(recipientId, grace === undefined ? undefined : Seconds(grace));
  const [recipient] = await notifier.read(recipientId);
  return { notify_secret: secret, old_secrets_until: (recipient?.oldSecretsUntilMs ?? []).map(formatDate) };
}

async function addMerchant(parts: OperatorParts, { name, notify_url: url = '' }: Static<typeof NewMerchant>) {
  await checkNotifyUrl(parts, url);
  const added = await parts.accounts.addMerchant(name);
  const { secret } = url === '' ? { secret: null } : await parts.notifier.setMerchantUrl(added.id, url);
  return { ...(await showMerchant(parts, added)), ...(secret !== null && { notify_secret: secret }) };
}

/** @throws LockgateError `input-merchant` if nothing is to be changed; what the changes throw */
async function changeMerchant(parts: OperatorParts, request: RouteRequest) {
  const { name, notify_url: url } = request.body as Static<typeof ChangedMerchant>;
  if (name === undefined && url === undefined)
    throw new LockgateError('input-merchant', 'nothing to change: expected a name or a notify_url');
  const found = await findMerchant(parts, nameOf(request));
  await checkNotifyUrl(parts, url ?? '');
  const changed = name === undefined ? found : await parts.accounts.merchants.rename(found.name, name);
  const { secret } =
    url === undefined ? { secret: null } : await parts.notifier.setMerchantUrl(found.id, url === '' ? null : url);
  return { ...(await showMerchant(parts, changed)), ...(secret !== null && { notify_secret: secret }) };
}

/** @throws LockgateError `input-url`, `input-webhook-address` */
async function checkNotifyUrl({ webhooks }: OperatorParts, url: string): Promise<void> {
  if (url === '') return;
  checkUrl(url);
  await webhooks.targets.check(url, 'notify_url');
}

function nameOf({ params }: RouteRequest): string {
  return params.name ?? '';
}

async function showMerchant({ notifier }: OperatorParts, found: Merchant) {
  const [recipient] = await notifier.read(found.id);
  return merchantJson(found, recipient);
}

function merchantJson({ id, name, createdAtMs, closedAtMs }: Merchant, recipient: RecipientReading | undefined) {
  return {
    id,
    name,
    created_at: formatDate(createdAtMs),
    closed_at: closedAtMs === null ? null : formatDate(closedAtMs),
    notify_url: recipient?.url ?? null,
    notify: recipient === undefined ? null : recipientJson(recipient),
  };
}

/** What the audit log records of a notify URL: only its origin. */
function notifyDetails(members: unknown): { readonly notify_origin?: string | null } {
  const { notify_url: url } = (members ?? {}) as { readonly notify_url?: string | null };
  return url === undefined ? {} : { notify_origin: originOf(url) ?? null };
}
