/**
 * The actions that the audit log names (interfaces.md §4): changes over the operators' and the merchants' interface, in
 * the data folder, and those that the gateway makes automatically. A name is a group and a verb, such as `device.set`.
 */
import { faultAt } from '../faults.js';

/** Every action. A name is never removed: older entries keep it. */
export const AUDIT_ACTIONS = [
  'audit.left-out',
  'clock.confirm',
  'command.cancel',
  'command.send',
  'console.link',
  'delivery.recover',
  'device.add',
  'device.add-phone',
  'device.erase',
  'device.import',
  'device.reflashed',
  'device.rejudge',
  'device.remove',
  'device.revoke-phone',
  'device.rotate-secret',
  'device.set',
  'event.resend',
  'history.delete',
  'invitation.accept',
  'invitation.create',
  'invitation.withdraw',
  'key.create',
  'key.rename',
  'key.revoke',
  'merchant.add',
  'merchant.close',
  'merchant.reopen',
  'merchant.rotate-notify-secret',
  'merchant.set',
  'merchant.test-notify',
  'notice.read',
  'notice.rotate-secret',
  'notice.test',
  'secrets.forget',
  'secrets.rotate-key',
  'session.end',
  'session.open',
  'store.accept-damage',
  'store.backup',
  'tls.reload',
  'token.change',
  'token.create',
  'token.revoke',
  'usage.close',
  'usage.set-plan',
  'user.add',
  'user.password',
  'user.remove',
  'user.set',
  'webhook.add',
  'webhook.disable',
  'webhook.remove',
  'webhook.rotate-secret',
  'webhook.set',
  'webhook.test',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

const GROUPS = [...new Set(AUDIT_ACTIONS.map(groupOf))];
const MAX_QUOTED_CHARS = 80;

function groupOf(action: string): string {
  return action.split('.')[0] ?? '';
}

/** Checks the name of an action or of a group. @throws RequestFaults `input-action` */
export function checkAction(text: string): string {
  if (GROUPS.includes(text) || (AUDIT_ACTIONS as readonly string[]).includes(text)) return text;
  const ofGroup = AUDIT_ACTIONS.filter((action) => groupOf(action) === groupOf(text));
  const expected =
    ofGroup.length > 0 ? ofGroup.join(', ') : `one of these, or one of their actions: ${GROUPS.join(', ')}`;
  const quoted = JSON.stringify(text.slice(0, MAX_QUOTED_CHARS));
  throw faultAt('input-action', '/action', `action is ${quoted}: expected ${expected}`);
}
