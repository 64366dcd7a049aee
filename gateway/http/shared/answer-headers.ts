/**
 * The headers that every answer has by default, at the operators' port and at the merchants'. Answers are for programs
 * and our own pages: no browser may execute or frame one, keep it, or let another site's page read it. The pages of the
 * console and their files replace the policy and the caching by their own (console-pages.ts, help-route.ts).
 */
export const ANSWER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  // Answers contain keys, sessions and personal data, and a health answer is outdated at once.
  'cache-control': 'no-store',
} as const;
