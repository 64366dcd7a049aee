/** The tables of docs/certificate.md: the rows of a certificate, by group. Pure. */
import { citationsOf } from '../citations.js';
import { POWER_MODEL } from '../power/model.js';
import type { CertificateRow } from '../trace/certificate/row.js';
import { certificateRows } from '../trace/certificate/rows.js';
import { type GeneratedParts, linkFromDocs, markdownTable } from './generated-parts.js';

function rowCells({ row, says, seenWhen, section }: CertificateRow): string[] {
  const sources = citationsOf(section).map(({ text, link }) => `[${text}](${linkFromDocs(link)})`);
  return [`\`${row}\``, says, seenWhen, sources.join('; ')];
}

/** The generated parts of docs/certificate.md. */
export function certificateParts(): GeneratedParts {
  const rows = certificateRows(POWER_MODEL);
  const groups = [...new Set(rows.map(({ group }) => group))];
  const tables = groups.map((group) => {
    const ofGroup = rows.filter((row) => row.group === group).map(rowCells);
    return `### ${group}\n\n${markdownTable(['row', 'what must hold', 'seen when there is', 'required by'], ofGroup)}`;
  });
  return { rows: tables.join('\n\n') };
}
