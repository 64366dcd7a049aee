/**
 * Citations and rules as HTML links, for the report of `trace check` and for certificates. A link is a path from
 * lockgate's folder, because the page itself may be anywhere; {@link LINKS_NOTE} tells its readers. Pure.
 */
import { type Citation, citationsOf, ruleLink } from '../../../proto/citations.js';
import { findRule } from '../../../proto/power/rules.js';
import { escapeXml as escapeHtml } from '../../terminal/xml-text.js';

/** A paragraph that says where the links lead. */
export const LINKS_NOTE =
  '<p>Links to rules and sections are paths in lockgate’s own folder, such as docs/protocol.md. To follow them, open ' +
  'this page there.</p>';

/** A citation as a link. */
export function linkHtml({ text, link }: Citation): string {
  return `<a href="${escapeHtml(link)}">${escapeHtml(text)}</a>`;
}

/** The citations of a section, each as a link. */
export function sectionHtml(section: string): string {
  return citationsOf(section).map(linkHtml).join('; ');
}

/** The name of a rule as a link, whose title says when the rule is broken. */
export function ruleHtml(rule: string): string {
  const title = escapeHtml(findRule(rule)?.brokenWhen ?? '');
  return `<a href="${escapeHtml(ruleLink(rule))}" title="${title}">${escapeHtml(rule)}</a>`;
}
