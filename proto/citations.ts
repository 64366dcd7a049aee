/**
 * Where a citation leads: the link of each section of the documents in docs/ that findings, `why`, certificates and the
 * rules cite. Text output shows the citation; JSON and HTML have the link too. test/proto/citations.test.ts follows
 * every link. Pure.
 */

/** Paths from the repository's root, with an anchor, by the citation in lower case. */
const LINKS: Readonly<Record<string, string>> = Object.freeze({
  'specification, what the service does': 'docs/specification.md#what-the-service-does',
  'specification, ping (device message)': 'docs/specification.md#ping-device-message',
  'specification, ping reason values': 'docs/specification.md#ping-reason-values-field-reason',
  'specification, device lock state': 'docs/specification.md#device-lock-state',
  'specification, device power modes and switches': 'docs/specification.md#device-power-modes-and-switches',
  'specification, endpoints': 'docs/specification.md#endpoints',
  'specification, events': 'docs/specification.md#events',
  'specification, limits': 'docs/specification.md#limits',
  'protocol.md §1': 'docs/protocol.md#1-the-wire',
  'protocol.md §2': 'docs/protocol.md#2-the-power-model',
  'protocol.md §3': 'docs/protocol.md#3-the-rules',
  'protocol.md §4': 'docs/protocol.md#4-traces',
  'interfaces.md §2': 'docs/interfaces.md#2-the-merchants-http-interface',
  'interfaces.md §3': 'docs/interfaces.md#3-webhooks',
  'interfaces.md §4': 'docs/interfaces.md#4-the-operators-interface',
});

/** All links that a citation can lead to. */
export const CITATION_LINKS: readonly string[] = Object.freeze(Object.values(LINKS));

/** One citation of a section. */
export interface Citation {
  /** Such as `protocol.md §3`. */
  readonly text: string;
  /** A path from lockgate's folder, such as `docs/protocol.md#3-the-rules`. */
  readonly link: string;
}

/**
 * The citations in the section of a rule, a step or a certificate's row: one, or several with semicolons between them.
 *
 * @throws Error if a citation has no link: the table above lacks it
 */
export function citationsOf(section: string): readonly Citation[] {
  return section.split('; ').map((text) => {
    const link = LINKS[text.toLowerCase()];
    if (link === undefined) throw new Error(`no link for the citation ${JSON.stringify(text)}`);
    return { text, link };
  });
}

/** The link of a section with one citation. @throws Error as {@link citationsOf} does */
export function citationLink(section: string): string {
  return (citationsOf(section)[0] as Citation).link;
}

/** The link of a rule of the judge: its row in the table of rules. */
export function ruleLink(rule: string): string {
  return `docs/protocol.md#rule-${rule}`;
}
