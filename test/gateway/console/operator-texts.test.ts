/**
 * Functions of the operators' page, without a browser: which webhook URLs the screen lists as being in trouble, and the
 * text of a change in the audit log.
 */
import t from 'tap';
import type { UrlStatus } from '../../../gateway/console/page/api/url-status.js';
import { troubledUrls } from '../../../gateway/console/page/screens/operator/url-trouble.js';
import { changeText } from '../../../gateway/console/wording/audit-text.js';

/** The figures of a URL that has delivered everything. */
const NO_BACKLOG = { behind: 0, pending: 0, dead: 0, damaged: 0, oldest_seconds: null };

t.test('a URL in trouble is hidden only if its merchant is known to be closed', async (t) => {
  const disabled: UrlStatus = { id: 1, state: 'disabled', circuit: 'closed', backlog: NO_BACKLOG };
  const working: UrlStatus = { ...disabled, id: 2, state: 'active' };
  const owners = [{ id: 1, merchant: 'Amber Bikes' }];
  /** The ids of the listed URLs; the page has loaded their owners and the open merchants, or not yet (undefined). */
  const shown = (...loaded: [typeof owners | undefined, { name: string }[] | undefined]): number[] =>
    troubledUrls([disabled, working], ...loaded).map(({ id }) => id);
  t.same(shown(undefined, undefined), [1], 'neither answer has arrived');
  t.same(shown(undefined, [{ name: 'Amber Bikes' }]), [1], 'the URL’s merchant is not known');
  t.same(shown(owners, undefined), [1], 'open merchants are not known');
  t.same(shown(owners, [{ name: 'Amber Bikes' }]), [1], 'the merchant is open');
  t.same(shown(owners, [{ name: 'Blue Bikes' }]), [], 'the merchant is closed');
});

t.test('the audit log shows the changed members, and for a removal the state before it', async (t) => {
  const before = { notify_origin: 'https://a.example', name: 'Amber' };
  t.equal(
    changeText({ before, after: { name: 'Blue' } }),
    'name Amber → Blue',
    'a member missing in “after” was not changed',
  );
  t.equal(changeText({ before, after: { ...before, name: null } }), 'name Amber → –');
  t.equal(changeText({ before: null, after: { name: 'Blue' } }), 'name Blue');
  t.equal(changeText({ before, after: null }), 'notify_origin https://a.example, name Amber');
});
