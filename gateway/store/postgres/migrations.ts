/** The steps of PostgreSQL's schema, in order, as SQL. A released step never changes. */
import { INDEXES } from './migrations/0001-tables/indexes.js';
import { LOG } from './migrations/0001-tables/log.js';
import { MERCHANTS_AND_LOCKS } from './migrations/0001-tables/merchants-and-locks.js';
import { OPERATORS } from './migrations/0001-tables/operators.js';
import { QUOTA_COUNTS } from './migrations/0001-tables/quota-counts.js';
import { OWNERS } from './migrations/0002-owners.js';
import { MOVED } from './migrations/0003-moved.js';
import { EPOCHS } from './migrations/0004-epochs.js';
import { FINDING_INDEX } from './migrations/0005-finding-index.js';
import { USAGE_MARKS } from './migrations/0006-usage-marks.js';
import { SLOT_INDEX } from './migrations/0007-slot-index.js';

export interface Step {
  readonly name: string;
  readonly sql: string;
}

export const STEPS: readonly Step[] = [
  { name: '0001-tables', sql: [MERCHANTS_AND_LOCKS, OPERATORS, LOG, INDEXES, QUOTA_COUNTS].join('\n') },
  { name: '0002-owners', sql: OWNERS },
  { name: '0003-moved', sql: MOVED },
  { name: '0004-epochs', sql: EPOCHS },
  { name: '0005-finding-index', sql: FINDING_INDEX },
  { name: '0006-usage-marks', sql: USAGE_MARKS },
  { name: '0007-slot-index', sql: SLOT_INDEX },
];
