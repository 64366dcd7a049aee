/** What operators see of webhook URLs in trouble, and of changes in the audit log. */
import t from 'tap';
import type { UrlStatus } from '../../../gateway/console/page/api/url-status.js';
import { troubledUrls } from '../../../gateway/console/page/screens/operator/url-trouble.js';
import { changeText } from '../../../gateway/console/wording/audit-text.js';

const NO_BACKLOG = { behind: 0, pending: 0, dead: 0, damaged: 0, oldest_seconds: null };

t.test('a URL in trouble is hidden only if its merchant is known to be closed', async (t) => {
  const disabled: UrlStatus = { id: 1, state: 'disabled', circuit: 'closed', backlog: NO_BACKLOG };
  const working: UrlStatus = { ...disabled, id: 2, state: 'active' };
  const addresses = [{ id: 1, merchant: 'Amber Bikes' }];
  const shown = (...known: [typeof addresses | undefined, { name: string }[] | undefined]): number[] =>
    troubledUrls([disabled, working], ...known).map(({ id }) => id);
  t.same(shown(undefined, undefined), [1], 'neither answer is there');
  t.same(shown(undefined, [{ name: 'Amber Bikes' }]), [1], 'whose URL it is, is not known');
  t.same(shown(addresses, undefined), [1], 'open merchants are not known');
  t.same(shown(addresses, [{ name: 'Amber Bikes' }]), [1]);
  t.same(shown(addresses, [{ name: 'Blue Bikes' }]), [], 'the merchant is closed');
});

t.test('the audit log shows the members that a change had, and of a removal the state before', async (t) => {
  const before = { notify_origin: 'https://a.example', name: 'Amber' };
  t.equal(changeText({ before, after: { name: 'Blue' } }), 'name Amber → Blue', 'the origin was not changed');
  t.equal(changeText({ before, after: { ...before, name: null } }), 'name Amber → –');
  t.equal(changeText({ before: null, after: { name: 'Blue' } }), 'name Blue');
  t.equal(changeText({ before, after: null }), 'notify_origin https://a.example, name Amber');
});
